package clientslow

import (
	"fmt"
	"maps"
	"slices"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const stateVersion = 3

// state is what outlives a restart.
type state struct {
	Version int
	Now     int64
	Noise   [classes]spread
	Swings  [classes]swing // absent in older states: not learnt yet
	Nodes   map[topology.NodeID]*node
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	return anomaly.Save(state{stateVersion, d.now, d.noise, d.swings, d.nodes})
}

// UnmarshalBinary takes up a saved state; the settings stay those of New. On an error the detector is as
// it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	var s state
	if err := anomaly.Load(b, &s, &s.Version, stateVersion); err != nil {
		return err
	}
	for id, n := range s.Nodes {
		if n == nil {
			return fmt.Errorf("%w: node %s is damaged", anomaly.ErrState, id)
		}
	}
	if s.Nodes == nil {
		s.Nodes = map[topology.NodeID]*node{}
	}
	d.now, d.noise, d.swings, d.nodes, d.order = s.Now, s.Noise, s.Swings, s.Nodes, slices.Sorted(maps.Keys(s.Nodes))
	return nil
}
