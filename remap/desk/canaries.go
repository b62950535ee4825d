package desk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// CanarySender sends canaries, within the limits that hold for everybody.
type CanarySender interface {
	// May returns why no canary would be sent through a forwarder at now; nil: one would.
	May(now time.Time, f topology.ForwarderID) error
	// Send sends one for a person and waits for its result. A canary that failed is not an error.
	Send(now time.Time, f topology.ForwarderID, by string) (anomaly.Canary, error)
}

// Canaries sends canaries for persons, and keeps in the journal who asked and what it found.
type Canaries struct {
	desk   *Desk
	sender CanarySender

	mu     sync.Mutex // guards what follows
	newest map[topology.ForwarderID]*canaryRequest
}

// canaryRequest is a request for a canary; the same request by its key waits for the same answer.
type canaryRequest struct {
	by, key string
	done    chan struct{} // closed once canary and err hold
	canary  anomaly.Canary
	err     error
}

// NewCanaries lets persons ask for canaries.
func NewCanaries(d *Desk, sender CanarySender) *Canaries {
	return &Canaries{desk: d, sender: sender, newest: map[topology.ForwarderID]*canaryRequest{}}
}

// Ask sends one canary through a forwarder for a person, and returns what it found. It is in the journal before it
// is sent, and again with its result. Once begun it completes though ctx may end, and the same request by its key
// has the same answer. Errors: ErrNotAllowed, ErrInvalid (not a forwarder of the machine), ErrConflict, and ErrState
// where the limits do not allow one now or no way to the forwarder is known. A canary that failed is not an error:
// its result says so.
func (c *Canaries) Ask(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) (anomaly.Canary,
	error) {
	r, first, err := c.request(by, f, a.Key)
	if err != nil {
		return anomaly.Canary{}, err
	}
	if first {
		defer close(r.done)
		if r.err = c.begin(ctx, by, f, a); r.err == nil {
			r.canary, r.err = c.send(context.WithoutCancel(ctx), by, f)
		}
		return r.canary, r.err
	}
	select {
	case <-r.done:
		return r.canary, r.err
	case <-ctx.Done():
		return anomaly.Canary{}, fmt.Errorf("wait for the canary through %s: %w", f, ctx.Err())
	}
}

// request finds the request that this one repeats, or makes it the newest unless the limits do not allow it.
func (c *Canaries) request(by remap.Person, f topology.ForwarderID, key string) (r *canaryRequest, first bool,
	err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.newest[f]; r != nil && key != "" && r.by == by.Name && r.key == key {
		return r, false, nil
	}
	r = &canaryRequest{by: by.Name, key: key, done: make(chan struct{})}
	if !c.desk.cfg.Situation().IsForwarder(f) {
		return r, true, nil // the desk refuses it
	}
	if err := c.sender.May(time.Now(), f); err != nil {
		return nil, false, fmt.Errorf("%w: %w", remap.ErrState, err)
	}
	c.newest[f] = r
	return r, true, nil
}

// send sends a canary and keeps its result.
func (c *Canaries) send(ctx context.Context, by remap.Person, f topology.ForwarderID) (anomaly.Canary, error) {
	now := time.Now()
	out, err := c.sender.Send(now, f, by.Name)
	if err != nil {
		err = fmt.Errorf("%w: %w", remap.ErrState, err)
		out = anomaly.Canary{Forwarder: f, At: now.UTC(), By: by.Name, Error: err.Error()}
	}
	if bad := c.end(ctx, by, out); bad != nil && err == nil {
		err = fmt.Errorf("the canary's result was not recorded: %w", bad)
	}
	return out, err
}

// begin records that a person asks for a canary through a forwarder; nothing may be sent before that.
func (c *Canaries) begin(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) error {
	if err := by.May(remap.Operator, "a canary probe"); err != nil {
		return err
	}
	if err := remap.ActCanary.CheckReason(a.Reason); err != nil {
		return err
	}
	s, rec := c.desk.cfg.Situation(), c.desk.recorder
	if !s.IsForwarder(f) {
		return fmt.Errorf("%w: %q is not a forwarding node of %s", remap.ErrInvalid, f, s.Machine.Name)
	}
	body := digest("canary "+string(f), a.Reason)
	return rec.do(ctx, func() error {
		if _, again, err := rec.state.keys.used(by, a.Key, body); err != nil || again {
			if again {
				err = fmt.Errorf("%w: this canary was asked for before; the audit of %s has its result", remap.ErrState,
					f)
			}
			return err
		}
		now := time.Now().UTC()
		return rec.recordFor(by, a, body, &journal.Record{At: now, Kind: journal.StepCanary,
			Canary: &anomaly.Canary{Forwarder: f, At: now, By: by.Name}})
	})
}

// end records the result of a canary. Errors are the journal's.
func (c *Canaries) end(ctx context.Context, by remap.Person, one anomaly.Canary) error {
	rec := c.desk.recorder
	return rec.do(ctx, func() error {
		return rec.recordFor(by, remap.Answer{}, "", &journal.Record{Kind: journal.StepCanaryDone, Canary: &one})
	})
}
