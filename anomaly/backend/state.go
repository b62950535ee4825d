package backend

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"slices"

	"fairway/collector/topology"
)

// ErrState says that a saved state cannot be taken up.
var ErrState = errors.New("saved state of the back ends' detector")

const stateVersion = 1

// state is what was learnt, and the evidence so far.
type state struct {
	Version int
	Nodes   map[topology.NodeID]*node
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(state{stateVersion, d.nodes})
	return b.Bytes(), err
}

// UnmarshalBinary takes up a saved state; none at all is an empty one. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var s state
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrState, s.Version, stateVersion)
	}
	if s.Nodes == nil {
		s.Nodes = map[topology.NodeID]*node{}
	}
	for id, n := range s.Nodes {
		if n == nil {
			return fmt.Errorf("%w: nothing of %s", ErrState, id)
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
