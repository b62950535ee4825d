package remap

import (
	"time"

	"fairway/collector/topology"
)

// Frozen is the part of a situation that a plan touches, kept with the plan for ever.
type Frozen struct {
	At         time.Time                                `json:"at"`
	Healthy    int                                      `json:"healthy"`
	Idle       int                                      `json:"idle"`
	Unknown    int                                      `json:"unknown,omitempty"` // forwarders of unknown load
	Forwarders map[topology.ForwarderID]FrozenForwarder `json:"forwarders,omitempty"`
	Generation map[topology.NodeID]uint64               `json:"generation,omitempty"` // of the mounts, where reported
}

// FrozenForwarder is one touched forwarder at that instant.
type FrozenForwarder struct {
	State   ForwarderState `json:"state"`
	Busy    *float64       `json:"busy"` // share of the peak, 0..1; null where it was not known
	Load    Load           `json:"load"`
	Clients int            `json:"clients"`
	// Slow is by how much operations took longer through it than through its peers, by the findings about it.
	Slow []Slowness `json:"slow,omitempty"`
}

// Freeze keeps what the situation says of the forwarders and nodes of moves.
func (s *Situation) Freeze(moves []Move) Frozen {
	f := Frozen{At: s.At, Forwarders: map[topology.ForwarderID]FrozenForwarder{},
		Generation: map[topology.NodeID]uint64{}}
	f.Healthy, f.Idle = s.Healthy()
	f.Unknown = s.Unknown()
	for _, m := range moves {
		for _, id := range append(m.Sources(), m.To) {
			if _, done := f.Forwarders[id]; !done && id != "" {
				load := s.Load[id]
				f.Forwarders[id] = FrozenForwarder{State: s.State(id), Busy: load.Busy(), Load: load,
					Clients: s.Clients[id], Slow: slownessOf(s.Findings, id)}
			}
		}
		if g := s.Routes[m.Node].Generation; g > 0 {
			f.Generation[m.Node] = g
		}
	}
	return f
}
