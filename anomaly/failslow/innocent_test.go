package failslow

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
)

// stream makes a node's class one of large requests, as a job makes it that hides the background.
func stream(o *Observation, c Class, times float64) {
	k := &o.Class[c]
	*k = ClassSecond{Ops: k.Ops, Bytes: k.Ops * 128e3, Wait: k.Wait, Exec: 3 * times * k.Exec}
}

// TestWhatAJobDoesIsNotTheNodes: jobs stream on six of thirteen forwarders, on fwd d slower by a half to three times.
// That alone makes a suspicion only.
func TestWhatAJobDoesIsNotTheNodes(t *testing.T) {
	const from = 600
	for _, c := range []struct {
		name        string
		teachers    int // other nodes that stream from the start
		read, write float64
	}{
		{"both classes: suspicion and no more, however long the background is not seen", 6, 3, 3},
		{"reads alone", 6, 3, 0},
		{"requests of which two nodes taught the fleet what they need", 2, 3, 3},
	} {
		set := DefaultSettings()
		set.PeakBytesPerSec = 2.5e9
		l := newLayer(13)
		got := l.alarms(New(set), 2100, func(s, n int, o *Observation) {
			switch {
			case n == 3 && s >= from:
				stream(o, Read, c.read)
				if c.write > 0 {
					stream(o, Write, c.write)
				}
			case n > 3 && n <= 3+c.teachers:
				stream(o, Read, 1)
				stream(o, Write, 1)
			}
		})
		if len(got) > 0 {
			t.Errorf("%s: accused %v", c.name, got)
		}
	}
}

// TestOneClassOfAJobIsNoSuspect: requests of one class that jobs stream have a canary sent and nothing more; no
// sentence speaks of canaries where there were none.
func TestOneClassOfAJobIsNoSuspect(t *testing.T) {
	set := DefaultSettings()
	set.PeakBytesPerSec = 2.5e9
	l, d := newLayer(13), New(set)
	due := false
	for s := range 2100 {
		rows := l.next(func(n int, o *Observation) {
			if n == 3 && s >= 600 {
				stream(o, Read, 1.8)
			} else if n > 3 && n < 10 {
				stream(o, Read, 1)
			}
		})
		now := time.Unix(l.now, 0)
		for _, v := range d.Second(now, rows) {
			if v.Level >= anomaly.Doubt {
				t.Fatalf("second %d: %s, score %.2f", s, v.Sentence, v.Score)
			}
		}
		suspects, _ := d.Due(now)
		due = due || len(suspects) == 1 && suspects[0] == rows[3].Node
	}
	if !due {
		t.Error("no canary was asked for")
	}
	n := d.nodes.Known(l.rows[3].Node)
	n.ratio[Read] = 0
	var v anomaly.Verdict
	if d.explain(n, readSlow, &v); strings.Contains(v.Sentence, "canary") {
		t.Errorf("without any canary: %s", v.Sentence)
	}
	n.ratio[Write] = 0 // as of a forwarder without a clock
	for through, want := range map[float64]string{0: "it is not now", 1: "is slow at canaries"} {
		n.through = [2]float64{through, through}
		if d.explain(n, joint, &v); !strings.Contains(v.Sentence, want) {
			t.Errorf("accused by load and canaries, of which canaries alone show %g now: %s", through, v.Sentence)
		}
	}
}

// TestAccusationEnds: a node that is well again, or hardly slower than its peers, is not held for what it was; one that
// is still slow is, though a few seconds pass without evidence.
func TestAccusationEnds(t *testing.T) {
	for _, c := range []struct {
		name          string
		slow, after   float64
		within, holds int
	}{
		{"five times, then well", 5, 1, 300, 30},
		{"a third, then a twentieth", 1.33, 1.055, 1800, 60},
	} {
		l, d := newLayer(12), New(DefaultSettings())
		times := 1.0
		level := func(seconds int) (v anomaly.Level) {
			for range seconds {
				rows := l.next(func(n int, o *Observation) {
					if n == 3 {
						slower(o, Read, times)
						slower(o, Write, times)
					}
				})
				for _, one := range d.Second(time.Unix(l.now, 0), rows) {
					if one.Node == l.rows[3].Node {
						v = one.Level
					}
				}
			}
			return v
		}
		level(600)
		times = c.slow
		if got := level(600); got != anomaly.Alarm {
			t.Errorf("%s: level %d while it is slow", c.name, got)
		}
		times = c.after
		if got := level(c.holds); got != anomaly.Alarm {
			t.Errorf("%s: level %d after %d s", c.name, got, c.holds)
		}
		if got := level(c.within - c.holds); got != anomaly.Clean {
			t.Errorf("%s: level %d after %d s", c.name, got, c.within)
		}
	}
}

// TestACanaryThatWaitedSaysNothing: what a canary takes while requests wait at the node has their wait in it.
func TestACanaryThatWaitedSaysNothing(t *testing.T) {
	for _, queue := range []float64{20, 0} {
		l, d := newLayer(4), New(DefaultSettings())
		accused := false
		for s := range 3600 {
			late := s >= 1800 && s%60 >= 30
			rows := l.next(func(n int, o *Observation) {
				if n == 1 && late {
					o.QueueLen = queue
				}
			})
			for _, v := range d.Second(time.Unix(l.now, 0), rows) {
				accused = accused || v.Level == anomaly.Alarm
			}
			for n := range rows {
				p := Probe{rows[n].Node, [3]float64{4e-3, 5e-3, 1e-3}}
				switch {
				case n == 1 && late && s%10 == 5:
					p.Took = [3]float64{80e-3, 90e-3, 20e-3}
				case n == 1 && late, s%20 != 5*n:
					continue
				}
				d.Probe(time.Unix(l.now, 0), p)
			}
		}
		if accused != (queue == 0) {
			t.Errorf("%g requests wait: accused %v", queue, accused)
		}
	}
}

// TestFullIsNotSlow: a node that moves what a forwarder is known to be able to takes longer for each request, though
// none waits in it: its link is full. Where the peak is not known it may be slow.
func TestFullIsNotSlow(t *testing.T) {
	for _, peak := range []float64{5.4e6, 0} {
		set := DefaultSettings()
		set.PeakBytesPerSec = peak
		l, d := newLayer(12), New(set)
		accused := false
		for s := range 1800 {
			rows := l.next(func(n int, o *Observation) {
				for c := range Meta {
					if k := &o.Class[c]; n == 3 {
						k.Ops, k.Bytes = 2*k.Ops, 2*k.Bytes
						if s >= 900 {
							slower(o, c, 1.7)
						}
					}
				}
			})
			for _, v := range d.Second(time.Unix(l.now, 0), rows) {
				accused = accused || v.Level == anomaly.Alarm
			}
			if now := time.Unix(l.now, 0); s%10 == 0 {
				d.Probe(now, Probe{rows[3].Node, [3]float64{8e-3, 9e-3, 1e-3}})
			}
		}
		if accused != (peak == 0) {
			t.Errorf("a peak of %g bytes/s: accused %v", peak, accused)
		}
	}
}

// TestWhatIsBehindAForwarderIsNotItsOwn: small requests look like every forwarder's background and may be those of a
// job whose pool is slow, and what some do faster than ever makes nobody slower. Who is slower than its like is found.
func TestWhatIsBehindAForwarderIsNotItsOwn(t *testing.T) {
	const from, nodes, behind = 600, 12, 4
	for _, c := range []struct {
		name  string
		pool  float64 // how many times its usual time the slowest of eight pools takes
		times func(n int) float64
		want  []int
	}{
		{"a job's pool is slow", 4.6, func(n int) float64 {
			return []float64{2.6, 1.05}[min(n/behind, 1)]
		}, nil},
		{"and one of its forwarders, too", 4.6, func(n int) float64 {
			return []float64{8, 2.6, 2.6, 2.6, 1.05}[min(n, behind)]
		}, []int{0}},
		{"most are faster than ever", 1, func(n int) float64 { return []float64{1, 0.35}[min(n/5, 1)] }, nil},
		{"all but one are", 1, func(n int) float64 { return []float64{1, 0.35}[min(n, 1)] }, []int{0}},
	} {
		l, d := newLayer(nodes), New(DefaultSettings())
		job := Job{ID: "1"}
		for n := range behind {
			job.Nodes = append(job.Nodes, l.rows[n].Node)
		}
		d.Jobs([]Job{job})
		got := l.alarms(d, 1200, func(s, n int, o *Observation) {
			for c := range Meta { // a background is never as much in every second
				k := &o.Class[c]
				k.Ops *= 0.7 + 0.6*l.random.Float64()
				k.Bytes = k.Ops * 16e3
			}
			if s >= from {
				d.Backend(c.pool, 1+(c.pool-1)/8)
				slower(o, Read, c.times(n))
				slower(o, Write, c.times(n))
			}
		})
		if len(got) != len(c.want) {
			t.Errorf("%s: accused %v", c.name, got)
		}
		for _, n := range c.want {
			if _, found := got[l.rows[n].Node]; !found {
				t.Errorf("%s: %s is not found", c.name, l.rows[n].Node)
			}
		}
	}
}
