package failslow

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// layer makes the rows of a healthy layer with small reads and writes; change alters a row.
type layer struct {
	random *rand.Rand
	rows   []Observation
	now    int64
}

func newLayer(nodes int) *layer {
	l := &layer{random: rand.New(rand.NewPCG(1, 2)), now: 1_600_000_000}
	for n := range nodes {
		l.rows = append(l.rows, Observation{Node: topology.NodeID(rune('a'+n%26)) + topology.NodeID(rune('0'+n/26))})
	}
	return l
}

func (l *layer) next(change func(n int, o *Observation)) []Observation {
	l.now++
	for n := range l.rows {
		o := &l.rows[n]
		for c, ops := range [2]float64{40, 120} {
			noise := math.Exp(l.random.NormFloat64() / math.Sqrt(ops))
			o.Class[c] = ClassSecond{Ops: ops, Bytes: ops * 16e3, Wait: 30e-6, Exec: 500e-6 * noise}
		}
		o.QueueLen = 0
		if change != nil {
			change(n, o)
		}
	}
	return l.rows
}

// alarms plays seconds and returns when each node was first accused.
func (l *layer) alarms(d *Detector, seconds int, change func(s, n int, o *Observation)) map[topology.NodeID]int {
	out := map[topology.NodeID]int{}
	for s := range seconds {
		rows := l.next(func(n int, o *Observation) {
			if change != nil {
				change(s, n, o)
			}
		})
		for _, v := range d.Second(time.Unix(l.now, 0), rows) {
			if _, ok := out[v.Node]; v.Level == anomaly.Alarm && !ok {
				out[v.Node] = s
			}
		}
	}
	return out
}

func slower(o *Observation, c Class, times float64) { o.Class[c].Exec *= times }

func TestSlowNodeIsFoundAndOnlyIt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s, n int, o *Observation)
		within int // seconds from 600 on; 0: never
	}{
		{"healthy", func(int, int, *Observation) {}, 0},
		{"everybody", func(s, n int, o *Observation) {
			if s >= 600 {
				slower(o, Read, 3)
				slower(o, Write, 3)
			}
		}, 0},
		{"five times", func(s, n int, o *Observation) {
			if s >= 600 && n == 3 {
				slower(o, Read, 5)
				slower(o, Write, 5)
			}
		}, 30},
		{"a fifth", func(s, n int, o *Observation) {
			if s >= 600 && n == 3 {
				slower(o, Read, 1.2)
				slower(o, Write, 1.2)
			}
		}, 300},
		{"now and then", func(s, n int, o *Observation) {
			if s >= 600 && n == 3 && s%60 < 12 {
				slower(o, Read, 3)
				slower(o, Write, 3)
			}
		}, 300},
		{"one class of streamed requests", func(s, n int, o *Observation) {
			if s >= 600 && n == 3 { // random reads
				o.Class[Read] = ClassSecond{Ops: 4000, Bytes: 4000 * 64e3, Wait: 30e-6, Exec: 4e-3}
			}
		}, 0},
		{"reads of the background", func(s, n int, o *Observation) {
			if s >= 600 && n == 3 {
				slower(o, Read, 1.6)
			}
		}, 600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLayer(12)
			got := l.alarms(New(DefaultSettings()), 1800, tc.change)
			at, ok := got[l.rows[3].Node]
			if tc.within == 0 && len(got) > 0 || tc.within > 0 &&
				(!ok || at < 600 || at > 600+tc.within || len(got) > 1) {
				t.Errorf("accused %v, want node %s within %d s of 600", got, l.rows[3].Node, tc.within)
			}
		})
	}
}

func TestSingleForwarderIsItsOwnReference(t *testing.T) {
	l := newLayer(1)
	got := l.alarms(New(DefaultSettings()), 1500, func(s, n int, o *Observation) {
		if s >= 900 {
			slower(o, Read, 4)
			slower(o, Write, 4)
		}
	})
	if at, ok := got[l.rows[0].Node]; !ok || at < 900 || at > 960 {
		t.Errorf("accused %v", got)
	}
}

func TestStateGoesOn(t *testing.T) {
	l, m := newLayer(8), newLayer(8)
	change := func(s, n int, o *Observation) {
		if n == 2 && s >= 880 {
			slower(o, Read, 1.6)
			slower(o, Write, 1.6)
		}
	}
	d, e := New(DefaultSettings()), New(DefaultSettings())
	l.alarms(d, 900, change)
	m.alarms(e, 900, change)
	saved, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	e = New(DefaultSettings())
	if err := e.UnmarshalBinary(saved); err != nil {
		t.Fatal(err)
	}
	late := func(s, n int, o *Observation) { change(s+900, n, o) }
	one, two := l.alarms(d, 200, late), m.alarms(e, 200, late)
	if len(one) != 1 {
		t.Fatalf("accused %v", one)
	}
	for n, at := range one {
		// What a block had gathered when it was saved is lost, no more.
		if got, ok := two[n]; !ok || got > at+blockSeconds {
			t.Errorf("accused at %v, after a restart at %v", one, two)
		}
	}
	if again := New(DefaultSettings()); again.UnmarshalBinary(saved[:len(saved)/2]) == nil || again.nodes.Count() != 0 {
		t.Error("half a state was taken up")
	}
}

func TestCanariesKeepTheirDistance(t *testing.T) {
	set := DefaultSettings()
	set.PeakBytesPerSec = 2.5e9
	l, d := newLayer(6), New(set)
	asked := map[topology.NodeID][]int{}
	for s := range 1200 {
		d.Second(time.Unix(l.now+1, 0), l.next(func(n int, o *Observation) {
			if n == 1 && s > 600 {
				slower(o, Read, 3)
				slower(o, Write, 3)
			}
		}))
		suspects, idle := d.Due(time.Unix(l.now, 0))
		for _, n := range append(suspects, idle...) {
			d.Asked(time.Unix(l.now, 0), n)
			asked[n] = append(asked[n], s)
		}
	}
	for n, at := range asked {
		for i := 1; i < len(at); i++ {
			gap := at[i] - at[i-1]
			if suspect := n == l.rows[1].Node && at[i] > 600; gap < 10 || !suspect && gap < 60 {
				t.Errorf("%s was asked for a canary after %d s at %d", n, gap, at[i])
			}
		}
	}
	if got := len(asked[l.rows[1].Node]); got < 50 || len(asked) != 6 {
		t.Errorf("a suspect was probed %d times, %d nodes in all", got, len(asked))
	}
}

func TestSettingsSayWhatIsWrong(t *testing.T) {
	for _, change := range []func(*Settings){
		func(s *Settings) { s.FalseAlarmEvery = 0 }, func(s *Settings) { s.PeakBytesPerSec = math.NaN() },
	} {
		s := DefaultSettings()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if change(&s); s.Validate() == nil {
			t.Errorf("%+v is valid", s)
		}
	}
}

// The mean of each bet's factor is at most 1 while nothing is wrong, in seconds with many operations and with few: on
// it rests the promise about false alarms.
func TestBetsDoNotPayOnHealthyNodes(t *testing.T) {
	r, short, long := rand.New(rand.NewPCG(3, 4)), doubts(background).short, doubts(background).long
	for _, b := range []struct {
		name string
		bet  func(x, variance float64) float64
	}{
		{"sudden", func(x, v float64) float64 {
			return clip(compare.Against(x, v+short*short, 0.4), -0.12, 4) - floorFee(v, short*short, 0.4, -0.12)
		}},
		{"mild", func(x, v float64) float64 {
			return clip(compare.Against(x, v+long*long, 0.1), -longMost, longMost)
		}},
	} {
		for _, sd := range []float64{0.03, 0.06, 0.2, 0.5} {
			sum, n := 0.0, 400000
			for range n {
				sum += math.Exp(b.bet(sd*r.NormFloat64(), sd*sd))
			}
			if mean := sum / float64(n); mean > 1.003 {
				t.Errorf("%s, %g: the mean factor is %.3f", b.name, sd, mean)
			}
		}
	}
}

func TestNodeTakesLessThan4Kilobytes(t *testing.T) {
	if size := reflect.TypeFor[node]().Size() + 200; size > 4096 {
		t.Errorf("%d bytes a node", size)
	}
}

func BenchmarkSecond(b *testing.B) {
	for _, nodes := range []int{240, 41488} {
		b.Run(map[int]string{240: "240", 41488: "41488"}[nodes], func(b *testing.B) {
			l, d := &layer{random: rand.New(rand.NewPCG(1, 2)), now: 1_600_000_000}, New(DefaultSettings())
			for n := range nodes {
				l.rows = append(l.rows, Observation{Node: topology.NodeID(time.Duration(n).String())})
			}
			for range 40 {
				d.Second(time.Unix(l.now, 0), l.next(nil))
			}
			b.ResetTimer()
			for i := range b.N {
				d.Second(time.Unix(l.now+int64(i), 0), l.rows)
			}
		})
	}
}

// TestNoisyCanariesAccuseNobody: on a busy machine canaries take several times as long as usual now and then.
// What they cannot show is not reported, and requests that wait before them are not held against a node.
func TestNoisyCanariesAccuseNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	l, d := newLayer(4), New(DefaultSettings())
	took := func(usual float64) float64 {
		if r.IntN(6) == 0 {
			usual *= 8
		}
		return usual * math.Exp(0.3*r.NormFloat64())
	}
	for s := range 4 * 3600 {
		now := time.Unix(l.now+1, 0)
		rows := l.next(nil)
		waits := s%600 > 300 && s%600 < 330
		if waits {
			rows[1].QueueLen = 20
		}
		for _, v := range d.Second(now, rows) {
			if v.Level > anomaly.Clean {
				t.Fatalf("after %d s: %+v", s, v)
			}
		}
		for n := range rows {
			if s%60 == 15*n {
				d.Probe(now, Probe{rows[n].Node, [3]float64{took(4e-3), took(5e-3), took(1e-3)}})
			}
		}
		if waits && s%10 == 0 { // somebody else suspects it
			d.Probe(now, Probe{rows[1].Node, [3]float64{0.4, 0.5, 0.1}})
		}
	}
}

// TestCanariesAreComparedAtEqualLoad: canaries through loaded forwarders take five times as long as through
// idle ones. Nobody is accused for that, whatever is in service; who takes three times as long as the
// others with as much load is.
func TestCanariesAreComparedAtEqualLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	set := DefaultSettings()
	set.PeakBytesPerSec = 2.5e7
	l, d := newLayer(6), New(set)
	const fault = 4 * 3600
	accused := map[topology.NodeID]int{}
	for s := range fault + 1800 {
		now := time.Unix(l.now+1, 0)
		rows := l.next(func(n int, o *Observation) {
			for c := range 2 {
				o.Class[c].Exec = math.NaN() // a server without a clock
				o.Class[c].Ops, o.Class[c].Bytes = 1, 1e4
			}
			if (s/137+n)%2 == 0 {
				o.Class[Write].Ops, o.Class[Write].Bytes, o.QueueLen, o.Serving = 200, 0.6*set.PeakBytesPerSec, 0.1, 5.9
			}
		})
		for _, v := range d.Second(now, rows) {
			if _, ok := accused[v.Node]; v.Level == anomaly.Alarm && !ok {
				accused[v.Node] = s
			}
		}
		suspects, idle := d.Due(now)
		for _, id := range append(suspects, idle...) {
			d.Asked(now, id)
			for n := range rows {
				if rows[n].Node != id {
					continue
				}
				p := Probe{id, [3]float64{2e-3, 3e-3, 5e-4}}
				for c := range p.Took {
					p.Took[c] *= math.Exp(0.2 * r.NormFloat64())
					if rows[n].QueueLen > 0 {
						p.Took[c] *= 5
						if n == 2 && s >= fault && c < 2 {
							p.Took[c] *= 3
						}
					}
				}
				d.Probe(now, p)
			}
		}
	}
	if at, ok := accused[l.rows[2].Node]; len(accused) != 1 || !ok || at < fault {
		t.Errorf("accused %v, want %s alone after %d", accused, l.rows[2].Node, fault)
	}
}

// TestWhatFewForwardersShareIsNobodysOwn: where jobs hide the background of most forwarders, or there are only two or
// three, a slow back end still moves them together, and one slow forwarder still differs.
func TestWhatFewForwardersShareIsNobodysOwn(t *testing.T) {
	for _, nodes := range []int{2, 3, 8} {
		stream := func(s, n int, o *Observation) {
			if nodes < 8 || n < 2 || s < 600 { // the others' jobs stream
				return
			}
			for c := range 2 {
				k := &o.Class[c]
				*k = ClassSecond{Ops: k.Ops, Bytes: k.Ops * 128e3, Wait: k.Wait, Exec: 3 * k.Exec}
			}
		}
		for name, who := range map[string]func(n int) bool{"back end": func(int) bool { return true },
			"one": func(n int) bool { return n == 1 }} {
			l, set := newLayer(nodes), DefaultSettings()
			set.PeakBytesPerSec = 2.5e9
			got := l.alarms(New(set), 1800, func(s, n int, o *Observation) {
				stream(s, n, o)
				if s >= 900 && s < 1500 && who(n) {
					slower(o, Read, 3)
					slower(o, Write, 3)
				}
			})
			at, ok := got[l.rows[1].Node]
			if found := ok && at >= 900 && at < 1000 && len(got) == 1; name == "one" && !found || name == "back end" &&
				len(got) > 0 {
				t.Errorf("%d forwarders, %s: accused %v", nodes, name, got)
			}
		}
	}
}
