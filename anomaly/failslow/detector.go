package failslow

import (
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Detector watches a layer of forwarders. It has no clock and does no I/O: Second is called once for
// every second, in order, with what arrived in it. Its methods must not be called concurrently.
type Detector struct {
	set      Settings
	nodes    map[topology.NodeID]*node
	order    []*node // in order of first appearance
	now      int64   // the newest second, Unix
	verdicts []anomaly.Verdict
	jobs     []Job
}

// New makes a detector that knows nothing yet.
func New(set Settings) *Detector {
	return &Detector{set: set, nodes: map[topology.NodeID]*node{}}
}

// Jobs tells which forwarders serve which job from now on. It may never be called.
func (d *Detector) Jobs(jobs []Job) { d.jobs = jobs }

// Second takes what arrived in one second and returns one verdict for each node seen in it, and for
// each other node whose alarm goes on. The slice is used again by the next call.
func (d *Detector) Second(now time.Time, obs []Observation) []anomaly.Verdict {
	d.now = now.Unix()
	d.verdicts = d.verdicts[:0]
	for i := range obs {
		d.node(obs[i].Node).seen = d.now
		d.verdicts = append(d.verdicts, anomaly.Verdict{Node: obs[i].Node, Kind: anomaly.FailSlow, Level: anomaly.Clean})
	}
	return d.verdicts
}

func (d *Detector) node(id topology.NodeID) *node {
	n := d.nodes[id]
	if n == nil {
		n = &node{id: id}
		d.nodes[id] = n
		d.order = append(d.order, n)
	}
	return n
}

// Node returns what the detector thinks of one node; ok is false for a node it never saw.
func (d *Detector) Node(id topology.NodeID) (Snapshot, bool) {
	n := d.nodes[id]
	if n == nil {
		return Snapshot{}, false
	}
	return Snapshot{Node: id, Level: n.level}, true
}

// Probe takes what a canary saw.
func (d *Detector) Probe(now time.Time, p Probe) {
	if n := d.nodes[p.Node]; n != nil && known(p.Took[Read]) {
		n.probed = now.Unix()
	}
}

// Due lists the nodes that want a canary now, the suspects first: those in doubt or alarm every
// SuspectProbeEvery, those without load every IdleProbeEvery. The caller says with Probe what came of
// it; a node in the list is not listed again before its time, whether or not anything came.
func (d *Detector) Due(now time.Time) []topology.NodeID {
	return nil
}

// node is what is kept of one forwarder.
type node struct {
	id     topology.NodeID
	level  anomaly.Level
	seen   int64
	probed int64
}
