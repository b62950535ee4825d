package engine

import (
	"fmt"
	"time"

	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/log"
)

// replay rebuilds the open blocks from the log's segments and readies the log for new records.
func (h *head) replay(wal *log.Log) error {
	p := replayer{head: h, wal: wal, open: map[uint64]*openBlock{}, broken: map[*openBlock]bool{},
		sealed: h.blocks.Sealed()}
	begun, err := wal.Replay(log.Target{Nodes: len(h.nodes.entries), Log: h.log, Report: h.damages.Report, Take: p.take,
		Distrust: p.distrust})
	if err != nil {
		return err
	}
	h.nextBlock = max(h.nextBlock, wal.NextBlock())
	p.reportSkipped()
	p.showReplayed()
	if !begun {
		highest, err := h.blocks.HighestID()
		if err != nil {
			return err
		}
		h.nextBlock = max(h.nextBlock, highest)
	}
	wal.Resume(h.nextBlock + 1)
	return nil
}

// replayer applies records to the head's open blocks.
type replayer struct {
	head   *head
	wal    *log.Log
	sealed *block.Sealed
	open   map[uint64]*openBlock // by id; nil for one whose rows are in a sealed block
	// skipped are the blocks whose rows are left out, because the log has more open ones than any writer keeps.
	skipped skippedBlocks
	// broken are blocks of which a record is missing: their differences have no base any more, so
	// only rows written in full are still taken.
	broken map[*openBlock]bool
}

func (p *replayer) distrust() {
	for _, b := range p.open {
		if b != nil {
			p.broken[b] = true
		}
	}
}

// take applies a record.
func (p *replayer) take(r *log.Record) error {
	var b *openBlock
	based := false // b has what rows that are not written in full build on
	for {
		more, err := r.Next()
		if err != nil || !more {
			return err
		}
		switch {
		case r.Kind == log.Context:
			b, err = p.blockOf(r)
			based = b != nil && !p.broken[b]
		case r.Kind == log.Same && based:
			b.Repeat(r.Node, r.End, r.Sec)
		case r.Kind == log.Row && based:
			err = p.row(r, b)
		case r.Kind == log.Named && b != nil && len(r.Metrics) > 0:
			p.named(r, b)
		}
		if err != nil {
			return err
		}
	}
}

// blockOf returns the block of the rows that follow, nil where they are sealed or left out.
func (p *replayer) blockOf(r *log.Record) (*openBlock, error) {
	b, known := p.open[r.Block]
	if known {
		return b, nil
	}
	b, err := p.replayedBlock(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", log.ErrCannotReplay, err)
	}
	p.open[r.Block] = b
	if b != nil && r.Block < p.wal.WholeFrom() {
		p.broken[b] = true // its first rows were in a sealed block, which is gone
	}
	return b, nil
}

// row takes a row by columns: only a node's newest is written so.
func (p *replayer) row(r *log.Record, b *openBlock) error {
	n, secs := b.Node(r.Node)
	if n == nil || r.Sec <= secs.Newest() {
		return nil
	}
	if int(r.Row[0]) > len(n.Layout.Metrics) {
		return fmt.Errorf("log record: a row of %d columns of node %d, which has %d", r.Row[0], r.Node,
			len(n.Layout.Metrics))
	}
	if r.Row[0] > 0 {
		n.Append(r.Sec, r.Row)
	}
	secs.Set(r.Sec)
	return nil
}

// named takes a row by metric.
func (p *replayer) named(r *log.Record, b *openBlock) {
	row := &p.head.row
	row.reset()
	for i, m := range r.Metrics {
		row.add(m, r.Values[i])
	}
	p.head.writeRow(p.head.nodes.chunks.Of(r.Node), b.Block, r.Node, r.Sec)
}

// showReplayed makes the newest row of every node its latest.
func (p *replayer) showReplayed() {
	for _, b := range p.head.open {
		for node := range b.Nodes() {
			n, secs := b.Node(node)
			if n == nil {
				continue
			}
			newest := secs.Newest()
			c := p.head.nodes.chunks.Of(node)
			c.Lock()
			c.Show(b.Block, n, node, p.head.thereAt(n, newest, newest))
			c.Unlock()
		}
	}
}

// replayedBlock opens the block of an id found in the log; nil says that its rows are sealed.
func (p *replayer) replayedBlock(r *log.Record) (*openBlock, error) {
	p.head.nextBlock = max(p.head.nextBlock, r.Block)
	if through, err := p.sealed.Through(r.Start, p.wal.WholeFrom()); err != nil || r.Block <= through {
		return nil, err
	}
	if !p.makeRoom(r) {
		return nil, nil
	}
	b := p.head.addBlock(r.Block, r.Start)
	b.last = p.head.opts.Now().Unix()
	return b, nil
}

// maxReplayed is how many open blocks a log may have; a writer keeps a few more than maxOpen. A log with more was
// written for a sender of rows in very many different hours: the newest blocks are kept.
const maxReplayed = 256

// skippedBlocks counts what makeRoom left out.
type skippedBlocks struct {
	count       int
	path        string // of the first one's segment
	first, last int64  // Unix seconds of the oldest and the newest
}

// makeRoom says whether the block of a record is opened. The oldest one gives way to it where there are too many.
func (p *replayer) makeRoom(r *log.Record) bool {
	if len(p.head.open) < maxReplayed {
		return true
	}
	oldest := p.head.open[0]
	left := min(oldest.Start, r.Start)
	if s := &p.skipped; s.count == 0 {
		*s = skippedBlocks{1, r.Path, left, left}
	} else {
		s.count, s.first, s.last = s.count+1, min(s.first, left), max(s.last, left)
	}
	if r.Start <= oldest.Start {
		return false
	}
	p.head.dropBlock(oldest)
	delete(p.broken, oldest)
	p.open[oldest.ID] = nil
	return true
}

// reportSkipped names what makeRoom left out.
func (p *replayer) reportSkipped() {
	if s := &p.skipped; s.count > 0 {
		p.head.damages.Report(disk.Damage{File: s.path,
			What: fmt.Sprintf(
				"its rows are of %d more spans of %d s than are open at a time; a sender with a wrong clock?", s.count,
				column.Seconds),
			Lost: fmt.Sprintf("rows from between %s and %s that were in no sealed block",
				time.Unix(s.first, 0).UTC().Format(time.RFC3339), time.Unix(s.last, 0).UTC().Format(time.RFC3339))})
	}
}
