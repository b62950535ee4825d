package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Target is a forwarder that nodes of another one can be moved to.
type Target struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	// Why it stands where it does: how busy it is and what speaks against it.
	Why string `json:"why"`
}

// Targets are the forwarders that nodes of one can be moved to, the best first: the least busy, then who serves the
// fewest nodes; behind them those that a plan fills, or whose back end is slow. Promised is as the desk's.
func Targets(s *remap.Situation, from topology.ForwarderID, promised map[topology.ForwarderID]string) []Target {
	type candidate struct {
		id      topology.ForwarderID
		against string
		busy    float64
		clients int
	}
	var all []candidate
	for _, n := range s.Machine.ByRole(topology.Forwarder) {
		c := candidate{id: topology.ForwarderID(n.ID), busy: math.Inf(1)}
		state, load := s.State(c.id), s.Load[c.id]
		if c.id == from ||
			state != remap.ForwarderOK && state != remap.ForwarderIdle && state != remap.ForwarderUnknown {
			continue
		}
		if busy := load.Busy(); busy != nil {
			c.busy = *busy
		} else if rate, known := load.Rate(); known {
			c.busy = rate
		}
		c.clients = s.Clients[c.id] + s.Sharing[c.id]
		if sick, ok := s.SickBehind(c.id); ok {
			c.against = fmt.Sprintf("its back end %s is slow", sick.Node)
		} else if promised[c.id] != "" {
			c.against = promised[c.id] + " sends nodes there"
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(min(1, len(a.against)), min(1, len(b.against))), cmp.Compare(a.busy, b.busy),
			cmp.Compare(a.clients, b.clients), cmp.Compare(a.id, b.id))
	})
	out := make([]Target, len(all))
	for i, c := range all {
		load := s.Load[c.id]
		why := s.State(c.id).Text(load.Busy())
		if math.IsInf(c.busy, 1) {
			why = "its load is not known"
		}
		why += ", serves " + anomaly.Counted(c.clients, "compute node")
		if c.against != "" {
			why += ", but " + c.against
		}
		if i == 0 {
			why = fmt.Sprintf("the best of %d: %s", len(all), why)
		}
		out[i] = Target{Forwarder: c.id, Why: why}
	}
	return out
}
