package recorded

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"fairway/anomaly/failslow"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// occupancy counts the seconds in which forwarders moved at least tsdb.DefaultThreshold of their peak, day
// by day (UTC), as DFRA (FAST'19, section 2) does. A peak that is learnt grows while the trace is read:
// seconds near it are kept by their rate, to a hundredth, until the day is over.
type occupancy struct {
	day   int64 // days since 1970
	last  int64
	nodes map[topology.NodeID]*daysLoad
}

// daysLoad is one forwarder's day.
type daysLoad struct {
	seconds, last int64
	near          map[int]int64 // seconds by the log of their rate
}

const (
	daySeconds = 86400
	rateStep   = 0.01 // of log bytes a second
	mostOps    = 1e7  // a second: a counter that was reset
	mostBytes  = 1e12 // the same, bytes a second
)

// rateBin rounds down: a rate at the threshold is not below it.
func rateBin(bytesPerSec float64) int {
	return int(math.Floor(math.Log(max(bytesPerSec, 1))/rateStep + 1e-9))
}

// take counts one second of the trace and returns what it knows of a day that is over.
func (o *occupancy) take(s *Second, peak float64) (over []Event) {
	if day := s.RX / daySeconds; day != o.day {
		over = o.finish(peak)
		*o = occupancy{day: day, last: o.last, nodes: map[topology.NodeID]*daysLoad{}}
	}
	gap := s.RX - o.last
	o.last = s.RX
	if gap > 1 && gap != s.RX {
		return over // counters of the whole gap
	}
	for i := range s.Rows {
		o.row(s.RX, &s.Rows[i], peak)
	}
	return over
}

func (o *occupancy) row(now int64, r *failslow.Observation, peak float64) {
	n := o.nodes[r.Node]
	if n == nil {
		n = &daysLoad{near: map[int]int64{}}
		o.nodes[r.Node] = n
	}
	bytes := r.Class[failslow.Read].Bytes + r.Class[failslow.Write].Bytes
	if n.last == now || r.Spans > 1 || !(bytes <= mostBytes) ||
		max(r.Class[failslow.Read].Ops, r.Class[failslow.Write].Ops) > mostOps {
		return
	}
	n.seconds, n.last = n.seconds+1, now
	least := rateBin(tsdb.DefaultThreshold * peak)
	bin := rateBin(bytes)
	if bin < least || bytes <= 0 {
		return
	}
	n.near[bin]++
	if len(n.near) > 64 { // the peak has grown since
		maps.DeleteFunc(n.near, func(b int, _ int64) bool { return b < least })
	}
}

// Occupancy is what an event of type occupancy says: of one forwarder, or in Layer of all of them.
type Occupancy struct {
	PeakBytesPerSec float64              `json:"peak_bytes_per_sec"`
	Threshold       float64              `json:"threshold"`
	Share           *float64             `json:"share,omitempty"` // 0..1, of one forwarder
	Seconds         int64                `json:"seconds,omitempty"`
	Layer           *tsdb.LayerOccupancy `json:"layer,omitempty"`
}

// finish answers the day: each forwarder, then the layer. Without a peak the occupancy is not known.
func (o *occupancy) finish(peak float64) (out []Event) {
	if peak <= 0 {
		return nil
	}
	var nodes []tsdb.NodeOccupancy
	event := func(node topology.NodeID, of Occupancy, detail string) {
		of.PeakBytesPerSec, of.Threshold = peak, tsdb.DefaultThreshold
		out = append(out, Event{Type: "occupancy", Node: node, Start: o.day * daySeconds, End: (o.day + 1) * daySeconds,
			Detail: detail, Occupancy: &of})
	}
	for _, id := range slices.Sorted(maps.Keys(o.nodes)) {
		n := o.nodes[id]
		if n.seconds == 0 {
			continue
		}
		b := tsdb.OccupancyBucket{TimeMillis: o.day * daySeconds * 1000, Seconds: n.seconds}
		for bin, count := range n.near {
			if bin >= rateBin(tsdb.DefaultThreshold*peak) {
				b.Occupied += count
			}
		}
		share := b.Share()
		nodes = append(nodes, tsdb.NodeOccupancy{Node: id, Buckets: []tsdb.OccupancyBucket{b}})
		event(id, Occupancy{Share: &share, Seconds: n.seconds}, fmt.Sprintf("%.4f of %d s", share, n.seconds))
	}
	for _, l := range tsdb.OverNodes(nodes) {
		event(everyNode, Occupancy{Layer: &l},
			fmt.Sprintf("min %.4f mean %.4f max %.4f imbalance %.2f over %d forwarders", l.Min, l.Mean, l.Max,
				l.Imbalance, l.Nodes))
	}
	return out
}

const everyNode topology.NodeID = "*"
