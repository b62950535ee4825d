package engine

import (
	"slices"
	"sync"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// head is the newest part of a store, where rows are taken in: the numbers of the nodes, the open blocks, and the log
// records that are not written yet.
type head struct {
	*base
	blocks *blocks

	mu        sync.Mutex // guards what follows, and the nodes
	nodes     *nodeTable
	pending   pendingRecords
	row       rowBuffer
	layouts   layoutSet
	nextBlock uint64
	round     *round                      // the commit that what is appended now will be part of
	limits    map[topology.NodeID]float64 // bytes/s from which a second is occupied
	useCount  int64                       // of blocks by appends
	rotate    bool                        // the next commit begins a new log segment
}

func newHead(b *base) *head {
	h := &head{base: b, blocks: &blocks{base: b}, nodes: &nodeTable{}, layouts: layoutSet{all: map[string]*layout{}},
		round: &round{done: make(chan struct{})}}
	h.blocks.view.Store(&view{})
	return h
}

// known returns the nodes and the limits of their occupancy as they are now; the entries are not to be changed.
func (h *head) known() (entries []nodeEntry, limits map[topology.NodeID]float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes.entries[:len(h.nodes.entries):len(h.nodes.entries)], h.limits
}

// blockFor returns the open block that begins at start, opening one where it is missing.
func (h *head) blockFor(start int64) *openBlock {
	v := h.blocks.view.Load()
	for i := len(v.open) - 1; i >= 0; i-- {
		if b := v.open[i]; b.start == start && !b.closed {
			h.pending.noteBlock(b.id)
			return b
		}
	}
	h.nextBlock++
	h.rotate = true // a segment goes when the blocks in it are sealed
	b := h.addBlock(h.nextBlock, start)
	h.pending.noteBlock(b.id)
	return b
}

// takes says whether a block is open that takes rows of a time.
func (h *head) takes(millis int64) bool {
	start := tsdb.FloorDiv(millis, BlockSeconds*1000) * BlockSeconds
	return slices.ContainsFunc(h.blocks.view.Load().open, func(b *openBlock) bool {
		return b.start == start &&
			!b.closed
	})
}

// addBlock opens a block.
func (h *head) addBlock(id uint64, start int64) *openBlock {
	b := newOpenBlock(id, start)
	h.blocks.add(b)
	return b
}

// pendingRecords are log records on their way to the committer. The head's lock guards them.
type pendingRecords struct {
	rec      *recordWriter // nil while the log is replayed
	cut      [][]byte      // finished records that the committer has not taken
	spare    []byte        // a buffer for the next one; nil without
	blocks   []uint64      // blocks named by cut and rec
	unsynced int           // bytes handed to the committer and not yet durable
}

// cutRecord ends the pending log record, so that no record grows beyond what a reader takes.
func (p *pendingRecords) cutRecord() {
	p.rec.flush()
	if p.rec.empty() {
		return
	}
	p.unsynced += len(p.rec.buf)
	p.cut = append(p.cut, p.rec.buf)
	p.rec.reset(p.spare)
	p.spare = nil
}

func (p *pendingRecords) noteBlock(id uint64) {
	if !slices.Contains(p.blocks, id) {
		p.blocks = append(p.blocks, id)
	}
}

// layoutSet has every order of metrics in use. The head's lock guards it.
type layoutSet struct {
	all    map[string]*layout
	newest *layout // that of returned last
}

// of returns the layout of a node's columns once it also has metrics.
func (s *layoutSet) of(n *openNode, metrics []collector.Metric) *layout {
	var all []collector.Metric
	if n != nil {
		all = slices.Clone(n.layout.metrics)
	} else if s.newest != nil && slices.Equal(s.newest.metrics, metrics) {
		return s.newest
	}
	for _, m := range metrics {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	key := string(asBytes(all))
	l := s.all[key]
	if l == nil {
		l = newLayout(all)
		s.all[key] = l
	}
	s.newest = l
	return l
}

func asBytes(metrics []collector.Metric) []byte {
	out := make([]byte, len(metrics))
	for i, m := range metrics {
		out[i] = byte(m)
	}
	return out
}
