package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// tellingWay answers at once what the test says.
type tellingWay func() probe.Took

func (w tellingWay) Bytes() int                                { return 8192 }
func (w tellingWay) Probe(context.Context) (probe.Took, error) { return w(), nil }

// TestEveryForwarderHasItsCanary: of forwarders that all report at once, more than may be probed together, each is
// probed once a minute, though the ticks of a clock are never whole seconds apart; one that canaries make suspect every
// ten seconds.
func TestEveryForwarderHasItsCanary(t *testing.T) {
	const forwarders, sickFrom, sick = 12, 1800, topology.NodeID("fwd07")
	const learning = 2 * time.Minute // what canaries take
	var mu sync.Mutex                // guards sent and r
	sent, r := map[topology.NodeID][]time.Time{}, rand.New(rand.NewPCG(5, 5))
	begun := time.Unix(1_700_000_000, 300e6)
	now := begun
	board := window.NewBoard(0)
	detectors := NewDetectors(board, failslow.DefaultSettings())
	c := NewCanaries(newLoop(t, anomaly.ModeObserve).Loop, detectors,
		func(context.Context, []collector.Frame) error { return nil }, probe.DefaultLimits(),
		func(n topology.NodeID) (probe.Way, bool) {
			at := now
			return tellingWay(func() probe.Took {
				mu.Lock()
				defer mu.Unlock()
				sent[n] = append(sent[n], at)
				took := 4e-3 * math.Exp(0.03*r.NormFloat64())
				if n == sick && at.Sub(begun) > sickFrom*time.Second {
					took *= 2
				}
				d := time.Duration(took * float64(time.Second))
				return probe.Took{Read: d, Write: d, Meta: d / 4}
			}), true
		})
	for s := range sickFrom + 300 {
		now = begun.Add(time.Duration(s)*time.Second + time.Duration(r.IntN(40))*time.Millisecond)
		var frames []collector.Frame
		for i := range forwarders {
			frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprintf("fwd%02d", i)),
				Role:       topology.Forwarder,
				TimeMillis: now.Add(-time.Second).UnixMilli(),
				Samples:    samples(collector.QueueLen, 0.0, collector.WriteOps, 1.0)})
		}
		board.Take(frames, now)
		detectors.Verdicts(now, &Machine{})
		c.step(t.Context(), now)
		c.runner.Wait()
		for len(c.calls) > 0 {
			(<-c.calls)(t.Context())
		}
	}
	for i := range forwarders {
		n := topology.NodeID(fmt.Sprintf("fwd%02d", i))
		var calm, late []time.Duration
		for k := range max(1, len(sent[n])) - 1 {
			gap := sent[n][k+1].Sub(sent[n][k])
			switch at := sent[n][k].Sub(begun); {
			case at < learning:
				if gap < 10*time.Second {
					t.Errorf("%s: canaries after %v while nobody knows what they take", n, gap)
				}
			case at < sickFrom*time.Second:
				calm = append(calm, gap)
			default:
				late = append(late, gap)
			}
		}
		const least = (sickFrom-int(learning/time.Second))/61 - 2
		if len(calm) < least || slices.Min(calm) < time.Minute || slices.Max(calm) > 63*time.Second {
			t.Errorf("%s: canaries after %v", n, calm)
		}
		if n == sick && (len(late) < 15 || slices.Min(late) < 10*time.Second) {
			t.Errorf("%s: under suspicion, canaries after %v", n, late)
		}
	}
}

// TestEveryPersonHasAnAnswer: of more persons than may wait anywhere each has his canary's result or a refusal, and
// none waits on when the daemon ends.
func TestEveryPersonHasAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const persons = 600
		c := NewCanaries(newLoop(t, anomaly.ModeObserve).Loop,
			NewDetectors(window.NewBoard(0), failslow.DefaultSettings()),
			func(context.Context, []collector.Frame) error { return nil }, probe.DefaultLimits(),
			func(topology.NodeID) (probe.Way, bool) {
				return tellingWay(func() probe.Took { return probe.Took{Read: time.Millisecond} }), true
			})
		ctx, end := context.WithCancel(t.Context())
		answers := make(chan error, persons)
		for i := range persons {
			go func() {
				_, err := c.Send(time.Now(), topology.ForwarderID(fmt.Sprint("fwd", i)), "ada")
				answers <- err
			}()
		}
		synctest.Wait() // all of them ask before any has an answer
		go c.Run(ctx)
		sent := 0
		for range persons {
			if err := <-answers; err == nil {
				sent++
			} else if !errors.Is(err, probe.ErrNow) {
				t.Error(err)
			}
		}
		if sent == 0 {
			t.Error("no canary was sent")
		}
		end()
		if _, err := c.Send(time.Now(), "fwd0", "ada"); !errors.Is(err, ErrEnding) && !errors.Is(err, probe.ErrNow) {
			t.Error(err)
		}
		<-c.ended
	})
}

// TestOneSlowCanaryIsChance: an operation is too slow for a canary to pass only where the one just before was, too.
func TestOneSlowCanaryIsChance(t *testing.T) {
	const ms = time.Millisecond
	begun := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		took []probe.Took // one every ten seconds, peers take 1 ms for each
		late time.Duration
		want string // passed or failed, a letter each
	}{
		"well": {[]probe.Took{{Read: ms, Write: ms, Meta: ms},
			{Read: 4 * ms, Write: ms, Meta: ms}}, 0, "pp"},
		"scatters": {[]probe.Took{{Read: ms, Write: 9 * ms, Meta: ms},
			{Read: 9 * ms, Write: ms, Meta: ms}}, 0, "fp"},
		"one after the other": {[]probe.Took{{Read: ms, Write: ms, Meta: ms}, {Read: 9 * ms, Write: ms, Meta: ms},
			{Read: ms, Write: ms, Meta: 9 * ms}, {Read: ms, Write: ms, Meta: 9 * ms}}, 0, "pppf"},
		"slow": {[]probe.Took{{Read: 9 * ms, Write: ms, Meta: ms}, {Read: 9 * ms, Write: ms, Meta: ms},
			{Read: 9 * ms, Write: ms, Meta: ms}}, 0, "fff"},
		"the one before is old": {[]probe.Took{{Read: ms, Write: ms, Meta: ms}, {Read: 9 * ms, Write: ms, Meta: ms}},
			time.Minute, "pf"},
	} {
		canaries := &Canaries{newest: map[topology.ForwarderID]anomaly.Canary{},
			clean: map[topology.NodeID]probe.Took{}}
		for i := range 3 {
			canaries.clean[topology.NodeID(fmt.Sprint("peer", i))] = probe.Took{Read: ms, Write: ms, Meta: ms}
		}
		got := ""
		for i, took := range c.took {
			r := probe.Result{Node: "fwd1", At: begun.Add(time.Duration(i) * (10*time.Second + c.late)), Took: took}
			if canaries.normal(r) {
				got += "p"
			} else {
				got += "f"
			}
			canaries.keepNewest(canaries.canary(r))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
