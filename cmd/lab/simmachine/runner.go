package simmachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Runner lets a machine live in real time, one second a second, and owns it while it runs: whatever
// changes or reads the machine then goes through Do.
type Runner struct {
	Machine *Machine
	// Emit receives each second's frames; they are good until it returns.
	Emit func([]collector.Frame) error
	// Before, when set, is called at each tick before the second is lived through (scripted faults).
	Before func(m *Machine, now time.Time)
	Log    *slog.Logger

	orders chan func(*Machine)
}

// errStopped answers orders after the runner's end.
var errStopped = errors.New("the simulated machine is not running")

// NewRunner makes a runner for a machine.
func NewRunner(m *Machine, emit func([]collector.Frame) error) *Runner {
	return &Runner{Machine: m, Emit: emit, Log: slog.Default(), orders: make(chan func(*Machine))}
}

// Run lives until ctx ends. A second whose frames cannot be delivered is logged and goes by.
func (r *Runner) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-r.orders:
			f(r.Machine)
		case now := <-tick.C:
			now = now.Truncate(time.Second)
			if r.Before != nil {
				r.Before(r.Machine, now)
			}
			if err := r.Emit(r.Machine.Step(now)); err != nil {
				r.Log.Error("a simulated second was not delivered", "second", now, "err", err)
			}
		}
	}
}

// Do runs f between two seconds; f owns the machine until it returns.
func (r *Runner) Do(ctx context.Context, f func(*Machine)) error {
	done := make(chan struct{})
	select {
	case r.orders <- func(m *Machine) { f(m); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errStopped, context.Cause(ctx))
	}
}

// Remap carries out a remap order as a node's agent would.
func (r *Runner) Remap(ctx context.Context, o wire.Order) (json.RawMessage, error) {
	var q wire.RemapOrder
	if err := json.Unmarshal(o.Body, &q); err != nil {
		return nil, fmt.Errorf("order %s: %w", o.ID, err)
	}
	return r.answer(ctx, q.Node, func(m *Machine) error { return m.Remap(q.Node, q.Forwarder) })
}

// Route answers which forwarder a node uses.
func (r *Runner) Route(ctx context.Context, o wire.Order) (json.RawMessage, error) {
	var q wire.RouteOrder
	if err := json.Unmarshal(o.Body, &q); err != nil {
		return nil, fmt.Errorf("order %s: %w", o.ID, err)
	}
	return r.answer(ctx, q.Node, func(*Machine) error { return nil })
}

func (r *Runner) answer(ctx context.Context, n topology.NodeID, f func(*Machine) error) (json.RawMessage, error) {
	var route collector.Route
	var err error
	if e := r.Do(ctx, func(m *Machine) {
		if err = f(m); err == nil {
			route, err = m.Route(n)
		}
	}); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.RouteAnswer{Forwarder: route.Forwarder, Generation: route.Generation})
}
