package desk

import (
	"context"
	"fmt"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// BeginCanary writes down that a person asks for a canary through a forwarder; nothing may be sent
// before that. Again says that this very request, by its key, was written down before. Errors:
// ErrNotAllowed, ErrInvalid (no forwarder of the machine), ErrConflict.
func (d *Desk) BeginCanary(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) (again bool,
	err error) {
	if err := by.May(remap.Operator, "a canary probe"); err != nil {
		return false, err
	}
	if err := remap.ActCanary.CheckReason(a.Reason); err != nil {
		return false, err
	}
	s := d.situation()
	if n, ok := s.Machine.Node(f.Node()); !ok || n.Role != topology.Forwarder {
		return false, fmt.Errorf("%w: %q is not a forwarding node of %s", remap.ErrInvalid, f, s.Machine.Name)
	}
	body := digest("canary "+string(f), a.Reason)
	err = d.do(ctx, func() error {
		var err error
		if _, again, err = d.book.used(by, a.Key, body); err != nil || again {
			return err
		}
		now := time.Now().UTC()
		return d.record(&journal.Record{At: now, Kind: journal.StepCanary, Actor: by.Name, Role: by.Role, Via: by.Via,
			Reason: a.Reason,
			Key:    a.Key, Body: body,
			Canary: &remap.Canary{Forwarder: f, At: now, By: by.Name}})
	})
	return again, err
}

// EndCanary writes down what came of a canary. Errors are the journal's.
func (d *Desk) EndCanary(ctx context.Context, by remap.Person, c remap.Canary) error {
	return d.do(ctx, func() error {
		return d.record(&journal.Record{At: time.Now().UTC(), Kind: journal.StepCanaryDone, Actor: by.Name,
			Role: by.Role, Via: by.Via,
			Canary: &c})
	})
}
