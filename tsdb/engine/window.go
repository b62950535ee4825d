package engine

import (
	"math"
	"sync"

	"fairway/collector"
	"fairway/collector/topology"
)

// liveChunk is the newest row of 64 nodes, side by side. Its lock also guards these nodes in every open block. It
// is held for as long as it takes to copy: by a writer for its rows of the chunk, by a reader for what it asks for.
type liveChunk struct {
	mu      sync.Mutex
	secs    [chunkNodes]int64   // Unix seconds of the row; 0 before the first
	blocks  [chunkNodes]uint64  // the id of the open block it came from
	layouts [chunkNodes]*layout // nil before the first row
	width   int                 // columns that a row has room for
	vals    []float64           // NaN where there is no value
}

// growLive makes room for every node; the caller holds mu or is Open.
func (db *DB) growLive() {
	old := *db.live.Load()
	if len(old)*chunkNodes >= len(db.table.entries) {
		return
	}
	grown := append([]*liveChunk(nil), old...)
	for len(grown)*chunkNodes < len(db.table.entries) {
		grown = append(grown, &liveChunk{})
	}
	db.live.Store(&grown)
}

// chunkOf returns the chunk of a node that is known.
func (db *DB) chunkOf(node int) *liveChunk { return (*db.live.Load())[node/chunkNodes] }

// show makes a row of n its node's latest, unless a newer one is. The caller holds the lock.
func (c *liveChunk) show(db *DB, b *openBlock, n *openNode, node, sec int, slots []uint64) {
	k, at := node%chunkNodes, b.start+int64(sec)
	// A clock that ran ahead and was set right must not hide the rows after that.
	const ahead = 60
	if at < c.secs[k] && c.secs[k] <= db.opts.Now().Unix()+ahead {
		return
	}
	c.secs[k] = at
	if c.blocks[k] != b.id || c.layouts[k] != n.layout {
		c.blocks[k], c.layouts[k] = b.id, n.layout
		c.widen(len(slots))
	}
	row := c.row(k, len(slots))
	for i, v := range slots {
		row[i] = math.Float64frombits(v)
	}
}

// row returns a node's newest row.
func (c *liveChunk) row(k, columns int) []float64 { return c.vals[k*c.width:][:columns] }

func (c *liveChunk) widen(columns int) {
	if columns <= c.width {
		return
	}
	vals := make([]float64, chunkNodes*columns)
	for k := range chunkNodes {
		copy(vals[k*columns:], c.vals[k*c.width:][:c.width])
	}
	c.width, c.vals = columns, vals
}

// View reads the newest second of a fixed choice of nodes and metrics. It waits for a writer at most as long as
// that takes for its rows of 64 nodes, and never for a disk. A View is for one goroutine; make one per reader.
type View struct {
	db      *DB
	names   []topology.NodeID
	nodes   []int // numbers, -1 until the node is known
	metrics []collector.Metric
	layout  *layout // slots is for this layout
	slots   []int
	inOrder bool // slot j is metric j
}

// View makes a view of nodes (which need not be known yet) and metrics.
func (db *DB) View(nodes []topology.NodeID, metrics []collector.Metric) *View {
	v := &View{db: db, names: nodes, nodes: make([]int, len(nodes)), metrics: metrics, slots: make([]int, len(metrics))}
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
	width := len(v.metrics)
	var held *liveChunk
	for i, node := range v.nodes {
		if node < 0 {
			node = v.db.number(v.names[i])
			v.nodes[i] = node
		}
		out := values[i*width : (i+1)*width]
		if uint(node) >= uint(len(live)*chunkNodes) {
			timesMillis[i] = 0
			unknown(out)
			continue
		}
		if c := live[node/chunkNodes]; c != held {
			if held != nil {
				held.mu.Unlock()
			}
			c.mu.Lock()
			held = c
		}
		timesMillis[i] = v.node(held, node%chunkNodes, out)
	}
	if held != nil {
		held.mu.Unlock()
	}
}

// node copies the wanted metrics of one node's newest row and returns its time.
func (v *View) node(c *liveChunk, k int, out []float64) int64 {
	l := c.layouts[k]
	if l == nil {
		unknown(out)
		return 0
	}
	if l != v.layout {
		v.layout, v.inOrder = l, len(v.metrics) <= len(l.metrics)
		for j, m := range v.metrics {
			v.slots[j] = l.slotOf(m)
			v.inOrder = v.inOrder && v.slots[j] == j
		}
	}
	row := c.row(k, len(l.metrics))
	if v.inOrder {
		copy(out, row)
		return c.secs[k] * 1000
	}
	for j, slot := range v.slots {
		if slot < 0 {
			out[j] = math.NaN()
			continue
		}
		out[j] = row[slot]
	}
	return c.secs[k] * 1000
}

func unknown(out []float64) {
	for j := range out {
		out[j] = math.NaN()
	}
}
