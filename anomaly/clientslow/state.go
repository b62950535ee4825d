package clientslow

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
var ErrState = errors.New("saved state of the clients' detector")

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
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(state{stateVersion, d.now, d.noise, d.swings, d.nodes})
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
	for id, n := range s.Nodes {
		if n == nil {
			return fmt.Errorf("%w: node %s is damaged", ErrState, id)
		}
	}
	if s.Nodes == nil {
		s.Nodes = map[topology.NodeID]*node{}
	}
	d.now, d.noise, d.swings, d.nodes, d.order = s.Now, s.Noise, s.Swings, s.Nodes, slices.Sorted(maps.Keys(s.Nodes))
	return nil
}
