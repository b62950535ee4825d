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

// excuse keeps what clients of a forwarder at its peak wait for from counting against it, and for a second longer: what
// was sent then is still on its way. That is so for every class of operations, whichever direction is full: each
// crosses both, a read's request behind the bytes of writes and a write's answer behind those of reads. The forwarder's
// own service times are judged as ever. A forwarder that became slow no longer reaches its peak.
func (f full) excuse(rows []failslow.Observation, peaks map[topology.NodeID]float64) {
	before := maps.Clone(f)
	clear(f)
	for i := range rows {
		o := &rows[i]
		o.Peak = peaks[o.Node]
		now := o.Peak > 0 && max(o.Class[failslow.Read].Bytes, o.Class[failslow.Write].Bytes) >= fullFrom*o.Peak
		if now || before[o.Node] {
			for c := range o.Excused {
				o.Excused[c] = true
			}
		}
		if now {
			f[o.Node] = true
		}
	}
}
