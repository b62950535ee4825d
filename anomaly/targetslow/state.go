package targetslow

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// ErrState says that a saved state cannot be taken up.
var ErrState = errors.New("saved state of the targets' detector")

const stateVersion = 1

// state is the evidence so far; blocks that are not full are lost.
type state struct {
	Version int
	Targets []saved
}

type saved struct {
	Group string
	ID    topology.NodeID
	Tests [tests]failslow.SequentialTest
	Alarm bool
	Since int64
	Ratio float64
}

// MarshalBinary saves the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	s := state{Version: stateVersion}
	for _, k := range d.order {
		t := d.targets[k]
		s.Targets = append(s.Targets, saved{k.group, k.id, t.tests, t.alarm, t.since, t.ratio})
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

// UnmarshalBinary takes up a saved state; the settings stay those of New. On an error the detector is as
// it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	var s state
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrState, s.Version, stateVersion)
	}
	targets, order := map[subject]*target{}, make([]subject, 0, len(s.Targets))
	for _, t := range s.Targets {
		k := subject{t.Group, t.ID}
		targets[k] = &target{tests: t.Tests, alarm: t.Alarm, since: t.Since, ratio: t.Ratio}
		order = append(order, k)
	}
	if len(targets) != len(order) {
		return fmt.Errorf("%w: a target is listed twice", ErrState)
	}
	d.targets, d.order = targets, order
	return nil
}
