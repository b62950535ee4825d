package remap

import (
	"context"
	"fmt"
	"time"

	"fairway/collector/topology"
)

// The steps of a canary probe that a person asked for: that it was asked for, before anything is
// sent, and what came of it. Canaries that the detectors send by rule are in the store alone.
const (
	StepCanary     RecordKind = "canary"
	StepCanaryDone RecordKind = "canary_done"
)

// Canary is one canary probe: a small write, a read of it and a stat through one forwarder.
type Canary struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	At        time.Time            `json:"at"` // of its start
	// By is the person who asked for it; empty: the detectors, by rule.
	By    string     `json:"by,omitempty"`
	Bytes int        `json:"bytes,omitempty"` // that it moved, both directions together
	Took  CanaryTook `json:"took"`
	// Peers is the median over the newest canaries of PeersOf other forwarders that nobody suspects.
	Peers   CanaryTook `json:"peers"`
	PeersOf int        `json:"peers_of"`
	// Error is why it did not come to its end; Took then holds what came before.
	Error string `json:"error,omitempty"`
}

// CanaryTook is how long each operation of a canary took, seconds; nil: it was not reached.
type CanaryTook struct {
	Read  *float64 `json:"read_seconds"`
	Write *float64 `json:"write_seconds"`
	Stat  *float64 `json:"stat_seconds"`
}

// String is what the audit says of it.
func (c *Canary) String() string {
	if c.Error != "" {
		return "failed: " + c.Error
	}
	text := ""
	for _, one := range []struct {
		name string
		took *float64
	}{{"read", c.Took.Read}, {"write", c.Took.Write}, {"stat", c.Took.Stat}} {
		if one.took == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %.3g ms", one.name, *one.took*1000)
	}
	return text
}

// BeginCanary writes down that a person asks for a canary through a forwarder; nothing may be sent
// before that. Again says that this very request, by its key, was written down before. Errors:
// ErrNotAllowed, ErrInvalid (no forwarder of the machine), ErrConflict.
func (d *Desk) BeginCanary(ctx context.Context, by Person, f topology.ForwarderID, a Answer) (again bool, err error) {
	if err := by.may(Operator, "a canary probe"); err != nil {
		return false, err
	}
	if err := checkText(a.Reason); err != nil {
		return false, err
	}
	s := d.situation()
	if n, ok := s.Machine.Node(f.Node()); !ok || n.Role != topology.Forwarder {
		return false, fmt.Errorf("%w: %q is not a forwarding node of %s", ErrInvalid, f, s.Machine.Name)
	}
	body := digest("canary "+string(f), a.Reason)
	err = d.do(ctx, func() error {
		var err error
		if _, again, err = d.book.used(by, a.Key, body); err != nil || again {
			return err
		}
		now := time.Now().UTC()
		return d.record(&Record{At: now, Kind: StepCanary, Actor: by.Name, Role: by.Role, Via: by.Via, Reason: a.Reason,
			Key: a.Key, Body: body,
			Canary: &Canary{Forwarder: f, At: now, By: by.Name}})
	})
	return again, err
}

// EndCanary writes down what came of a canary. Errors are the journal's.
func (d *Desk) EndCanary(ctx context.Context, by Person, c Canary) error {
	return d.do(ctx, func() error {
		return d.record(&Record{At: time.Now().UTC(), Kind: StepCanaryDone, Actor: by.Name, Role: by.Role, Via: by.Via,
			Canary: &c})
	})
}
