package failslow

import (
	"fairway/anomaly"
	"fairway/collector/topology"
)

// state is what outlives a restart: what was learnt and the evidence so far.
type state struct {
	Now     int64
	Model   model
	Peak    peak
	PeakOps peak
	Canary  canaryLayer
	Nodes   []kept
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	nodes := make([]kept, len(d.order))
	for i, n := range d.order {
		nodes[i] = n.kept
	}
	return anomaly.Save(state{d.now, d.model, d.peak, d.peakOps, d.canaries, nodes})
}

// UnmarshalBinary takes up a saved state; the settings stay those of New. Evidence and habits go on from
// where they were; a pause counts as a gap of the whole layer. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	var s state
	if err := anomaly.Load(b, &s); err != nil {
		return err
	}
	nodes, order := map[topology.NodeID]*node{}, make([]*node, len(s.Nodes))
	for i := range s.Nodes {
		order[i] = &node{kept: s.Nodes[i], index: i}
		nodes[order[i].ID] = order[i]
	}
	s.Peak.fixed = d.peak.fixed
	d.now, d.began, d.model, d.peak, d.peakOps, d.canaries, d.order, d.nodes = s.Now, s.Now, s.Model, s.Peak,
		s.PeakOps, s.Canary, order, nodes
	d.jobs, d.lastSeen = nil, make([]int64, len(nodes))
	return nil
}
