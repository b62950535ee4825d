package backend

import (
	"fmt"
	"maps"
	"slices"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const stateVersion = 1

// state is what was learnt, and the evidence so far.
type state struct {
	Version int
	Nodes   map[topology.NodeID]*node
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	return anomaly.Save(state{stateVersion, d.nodes})
}

// UnmarshalBinary takes up a saved state; none at all is an empty one. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var s state
	if err := anomaly.Load(b, &s, &s.Version, stateVersion); err != nil {
		return err
	}
	if s.Nodes == nil {
		s.Nodes = map[topology.NodeID]*node{}
	}
	for id, n := range s.Nodes {
		if n == nil {
			return fmt.Errorf("%w: nothing of %s", anomaly.ErrState, id)
		}
		for c := range n.Usual {
			if n.Usual[c] == nil {
				n.Usual[c] = map[cell]habit{}
			}
		}
	}
	d.nodes, d.order = s.Nodes, slices.Sorted(maps.Keys(s.Nodes))
	return nil
}
