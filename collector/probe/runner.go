package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
)

// Limits bound the canaries.
type Limits struct {
	// IdleEvery and SuspectEvery are the least times between the starts of two probes of one node.
	IdleEvery, SuspectEvery time.Duration
	// Timeout ends a probe; one that was ended is as slow as that.
	Timeout time.Duration
	// AtOnce is how many nodes are probed together.
	AtOnce int
}

// DefaultLimits are one probe a minute of an idle node, one in 10 s of a suspect, four nodes at once.
func DefaultLimits() Limits {
	return Limits{IdleEvery: time.Minute, SuspectEvery: 10 * time.Second, Timeout: 10 * time.Second, AtOnce: 4}
}

// Runner sends probes within its limits, whoever asks for them and however often; never two at
// once on a node. The time is an argument of Step.
type Runner struct {
	limits Limits
	way    func(topology.NodeID) (Way, bool) // false: no way to probe it is known
	answer func(Result)

	wait sync.WaitGroup
	mu   sync.Mutex // guards everything that follows
	last map[topology.NodeID]time.Time
	busy map[topology.NodeID]bool
	cost Cost
}

// Cost is what the probes took so far.
type Cost struct {
	Probes, Failed, Bytes, Operations uint64
	Seconds                           float64 // of waiting for answers
}

// NewRunner makes a runner that calls answer with each result, from goroutines of its own.
func NewRunner(l Limits, way func(topology.NodeID) (Way, bool), answer func(Result)) *Runner {
	return &Runner{limits: l, way: way, answer: answer, last: map[topology.NodeID]time.Time{},
		busy: map[topology.NodeID]bool{}}
}

// Step starts the probes that are wanted and due at now and returns their nodes; suspects come first, of each kind
// those whose last one is longest ago, so that a layer with more nodes than may be probed at once has its turn too.
// Who is wanted and not started is to be wanted again. Probes end with ctx.
func (r *Runner) Step(ctx context.Context, now time.Time, suspects,
	idle []topology.NodeID) (started []topology.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, want := range []struct {
		nodes []topology.NodeID
		every time.Duration
	}{{suspects, r.limits.SuspectEvery}, {idle, r.limits.IdleEvery}} {
		inTurn := slices.Clone(want.nodes)
		slices.SortStableFunc(inTurn, func(a, b topology.NodeID) int { return r.last[a].Compare(r.last[b]) })
		for _, n := range inTurn {
			if r.start(ctx, now, n, want.every) {
				started = append(started, n)
			}
		}
	}
	return started
}

// start is one of Step, with r.mu held.
func (r *Runner) start(ctx context.Context, now time.Time, n topology.NodeID, every time.Duration) bool {
	last, before := r.last[n]
	if r.busy[n] || len(r.busy) >= r.limits.AtOnce || before && now.Sub(last) < every {
		return false
	}
	way, ok := r.way(n)
	if !ok {
		return false
	}
	r.last[n], r.busy[n] = now, true
	r.wait.Go(func() { r.probe(ctx, now, n, way, r.answer) })
	return true
}

// ErrNow is wrapped by every refusal of Ask: the limits stand against a probe now, or no way is known.
var ErrNow = errors.New("no canary is sent now")

// May says why no probe of a node would be started at now for a person; nil: one would.
func (r *Runner) May(now time.Time, n topology.NodeID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.may(now, n)
	return err
}

// may is May with r.mu held, and the way to the node.
func (r *Runner) may(now time.Time, n topology.NodeID) (Way, error) {
	way, ok := r.way(n)
	since, before := r.last[n]
	switch wait := r.limits.SuspectEvery - now.Sub(since); {
	case !ok:
		return nil,
			fmt.Errorf("%w: no way to %s is known; set probe.export, or probe.mounts for it, in the daemon's file",
				ErrNow, n)
	case r.busy[n]:
		return nil, fmt.Errorf("%w: one is under way on %s since %s", ErrNow, n, since.Format("15:04:05"))
	case len(r.busy) >= r.limits.AtOnce:
		return nil, fmt.Errorf("%w: %d are under way, no more at once; try again in a moment", ErrNow, len(r.busy))
	case before && wait > 0:
		return nil, fmt.Errorf("%w: the last one on %s began %s ago, at most one in %s; try again in %s", ErrNow, n,
			now.Sub(since).Truncate(time.Second), r.limits.SuspectEvery, (wait + time.Second - 1).Truncate(time.Second))
	}
	return way, nil
}

// Ask starts one probe for a person, within the limits of a suspect's; its result goes to got alone.
// Errors wrap ErrNow. It must not be called beside Wait.
func (r *Runner) Ask(ctx context.Context, now time.Time, n topology.NodeID, got func(Result)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	way, err := r.may(now, n)
	if err != nil {
		return err
	}
	r.last[n], r.busy[n] = now, true
	r.wait.Go(func() { r.probe(ctx, now, n, way, got) })
	return nil
}

func (r *Runner) probe(ctx context.Context, now time.Time, n topology.NodeID, way Way, answer func(Result)) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Timeout)
	defer cancel()
	begun := time.Now()
	took, err := way.Probe(ctx)
	r.mu.Lock()
	delete(r.busy, n)
	r.cost.Probes++
	r.cost.Seconds += time.Since(begun).Seconds()
	if err != nil {
		r.cost.Failed++
	} else {
		r.cost.Bytes += uint64(way.Bytes())
		r.cost.Operations += 3
	}
	r.mu.Unlock()
	answer(Result{Node: n, At: now, Bytes: way.Bytes(), Took: took, Err: err})
}

// Wait returns when every probe has ended.
func (r *Runner) Wait() { r.wait.Wait() }

// WriteMetrics writes the cost in Prometheus text format.
func (r *Runner) WriteMetrics(w io.Writer) {
	r.mu.Lock()
	c, busy := r.cost, len(r.busy)
	r.mu.Unlock()
	fmt.Fprintf(w, "fairway_probes_total %d\n", c.Probes)
	fmt.Fprintf(w, "fairway_probes_failed_total %d\n", c.Failed)
	fmt.Fprintf(w, "fairway_probes_running %d\n", busy)
	fmt.Fprintf(w, "fairway_probe_bytes_total %d\n", c.Bytes)
	fmt.Fprintf(w, "fairway_probe_operations_total %d\n", c.Operations)
	fmt.Fprintf(w, "fairway_probe_seconds_total %g\n", c.Seconds)
}
