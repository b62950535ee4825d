package targetslow

import (
	"fmt"

	"fairway/anomaly"
)

const stateVersion = 2

// state is the evidence so far; blocks that are not full are lost.
type state struct {
	Version int
	Targets []kept
	Groups  map[string]lasting
}

// MarshalBinary saves the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	s := state{Version: stateVersion, Groups: map[string]lasting{}}
	for _, t := range d.order {
		s.Targets = append(s.Targets, t.kept)
	}
	for name, g := range d.groups {
		s.Groups[name] = g.lasting
	}
	return anomaly.Save(s)
}

// UnmarshalBinary takes up a saved state; the settings stay those of New. On an error the detector is as
// it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	var s state
	if err := anomaly.Load(b, &s, &s.Version, stateVersion); err != nil {
		return err
	}
	targets, order := map[subject]*target{}, make([]*target, len(s.Targets))
	for i, k := range s.Targets {
		order[i] = &target{kept: k}
		targets[subject{k.Group, k.ID}] = order[i]
	}
	if len(targets) != len(order) {
		return fmt.Errorf("%w: a target is listed twice", anomaly.ErrState)
	}
	d.targets, d.order, d.groups = targets, order, map[string]*group{}
	for name, l := range s.Groups {
		d.groups[name] = &group{lasting: l}
	}
	return nil
}
