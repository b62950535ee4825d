package rows

import (
	"math"
	"slices"
	"sync/atomic"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// Block holds the rows of one span that are not sealed yet. There may be several: the current
// one, older ones for late rows, later ones for nodes whose clock is ahead.
type Block struct {
	ID     uint64                       // counts open blocks over the life of the store; names the instance in the log
	Start  int64                        // Unix seconds
	chunks atomic.Pointer[[]*openChunk] // by node number / 64; an element is nil where no node has rows
}

// NewBlock returns a block without rows.
func NewBlock(id uint64, start int64) *Block {
	b := &Block{ID: id, Start: start}
	b.chunks.Store(&[]*openChunk{})
	return b
}

// Node is one node's rows in an open block. The lock of the node's Latest guards it until its block is
// closed; then nothing changes any more.
type Node struct {
	Layout *Layout // nil before the first row
	rows   stream
	// late are the rows that came after later ones; nil without any.
	late *lateRows
}

// openChunk is the part of a block that 64 nodes have.
type openChunk struct {
	nodes [ChunkNodes]Node
	rows  [ChunkNodes]column.Mask // the seconds that each node reported
}

// lateRows are values by second that count instead of what the stream says of that second. A row that stands in
// it does not change.
type lateRows [column.Seconds]*lateRow

// lateRow holds the values of the slots in mask; a slot beyond vals is absent.
type lateRow struct {
	mask uint64
	vals []uint64
}

func (r *lateRow) value(slot int) uint64 {
	if slot < len(r.vals) {
		return r.vals[slot]
	}
	return Absent
}

// Node returns a node's rows and the seconds they are of, nil without any.
func (b *Block) Node(i int) (*Node, *column.Mask) {
	list := *b.chunks.Load()
	if i/ChunkNodes >= len(list) {
		return nil, nil
	}
	c := list[i/ChunkNodes]
	if c == nil {
		return nil, nil
	}
	if n := &c.nodes[i%ChunkNodes]; n.Layout != nil {
		return n, &c.rows[i%ChunkNodes]
	}
	return nil, nil
}

// chunk returns a node's chunk, made where it is new: a block of a few late rows must not cost what one of the whole
// machine does.
func (b *Block) chunk(i int) *openChunk {
	list := *b.chunks.Load()
	if i/ChunkNodes < len(list) && list[i/ChunkNodes] != nil {
		return list[i/ChunkNodes]
	}
	list = append(make([]*openChunk, 0, max(len(list), i/ChunkNodes+1)), list...)
	for i/ChunkNodes >= len(list) {
		list = append(list, nil)
	}
	list[i/ChunkNodes] = &openChunk{}
	b.chunks.Store(&list)
	return list[i/ChunkNodes]
}

// Ensure returns the node's rows with a column for every metric of l, making or widening them; l begins with the
// layout it replaces. The caller holds the lock of the node's Latest.
func (b *Block) Ensure(i int, l *Layout) (*Node, *column.Mask) {
	c := b.chunk(i)
	n := &c.nodes[i%ChunkNodes]
	n.Layout = l
	return n, &c.rows[i%ChunkNodes]
}

// Insert puts a row before rows that are there already, or changes one of them. vals[slot] is
// Absent for a metric the row does not name.
func (n *Node) Insert(rows *column.Mask, sec int, vals []uint64) {
	if n.late == nil {
		n.late = &lateRows{}
	}
	row := &lateRow{mask: math.MaxUint64, vals: slices.Clone(vals)}
	if rows.Has(sec) {
		row.mask = 0
		before := n.late[sec]
		for slot, v := range vals {
			switch {
			case v != Absent:
				row.mask |= 1 << slot
			case before != nil && before.mask>>slot&1 != 0:
				row.mask |= 1 << slot
				row.vals[slot] = before.value(slot)
			}
		}
	}
	n.late[sec] = row
	rows.Set(sec)
}

// Nodes returns how many nodes, from number 0, there is room for: a multiple of ChunkNodes.
func (b *Block) Nodes() int { return len(*b.chunks.Load()) * ChunkNodes }

// Repeat repeats the newest row of nodes.
func (b *Block) Repeat(node, end, sec int) {
	chunks := *b.chunks.Load()
	for end = min(end, len(chunks)*ChunkNodes); node < end; {
		c := chunks[node/ChunkNodes]
		if c == nil {
			node = (node/ChunkNodes + 1) * ChunkNodes
			continue
		}
		for k := node % ChunkNodes; k < ChunkNodes && node < end; k, node = k+1, node+1 {
			if rows := &c.rows[k]; *rows != (column.Mask{}) && sec > rows.Newest() {
				rows.Set(sec)
			}
		}
	}
}

// Append adds a node's newest row, which differs from the one before; the caller sets the second.
func (n *Node) Append(sec int, row []byte) { n.rows.append(sec, row) }

// There writes into dst what a second has already; newest is the node's newest.
func (n *Node) There(sec, newest int, dst []uint64) {
	for slot := range dst {
		dst[slot] = Absent
	}
	row := n.rows.last()
	if sec != newest {
		row = nil
		r := streamReader{buf: n.rows.buf}
		for at, next, ok := r.next(); ok && at <= sec; at, next, ok = r.next() {
			row = next
		}
	}
	if len(row) > 0 {
		Values(row, dst)
	}
	if n.late == nil || n.late[sec] == nil {
		return
	}
	for slot := range dst {
		if late := n.late[sec]; late.mask>>slot&1 != 0 {
			dst[slot] = late.value(slot)
		}
	}
}

// Snapshot is what a reader takes of a node while it holds the lock.
type Snapshot struct {
	slot   int // of the metric
	stream streamReader
	rows   column.Mask
	late   *lateRows
}

// Snapshot takes the rows of a node; false where it has none of metric m.
func (b *Block) Snapshot(c *Latest, node int, m collector.Metric, dst *Snapshot) bool {
	c.Lock()
	defer c.Unlock()
	n, rows := b.Node(node)
	if n == nil {
		return false
	}
	if dst.slot = n.Layout.Slot(m); dst.slot < 0 {
		return false
	}
	dst.stream = streamReader{buf: n.rows.buf}
	dst.rows, dst.late = *rows, nil
	if n.late != nil {
		late := *n.late
		dst.late = &late
	}
	return true
}

// Has says whether a node has a column of metric m.
func (b *Block) Has(c *Latest, node int, m collector.Metric) bool {
	c.Lock()
	defer c.Unlock()
	n, _ := b.Node(node)
	return n != nil && n.Layout.Slot(m) >= 0
}

// Column writes the metric's 120 values into dst, Absent where a value is missing.
func (c *Snapshot) Column(dst *[column.Seconds]uint64) {
	slot, v, at := c.slot, Absent, 0
	for sec, row, ok := c.stream.next(); ok; sec, row, ok = c.stream.next() {
		for ; at < sec; at++ {
			dst[at] = v
		}
		v = value(row, slot)
	}
	for ; at < column.Seconds; at++ {
		dst[at] = v
	}
	for s := range dst {
		if !c.rows.Has(s) {
			dst[s] = Absent
		} else if c.late != nil {
			if row := c.late[s]; row != nil && row.mask>>slot&1 != 0 {
				dst[s] = row.value(slot)
			}
		}
	}
}
