package targetslow

import (
	"fmt"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

const stateVersion = 2

// state is the evidence so far; blocks that are not full are lost.
type state struct {
	Version int
	Targets []saved
	Groups  map[string]lasting
}

type saved struct {
	Group string
	ID    topology.NodeID
	Tests [tests]failslow.SequentialTest
	Habit scatter
	Alarm bool
	Since int64
	Ratio float64
}

// MarshalBinary saves the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	s := state{Version: stateVersion, Groups: map[string]lasting{}}
	for _, k := range d.order {
		t := d.targets[k]
		s.Targets = append(s.Targets, saved{k.group, k.id, t.tests, t.habit, t.alarm, t.since, t.ratio})
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
	targets, order := map[subject]*target{}, make([]subject, 0, len(s.Targets))
	for _, t := range s.Targets {
		k := subject{t.Group, t.ID}
		targets[k] = &target{tests: t.Tests, habit: t.Habit, alarm: t.Alarm, since: t.Since, ratio: t.Ratio}
		order = append(order, k)
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
