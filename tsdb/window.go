package tsdb

import (
	"math"

	"fairway/collector"
	"fairway/collector/topology"
)

// View reads the newest second of a fixed choice of nodes and metrics, without a lock and without
// waiting for writers. A View is for one goroutine; make one per reader.
type View struct {
	db      *DB
	names   []topology.NodeID
	nodes   []int // numbers, -1 until the node is known
	metrics []collector.Metric
	layout  *layout // slots is for this layout
	slots   []int
	row     []uint64
}

// View makes a view of nodes (which need not be known yet) and metrics.
func (db *DB) View(nodes []topology.NodeID, metrics []collector.Metric) *View {
	v := &View{
		db: db, names: nodes, nodes: make([]int, len(nodes)),
		metrics: metrics, slots: make([]int, len(metrics)), row: make([]uint64, maxColumns),
	}
	for i := range nodes {
		v.nodes[i] = -1
	}
	return v
}

// Latest fills values[i*len(metrics)+j] with node i's newest value of metric j and timesMillis[i]
// with the second it belongs to. What is not known is NaN; a node never heard of has time 0. Both
// slices must have room for the whole answer. How old a second may be is for the caller to judge.
func (v *View) Latest(timesMillis []int64, values []float64) {
	live := *v.db.live.Load()
	for i, node := range v.nodes {
		out := values[i*len(v.metrics) : (i+1)*len(v.metrics)]
		if node < 0 {
			node = v.db.number(v.names[i])
			v.nodes[i] = node
		}
		var n *openNode
		if node >= 0 && node < len(live) {
			n = live[node].Load()
		}
		if n == nil {
			timesMillis[i] = 0
			for j := range out {
				out[j] = math.NaN()
			}
			continue
		}
		timesMillis[i] = v.row1(n, out)
	}
}

// row1 copies the wanted metrics of one node's newest row and returns its time.
func (v *View) row1(n *openNode, out []float64) int64 {
	if n.layout != v.layout {
		v.layout = n.layout
		for j, m := range v.metrics {
			v.slots[j] = n.layout.slotOf(m)
		}
	}
	row := v.row[:len(n.last)]
	sec, _ := n.latest(row)
	for j, slot := range v.slots {
		if slot < 0 || row[slot] == absentBits {
			out[j] = math.NaN()
			continue
		}
		out[j] = math.Float64frombits(row[slot])
	}
	return sec * 1000
}
