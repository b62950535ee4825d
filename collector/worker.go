package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// order asks a worker to read for one tick.
type order struct {
	ctx context.Context
	now time.Time
}

// worker owns one source's goroutine. Between sending an order and receiving the worker back on
// the results channel its reading, tick, took and err belong to the goroutine; the rest always
// belongs to the runner.
type worker struct {
	source Source
	log    *slog.Logger
	start  chan order
	done   chan struct{}

	reading Reading
	tick    time.Time
	took    time.Duration
	err     error

	busy     bool
	arrived  bool
	failures uint64
	resets   uint64
	logged   string // the last state logged, so that a lasting failure is logged once
}

func newWorker(s Source, log *slog.Logger) *worker {
	return &worker{source: s, log: log, start: make(chan order, 1), done: make(chan struct{})}
}

func (w *worker) loop(ctx context.Context, results chan<- *worker) {
	defer close(w.done)
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-w.start:
			w.tick = o.now
			w.read(o)
			results <- w // has room for every worker once
		}
	}
}

// read runs the source behind the panic fence.
func (w *worker) read(o order) {
	r := &w.reading
	*r = Reading{Now: o.now, Samples: r.Samples[:0], Jobs: r.Jobs[:0], Targets: r.Targets[:0], Routes: r.Routes[:0]}
	begun := time.Now()
	w.err = Fenced(func() error { return w.source.Read(o.ctx, r) })
	w.took = time.Since(begun)
}

// status says how the source did in this tick, and counts.
func (w *worker) status(at time.Time) SourceStatus {
	st := SourceStatus{Name: w.source.Name()}
	switch {
	case !w.arrived:
		// The goroutine still owns the reading: say nothing of it.
		w.failures++
		st.Err = "no answer before the deadline"
		w.say(st.Err)
	case errors.Is(w.err, ErrNoData):
		st.Duration, st.Err = w.took, w.err.Error()
		w.resets += uint64(w.reading.Resets)
		w.say(st.Err)
	case w.err != nil:
		st.Duration, st.Err = w.took, w.err.Error()
		w.resets += uint64(w.reading.Resets)
		w.failures++
		w.say(st.Err)
	default:
		st.Duration = w.took
		w.resets += uint64(w.reading.Resets)
		w.say("")
	}
	if w.arrived {
		st.Note = w.reading.Note
	}
	st.Failures, st.Resets = w.failures, w.resets
	return st
}

func (w *worker) say(state string) {
	if state == w.logged {
		return
	}
	w.logged = state
	var panicked *Panicked
	switch {
	case state == "":
		w.log.Info("source is well again", "source", w.source.Name())
	case w.arrived && errors.Is(w.err, ErrNoData):
		w.log.Info("source has nothing to read on this node", "source", w.source.Name(), "why", state)
	case w.arrived && errors.As(w.err, &panicked):
		w.log.Warn("source failed", "source", w.source.Name(), "err", state, "stack", string(panicked.Stack))
	default:
		w.log.Warn("source failed", "source", w.source.Name(), "err", state)
	}
}

// Panicked is the error that Fenced makes of a panic.
type Panicked struct {
	Value any
	Stack []byte
}

func (p *Panicked) Error() string { return fmt.Sprintf("BUG: panic: %v", p.Value) }

// Fenced calls do, whose panic becomes a *Panicked: what one source's files make it do ends neither the agent nor the
// other sources. Every goroutine that reads for a source has it.
func Fenced(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panicked{Value: p, Stack: debug.Stack()}
		}
	}()
	return do()
}
