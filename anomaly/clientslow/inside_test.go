package clientslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// silent is a layer of forwarders with 16 threads that report their queue and completions only. Their clients wait for
// answers: each four forwarders serve a job that keeps as many requests under way on each and, with a barrier, does no
// more through any than through the slowest.
type silent struct {
	*Detector
	rng     *rand.Rand
	now     time.Time
	barrier bool
	slow    map[int]float64
}

func (l *silent) live(seconds int, say func(anomaly.Verdict)) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		var obs []failslow.Observation
		common := math.Exp(0.1 * l.rng.NormFloat64())
		for job := range 2 {
			phase := uint64(l.now.Unix()) / 60
			r := rand.New(rand.NewPCG(phase, uint64(job)))
			underWay, size := float64(int(4)<<r.IntN(6)), 16e3*float64(int(1)<<r.IntN(4))
			var held, done [4]float64
			least := math.Inf(1)
			for i := range 4 {
				took := (1e-3 + size*2e-9) * common * math.Exp(0.2*l.rng.NormFloat64())
				if k := l.slow[4*job+i]; k > 0 {
					took *= k
				}
				held[i], done[i] = took, min(underWay, 16)/took
				least = min(least, done[i])
			}
			for i := range 4 {
				o := failslow.Observation{Node: topology.NodeID(fmt.Sprint("fwd", 4*job+i)), InFlight: underWay}
				if l.barrier && done[i] > least { // its clients wait for the others
					done[i], o.InFlight = least, least*held[i]
				}
				o.Completed = done[i]
				k := &o.Class[failslow.Write]
				k.Ops, k.Bytes, k.Exec = done[i], done[i]*size, math.NaN()
				o.Moved = k.Bytes
				obs = append(obs, o)
			}
		}
		for _, v := range l.Second(l.now, obs) {
			say(v)
		}
	}
}

// TestQueueAndCompletionsAreEnough: of servers whose operations nobody times, one at a tenth of its speed is named by
// Little's law within 30 s, one at half within three minutes, and no forwarder of the same jobs, whatever number of
// requests is under way and also where the others wait for it.
func TestQueueAndCompletionsAreEnough(t *testing.T) {
	for _, barrier := range []bool{false, true} {
		for _, c := range []struct {
			times  float64
			within int
		}{{10, 30}, {2, 180}, {1, 3600}} {
			for seed := range uint64(4) {
				l := &silent{Detector: New(500 * 24 * time.Hour), rng: rand.New(rand.NewPCG(seed, 3)),
					now: time.Unix(1.8e9, 0), barrier: barrier, slow: map[int]float64{}}
				found, words := -1, ""
				begun := l.now
				say := func(v anomaly.Verdict) {
					switch {
					case v.Level != anomaly.Alarm:
					case v.Node != "fwd2" || len(l.slow) == 0:
						t.Fatalf("barrier %v, %g times, seed %d: accused %s: %s", barrier, c.times, seed, v.Node,
							v.Sentence)
					case found < 0:
						found, words = int(l.now.Sub(begun)/time.Second), v.Sentence
					}
				}
				l.live(1200, say)
				begun = l.now
				if c.times > 1 {
					l.slow[2] = c.times
				}
				l.live(c.within, say)
				if c.times > 1 && (found < 0 || !strings.Contains(words, "by its queue and completions")) {
					t.Errorf("barrier %v, %g times, seed %d: found after %d s: %s", barrier, c.times, seed, found,
						words)
				}
				t.Logf("barrier %v, %g times, seed %d: found after %d s", barrier, c.times, seed, found)
			}
		}
	}
}
