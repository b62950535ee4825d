package failslow

import (
	"math"

	"fairway/collector/topology"
)

// Class is a class of operations.
type Class uint8

// The operation classes.
const (
	Read Class = iota
	Write
	Meta
	classes = 3
)

// String returns "read", "write" or "meta".
func (c Class) String() string { return [classes]string{"read", "write", "meta"}[c] }

// ClassSecond is what one class of operations did on one node in one second. A value that is not
// known is NaN; operations that are not known count as none.
type ClassSecond struct {
	Ops   float64 // completed, 1/s
	Bytes float64 // moved, bytes/s
	Wait  float64 // mean seconds queued
	// Exec is the mean seconds in service, the back end's share included. Where a server has no
	// such clock, the time that its clients saw stands in.
	Exec float64
}

// Observation is one node's second as it arrived. A node may have none, or several that arrived
// together after a gap.
type Observation struct {
	Node     topology.NodeID
	Class    [classes]ClassSecond
	QueueLen float64 // requests waiting, not in service; NaN where not known
	Serving  float64 // requests in service; 0 where not known
	// InFlight is how many requests were in the server in the mean of the second, those that wait included, and
	// Completed how many ended in it, whatever their class, that moved Moved bytes; 0 where not known.
	InFlight, Completed, Moved float64
	// Inside is the mean seconds of an operation in the server, where it reports that and no more; 0 where not known.
	Inside float64
	// Packets is how many went between the node and its clients, as these saw it, and Lost how many of them
	// did not arrive as they were sent; 0 packets where that is not known.
	Packets, Lost float64
	// Behind is the one server that the node is a client of itself; "" where it has several or none. Excused are the
	// classes whose second that server explains: they say nothing of the node.
	Behind  topology.NodeID
	Excused [classes]bool
	// Peak is what the node can move in a direction, bytes/s; 0 where not known. Full says that it moves that, or did a
	// second ago: that its clients wait then does not speak against it.
	Peak float64
	Full bool
	// Spans is how many seconds the counters cover: 1 for rates by the second, however long ago the detector was last
	// called. 0 is not known: then they cover what passed since the second before.
	Spans float64
}

// Probe is what one canary saw: seconds that a 1 MB read, a 1 MB write and a stat took, waiting
// included; NaN where one was not tried.
type Probe struct {
	Node topology.NodeID
	Took [classes]float64
}

// known says that a measured duration can be used.
func known(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
