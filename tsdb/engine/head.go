package engine

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"

	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/log"
	"fairway/tsdb/engine/rows"
	"fairway/tsdb/engine/tier"
)

// blocksDir is the directory of the seconds' blocks in that of the store.
const blocksDir = "blocks"

// head is the newest part of a store, where rows are taken in: the numbers of the nodes, the open blocks, and the log
// records that are not written yet.
type head struct {
	*base
	blocks  *block.List
	readers *block.Readers

	mu        sync.Mutex // guards what follows, and the nodes
	nodes     *nodeTable
	open      []*openBlock // by start, then id
	pending   log.Pending
	row       rowBuffer
	layouts   rows.Layouts
	nextBlock uint64
	round     *round                      // the commit that what is appended now will be part of
	limits    map[topology.NodeID]float64 // bytes/s from which a second is occupied
	useCount  int64                       // of blocks by appends
	rotate    bool                        // the next commit begins a new log segment
}

// openBlock is a block that is not sealed yet, as its writers see it. The head's lock guards it.
type openBlock struct {
	*rows.Block
	last   int64  // Unix seconds by the DB's clock of the newest append
	used   int64  // counts appends of all blocks
	round  *round // the commit of its newest row; nil where all rows are durable in the log
	closed bool   // takes no more rows: it is being sealed
}

func newHead(b *base) *head {
	nodes := &nodeTable{}
	return &head{base: b, nodes: nodes, round: &round{done: make(chan struct{})},
		blocks:  block.NewList(b.fs, filepath.Join(b.dir, blocksDir), b.damages.Report),
		readers: &block.Readers{Nodes: &nodes.chunks, Damages: b.damages}}
}

// known returns the nodes and the limits of their occupancy as they are now; the entries are not to be changed.
func (h *head) known() (entries []nodeEntry, limits map[topology.NodeID]float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes.entries[:len(h.nodes.entries):len(h.nodes.entries)], h.limits
}

// tierNodes returns what the tiers need to know of the nodes, by number.
func (h *head) tierNodes() []tier.Node {
	entries, limits := h.known()
	out := make([]tier.Node, len(entries))
	for i, e := range entries {
		out[i] = tier.Node{Metrics: e.metrics, Limit: limits[e.name]}
	}
	return out
}

// blockFor returns the open block that begins at start, opening one where it is missing.
func (h *head) blockFor(start int64) *openBlock {
	for _, b := range slices.Backward(h.open) {
		if b.Start == start && !b.closed {
			h.pending.Note(b.ID)
			return b
		}
	}
	h.nextBlock++
	h.rotate = true // a segment goes when the blocks in it are sealed
	b := h.addBlock(h.nextBlock, start)
	h.pending.Note(b.ID)
	return b
}

// takes says whether a block is open that takes rows of a time.
func (h *head) takes(millis int64) bool {
	start := tsdb.FloorDiv(millis, column.Seconds*1000) * column.Seconds
	return slices.ContainsFunc(h.open, func(b *openBlock) bool { return b.Start == start && !b.closed })
}

// addBlock opens a block.
func (h *head) addBlock(id uint64, start int64) *openBlock {
	b := &openBlock{Block: rows.NewBlock(id, start)}
	i, _ := slices.BinarySearchFunc(h.open, start+1,
		func(o *openBlock, start int64) int { return cmp.Compare(o.Start, start) })
	h.open = slices.Insert(h.open, i, b)
	h.blocks.Add(b.Block)
	return b
}

// dropBlock forgets an open block.
func (h *head) dropBlock(b *openBlock) {
	h.open = slices.DeleteFunc(h.open, func(o *openBlock) bool { return o == b })
	h.blocks.Drop(b.Block)
}
