package rows

import (
	"math"
	"sync"
	"sync/atomic"
)

// ChunkNodes is how many nodes, by their numbers, lie side by side.
const ChunkNodes = 64

// Latest is what 64 nodes have side by side: the row of each that was written last, so that a repeated one is known
// at once. The lock also guards these nodes in every open block. It is held for as long as it takes to copy: by a
// writer for its rows of the chunk, by a reader for what it asks for.
type Latest struct {
	sync.Mutex
	blocks  [ChunkNodes]uint64  // the id of the open block that the row is the newest of
	layouts [ChunkNodes]*Layout // nil before the first row
	width   int                 // columns that a row has room for
	vals    []float64           // not a number where a value is missing
}

// Show keeps the newest row of n in its block. The caller holds the lock.
func (c *Latest) Show(b *Block, n *Node, node int, slots []uint64) {
	k := node % ChunkNodes
	if c.blocks[k] != b.ID || c.layouts[k] != n.Layout {
		c.blocks[k], c.layouts[k] = b.ID, n.Layout
		c.widen(len(slots))
	}
	row := c.row(k, len(slots))
	for i, v := range slots {
		row[i] = math.Float64frombits(v)
	}
}

// row returns a node's row.
func (c *Latest) row(k, columns int) []float64 { return c.vals[k*c.width:][:columns] }

func (c *Latest) widen(columns int) {
	if columns <= c.width {
		return
	}
	vals := make([]float64, ChunkNodes*columns)
	for k := range ChunkNodes {
		copy(vals[k*columns:], c.vals[k*c.width:][:c.width])
	}
	c.width, c.vals = columns, vals
}

// Repeats says that a row is like the one before it in its block, as far as that is known at once: the live row is
// that one, or nothing is known. The caller holds the lock.
func (c *Latest) Repeats(b *Block, n *Node, node int, slots []uint64) bool {
	k := node % ChunkNodes
	if c.blocks[k] != b.ID || c.layouts[k] != n.Layout {
		return false
	}
	differ := uint64(0)
	for slot, v := range c.row(k, len(slots)) {
		differ |= math.Float64bits(v) ^ slots[slot]
	}
	return differ == 0
}

// Chunks are the newest rows of every node.
type Chunks struct {
	list atomic.Pointer[[]*Latest] // by number / 64
}

// Grow makes room for so many nodes. Only one caller at a time may grow.
func (cs *Chunks) Grow(nodes int) {
	var old []*Latest
	if list := cs.list.Load(); list != nil {
		old = *list
	}
	if len(old)*ChunkNodes >= nodes {
		return
	}
	grown := append([]*Latest(nil), old...)
	for len(grown)*ChunkNodes < nodes {
		grown = append(grown, &Latest{})
	}
	cs.list.Store(&grown)
}

// Of returns the chunk of a node that there is room for.
func (cs *Chunks) Of(node int) *Latest { return (*cs.list.Load())[node/ChunkNodes] }
