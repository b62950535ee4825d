package watch

import (
	"maps"

	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// fullFrom is the share of its known peak, in one direction, at which a forwarder moves what it can: what its clients
// then wait for is each other. The peak of a link in a configuration file counts headers that nobody counts as bytes.
const fullFrom = 0.85

// full are the forwarders that were at their peak in the second before.
type full map[topology.NodeID]bool

// mark says of each row whether its forwarder is at its peak, or was a second ago: what was sent then is still on its
// way. Then nothing that its clients wait for counts against it, whichever direction is full and whatever they wait
// for: each operation crosses both, a read's request behind the bytes of writes and a write's answer behind those of
// reads. The forwarder's own service times are judged as ever. A forwarder that became slow no longer reaches its peak.
func (f full) mark(rows []failslow.Observation, peaks map[topology.NodeID]float64) {
	before := maps.Clone(f)
	clear(f)
	for i := range rows {
		o := &rows[i]
		o.Peak = peaks[o.Node]
		now := o.Peak > 0 && max(o.Class[failslow.Read].Bytes, o.Class[failslow.Write].Bytes) >= fullFrom*o.Peak
		if o.Full = now || before[o.Node]; now {
			f[o.Node] = true
		}
	}
}
