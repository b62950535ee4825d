package engine

import (
	"math"
	"sync"
)

// nodeChunk is what 64 nodes have side by side: the row of each that was written last, so that a repeated one is known
// at once. Its lock also guards these nodes in every open block. It is held for as long as it takes to copy: by a
// writer for its rows of the chunk, by a reader for what it asks for.
type nodeChunk struct {
	mu      sync.Mutex
	blocks  [chunkNodes]uint64  // the id of the open block that the row is the newest of
	layouts [chunkNodes]*layout // nil before the first row
	width   int                 // columns that a row has room for
	vals    []float64           // not a number where a value is missing
}

// show keeps the newest row of n in its block. The caller holds the lock.
func (c *nodeChunk) show(b *openBlock, n *openNode, node int, slots []uint64) {
	k := node % chunkNodes
	if c.blocks[k] != b.id || c.layouts[k] != n.layout {
		c.blocks[k], c.layouts[k] = b.id, n.layout
		c.widen(len(slots))
	}
	row := c.row(k, len(slots))
	for i, v := range slots {
		row[i] = math.Float64frombits(v)
	}
}

// row returns a node's row.
func (c *nodeChunk) row(k, columns int) []float64 { return c.vals[k*c.width:][:columns] }

func (c *nodeChunk) widen(columns int) {
	if columns <= c.width {
		return
	}
	vals := make([]float64, chunkNodes*columns)
	for k := range chunkNodes {
		copy(vals[k*columns:], c.vals[k*c.width:][:c.width])
	}
	c.width, c.vals = columns, vals
}
