package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fairway/collector/topology"
)

const (
	// DefaultInterval is the time between ticks.
	DefaultInterval = time.Second
	// deadline is how long after its tick a source may take.
	deadline  = 800 * time.Millisecond
	stopGrace = 2 * time.Second
)

// Runner reads a node's sources once a second, aligned to the wall clock's second, and emits one
// frame for each second that just ended. Each source has its own goroutine, deadline and panic
// fence: one that hangs or fails costs its own samples and nothing else. A second that the runner
// slept through stays a gap.
type Runner struct {
	Node    topology.NodeID
	Role    topology.Role
	Sources []Source
	// Emit receives the frame; it and its slices are valid only during the call.
	Emit func(*Frame)
	// Phase delays the tick into the second, 0 <= Phase < DefaultInterval, so that many agents need not
	// send at once.
	Phase time.Duration
	Log   *slog.Logger // nil is slog.Default

	workers []*worker
	results chan *worker
	frame   Frame
}

// Run ticks until ctx is done, then closes the sources. It returns an error that names the sources
// which would not end.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.defaults(); err != nil {
		return err
	}
	r.results = make(chan *worker, len(r.Sources))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, s := range r.Sources {
		w := newWorker(s, r.Log)
		r.workers = append(r.workers, w)
		go w.loop(ctx, r.results)
	}
	next := r.nextTick(time.Now())
	timer := time.NewTimer(wallUntil(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.stop()
		case <-timer.C:
		}
		r.tick(ctx, next)
		next = r.following(next, time.Now())
		timer.Reset(wallUntil(next))
	}
}

func (r *Runner) defaults() error {
	if r.Log == nil {
		r.Log = slog.Default()
	}
	if r.Phase < 0 || r.Phase >= DefaultInterval {
		return fmt.Errorf("phase %v is outside 0..%v", r.Phase, DefaultInterval)
	}
	return nil
}

// nextTick is the first tick after now, by the wall clock.
func (r *Runner) nextTick(now time.Time) time.Time {
	return now.Round(0).Add(-r.Phase).Truncate(DefaultInterval).Add(DefaultInterval + r.Phase)
}

// following is the tick after the one at last. Of a clock that was slewed back a little no second is
// repeated; one that was set back is followed at once: seconds reported twice are better than none.
func (r *Runner) following(last, now time.Time) time.Time {
	next := last.Add(DefaultInterval)
	if now.After(last) || next.Sub(now.Round(0)) > 2*DefaultInterval {
		return r.nextTick(now)
	}
	return next
}

// wallUntil compares wall clocks, so that ticks stay aligned when the clock is corrected.
func wallUntil(t time.Time) time.Duration { return t.Sub(time.Now().Round(0)) }

// tick reads every source that is free and emits what came before the deadline.
func (r *Runner) tick(ctx context.Context, at time.Time) {
	readCtx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for len(r.results) > 0 { // of sources that were late for an earlier tick
		(<-r.results).busy = false
	}
	waiting := 0
	for _, w := range r.workers {
		w.arrived = false
		if w.busy {
			continue
		}
		w.busy = true
		waiting++
		w.start <- order{ctx: readCtx, now: at}
	}
	for waiting > 0 {
		select {
		case w := <-r.results:
			w.busy = false
			if w.tick.Equal(at) {
				w.arrived = true
				waiting--
			}
		case <-readCtx.Done():
			waiting = 0
		}
	}
	if ctx.Err() != nil {
		return
	}
	r.build(at)
	r.Emit(&r.frame)
}

// build merges the readings that arrived; of a metric that two sources report the first counts.
func (r *Runner) build(at time.Time) {
	f := &r.frame
	*f = Frame{
		Node: r.Node, Role: r.Role, TimeMillis: at.Add(-r.Phase - DefaultInterval).UnixMilli(),
		Samples: f.Samples[:0], Jobs: f.Jobs[:0], Targets: f.Targets[:0], Routes: f.Routes[:0], Sources: f.Sources[:0],
	}
	var seen [MetricCount]bool
	for _, w := range r.workers {
		f.Sources = append(f.Sources, w.status(at))
		if !w.arrived {
			continue
		}
		for _, s := range w.reading.Samples {
			if s.Metric.Known() && !seen[s.Metric] {
				seen[s.Metric] = true
				f.Samples = append(f.Samples, s)
			}
		}
		f.Jobs = append(f.Jobs, w.reading.Jobs...)
		f.Targets = append(f.Targets, w.reading.Targets...)
		f.Routes = append(f.Routes, w.reading.Routes...)
		f.RoutesComplete = f.RoutesComplete || w.reading.RoutesComplete
	}
}

// stop closes the sources, which frees a read that hangs, and waits for their goroutines.
func (r *Runner) stop() error {
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			if err := w.source.Close(); err != nil {
				r.Log.Warn("closing a source failed", "source", w.source.Name(), "err", err)
			}
		})
	}
	closed := make(chan struct{})
	go func() { wg.Wait(); close(closed) }()
	grace, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	var errs []error
	if !ended(grace, closed) {
		errs = append(errs, fmt.Errorf("closing the sources did not end in %v", stopGrace))
	}
	for _, w := range r.workers {
		if !ended(grace, w.done) {
			errs = append(errs, fmt.Errorf("source %s did not end in %v", w.source.Name(), stopGrace))
		}
	}
	return errors.Join(errs...)
}

// ended waits for done within the grace.
func ended(grace context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-grace.Done():
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
