package clientslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// swaying is how the latencies of eight forwarders scatter: what slows a second slows those after it.
type swaying struct {
	rho     float64 // of neighbouring seconds; 0.82 is a memory of five seconds
	scatter float64 // standard deviation, log
	minutes float64 // the share of the variance that has a memory of a minute instead
	one     bool    // those of all but fwd2 are independent
	bursts  bool    // 12 of 20 s at work, each forwarder at its own time, not always
}

func (w swaying) String() string {
	s := fmt.Sprintf("rho %.2f, scatter %.1f", w.rho, w.scatter)
	if w.minutes > 0 {
		s += fmt.Sprintf(", %.1f of it slow", w.minutes)
	}
	if w.one {
		s += ", of one"
	}
	if w.bursts {
		s += ", bursts"
	}
	return s
}

// drawn is such a layer, whose forwarders serve reads and writes.
type drawn struct {
	swaying
	times      float64 // by how much fwd2 is slower
	det        *Detector
	rng        *rand.Rand
	now        int64
	fast, slow [8][2]float64
	accused    [8]bool
}

func draw(seed uint64, w swaying) *drawn {
	return &drawn{swaying: w, times: 1, det: New(500 * 24 * time.Hour), rng: rand.New(rand.NewPCG(seed, 5)), now: 1.8e9}
}

// copied goes on from here by itself, with a detector that takes up this one's state.
func (l *drawn) copied(t *testing.T, seed uint64) *drawn {
	t.Helper()
	c := *l
	c.rng, c.det = rand.New(rand.NewPCG(seed, 6)), New(500*24*time.Hour)
	state, err := l.det.MarshalBinary()
	if err == nil {
		err = c.det.UnmarshalBinary(state)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func (l *drawn) working(i int) bool { return !l.bursts || (l.now+int64(3*i))%20 < 12 }

// second returns how many alarms begin.
func (l *drawn) second() (begun int) {
	const minute = 0.983
	l.now++
	var obs [8]failslow.Observation
	for i := range obs {
		obs[i].Node = topology.NodeID(fmt.Sprint("fwd", i))
		rho, times := l.rho, 1.0
		if l.one && i != 2 {
			rho = 0
		}
		if i == 2 {
			times = l.times
		}
		for c := range 2 {
			fast, slow := &l.fast[i][c], &l.slow[i][c]
			*fast = rho**fast + math.Sqrt(1-rho*rho)*l.rng.NormFloat64()
			*slow = minute**slow + math.Sqrt(1-minute*minute)*l.rng.NormFloat64()
			if l.working(i) {
				x := l.scatter * (math.Sqrt(1-l.minutes)**fast + math.Sqrt(l.minutes)**slow)
				obs[i].Class[c] = failslow.ClassSecond{Ops: 100, Bytes: 6.4e6, Exec: 5e-3 * times * math.Exp(x)}
			}
		}
	}
	for _, v := range l.det.Second(time.Unix(l.now, 0), obs[:]) {
		i, alarm := v.Node[3]-'0', v.Level == anomaly.Alarm
		if alarm && !l.accused[i] {
			begun++
		}
		l.accused[i] = alarm
	}
	return begun
}

func (l *drawn) alarms(seconds int) (n int) {
	for range seconds {
		n += l.second()
	}
	return n
}

// most is when found gives up.
const most = 900

// found is after how many seconds of work fwd2 is accused of being so many times slower.
func (l *drawn) found(times float64) (worked int) {
	l.times = times
	for worked < most && !l.accused[2] {
		l.second()
		if l.working(2) {
			worked++
		}
	}
	return worked
}

// delays are how long faults of 2, 4 and 10 times took to find.
type delays struct{ sum, worst [3]int }

func (d *delays) measure(t *testing.T, l *drawn, seed uint64) {
	for k, times := range []float64{2, 4, 10} {
		s := l.copied(t, seed+uint64(k)).found(times)
		d.sum[k] += s
		d.worst[k] = max(d.worst[k], s)
	}
}

func (d *delays) mean(seeds int) (m [3]int) {
	for k := range m {
		m[k] = d.sum[k] / seeds
	}
	return m
}

// TestSlowSecondsThatFollowEachOther: latencies that scatter with a memory accuse nobody once it is learnt, faults are
// still found, and where seconds are independent as soon as ever. FAIRWAY_SEEDS asks for more seeds, and for more kinds
// of layers.
func TestSlowSecondsThatFollowEachOther(t *testing.T) {
	const cold, known, long = 75, 900, 3 * 3600
	seeds, _ := strconv.Atoi(os.Getenv("FAIRWAY_SEEDS"))
	wide := seeds > 0
	seeds = max(seeds, 2)
	// What faults of 2, 4 and 10 times may take on the mean, in seconds of work, with what was learnt.
	limits := map[float64][3]int{0: {60, 20, 15}, 0.6: {100, 30, 20}, 0.82: {200, 50, 30}, 0.9: {350, 90, 45}}
	var layers []swaying
	for _, bursts := range []bool{false, true} {
		for _, rho := range []float64{0, 0.6, 0.82, 0.9} {
			layers = append(layers, swaying{rho: rho, scatter: 0.4, bursts: bursts})
			if wide {
				layers = append(layers, swaying{rho: rho, scatter: 0.3, bursts: bursts},
					swaying{rho: rho, scatter: 0.5, bursts: bursts},
					swaying{rho: rho, scatter: 0.4, one: true, bursts: bursts},
					swaying{rho: rho, scatter: 0.4, minutes: 0.4, bursts: bursts})
			}
		}
	}
	if !wide {
		layers = append(layers, swaying{rho: 0.9, scatter: 0.4, one: true})
	}
	for _, w := range layers {
		first, later := 0, 0
		mild := map[float64]int{1.3: 0, 1.4: 0, 1.5: 0} // in how many layers such faults are found
		var new, old delays
		for s := range uint64(seeds) {
			l := draw(s, w)
			first += l.alarms(cold)
			new.measure(t, l, 100*s)
			first += l.alarms(known - cold)
			later += l.alarms(long)
			for i := 0; l.accused[2] && i < most; i++ {
				l.second()
			}
			old.measure(t, l, 100*s+50)
			for times := range mild {
				if wide && l.copied(t, 100*s+70).found(times) < most {
					mild[times]++
				}
			}
		}
		t.Logf(
			"%s: %d alarms in %d first quarters of an hour, %d in %d hours after; found after %v s (at worst %v) of "+
				"work, at first %v (%v)",
			w, first, seeds, later, seeds*long/3600, old.mean(seeds), old.worst, new.mean(seeds), new.worst)
		if wide {
			t.Logf("%s: of %d mild faults each are found %v", w, seeds, mild)
		}
		if w.scatter != 0.4 || w.minutes > 0 {
			continue // given, not asked for
		}
		if later > 0 || w.rho < 0.8 && first > 0 {
			t.Errorf("%s: healthy forwarders are accused", w)
		}
		for k, m := range old.mean(seeds) {
			if m > limits[w.rho][k] {
				t.Errorf("%s: faults are found after %v s, want %v", w, old.mean(seeds), limits[w.rho])
				break
			}
		}
		if m := new.mean(seeds); w.rho == 0 && (m[0] > 120 || m[2] > 15) {
			t.Errorf("%s: a detector that knows hardly anything finds faults after %v s", w, m)
		}
	}
}
