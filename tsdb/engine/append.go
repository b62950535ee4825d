package engine

import (
	"errors"
	"math"
	"slices"

	"fairway/collector"
	"fairway/tsdb"
)

// rowBuffer is one row on its way into a block.
type rowBuffer struct {
	metrics []collector.Metric
	vals    []uint64 // by place in metrics
	all     [maxColumns]uint64
	slots   []uint64           // by slot of the node's layout
	there   [maxColumns]uint64 // what a second has already, by slot
	bytes   [maxRow + rowSlack]byte
	scratch []byte
}

func (r *rowBuffer) reset() { r.metrics, r.vals = r.metrics[:0], r.vals[:0] }

func (r *rowBuffer) add(m collector.Metric, v uint64) {
	if i := slices.Index(r.metrics, m); i >= 0 {
		r.vals[i] = v
		return
	}
	r.metrics, r.vals = append(r.metrics, m), append(r.vals, v)
}

// mostBits is the greatest value from outside, without a sign, shifted as floatBits compares it.
var mostBits = math.Float64bits(collector.MaxValue) << 1

// floatBits is the engine's form of a value from outside: what collector.IsValue rejects is absent, and
// there is one zero. It has no branch that depends on whether a value is 0, which nobody can foretell. Magnitudes
// of float64 are in the order of their bits, not-a-numbers come last.
func floatBits(v float64) uint64 {
	bits := math.Float64bits(v)
	switch {
	case bits<<1 > mostBits:
		return absentBits
	case bits == 1<<63:
		return 0
	}
	return bits
}

// write puts frames into the open blocks and the pending log record; the caller holds the lock.
func (h *head) write(frames []collector.Frame) error {
	var refused []error
	var b *openBlock
	var held *nodeChunk
	now := h.opts.Now().Unix()
	millis, sec := int64(0), int64(0)
	for i := range frames {
		f := &frames[i]
		if f.TimeMillis != millis {
			millis, sec = f.TimeMillis, tsdb.FloorDiv(f.TimeMillis, 1000)
		}
		node, err := h.nodes.of(f, sec)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if b == nil || sec-b.start >= BlockSeconds || sec < b.start {
			if !slices.ContainsFunc(f.Samples, named) {
				continue // a block without a row would have a number that the log does not know
			}
			b = h.blockFor(tsdb.FloorDiv(sec, BlockSeconds) * BlockSeconds)
			h.useCount++
			b.last, b.used, b.round = now, h.useCount, h.round
		}
		if c := h.nodes.chunkOf(node); c != held {
			if held != nil {
				held.mu.Unlock()
			}
			c.mu.Lock()
			held = c
		}
		h.take(held, b, node, int(sec-b.start), f.Samples)
		if len(h.pending.rec.buf) >= cutRecord {
			h.pending.cutRecord()
		}
	}
	if held != nil {
		held.mu.Unlock()
	}
	return errors.Join(refused...)
}

// take puts one node's samples into a block; the caller holds the lock of its chunk.
func (h *head) take(c *nodeChunk, b *openBlock, node, sec int, samples []collector.Sample) {
	if h.fastRow(c, b, node, sec, samples) {
		return
	}
	h.row.reset()
	for _, s := range samples {
		if named(s) {
			h.row.add(s.Metric, floatBits(s.Value))
		}
	}
	if len(h.row.metrics) > 0 {
		h.writeRow(c, b, node, sec)
	}
}

// named says whether this program has a name for a sample's metric.
func named(s collector.Sample) bool {
	return s.Metric.Known()
}

// fastRow takes the usual row: the newest of its node, with metrics of the row before in the same order, though
// not all of them. It returns false, with nothing changed, for any other.
func (h *head) fastRow(c *nodeChunk, b *openBlock, node, sec int, samples []collector.Sample) bool {
	n, rows := b.node(node)
	if n == nil || sec <= newestOf(rows) || len(samples) == 0 {
		return false
	}
	k := node % chunkNodes
	slots := h.row.all[:len(n.layout.metrics)]
	if !n.layout.take(slots, samples) {
		return false
	}
	rows.Set(sec)
	if c.repeats(b, n, k, slots) {
		h.pending.rec.sameRow(b, sec, node)
		return true
	}
	b.cells.append(&n.rows, sec, h.pending.rec.row(b, sec, node, slots))
	c.show(b, n, node, slots)
	return true
}

// take fills slots with samples that name metrics of the layout in its order, though not all of them. It returns
// false for any others.
func (l *layout) take(slots []uint64, samples []collector.Sample) bool {
	metrics := l.metrics[:len(slots)]
	if len(samples) == len(slots) {
		for i := range slots {
			s := &samples[i]
			if s.Metric != metrics[i] {
				return false
			}
			slots[i] = floatBits(s.Value)
		}
		return true
	}
	taken := 0
	for slot, m := range metrics {
		v := absentBits
		if taken < len(samples) && samples[taken].Metric == m {
			v = floatBits(samples[taken].Value)
			taken++
		}
		slots[slot] = v
	}
	return taken == len(samples)
}

// repeats says that a row is like the one before it in its block, as far as that is known at once: the live row is
// that one, or nothing is known. The caller holds the lock.
func (c *nodeChunk) repeats(b *openBlock, n *openNode, k int, slots []uint64) bool {
	if c.blocks[k] != b.id || c.layouts[k] != n.layout {
		return false
	}
	differ := uint64(0)
	for slot, v := range c.row(k, len(slots)) {
		differ |= math.Float64bits(v) ^ slots[slot]
	}
	return differ == 0
}

// writeRow takes any row, from h.row, which the caller has filled with at least one metric.
func (h *head) writeRow(c *nodeChunk, b *openBlock, node, sec int) {
	row := &h.row
	n, rows := b.node(node)
	widened := n == nil || slices.ContainsFunc(row.metrics,
		func(m collector.Metric) bool { return n.layout.slotOf(m) < 0 })
	if widened {
		if row.fit(n); len(row.metrics) == 0 {
			return
		}
		n, rows = b.ensure(node, h.layouts.of(n, row.metrics))
		h.nodes.note(node, row.metrics)
	}
	row.slots = row.all[:len(n.layout.metrics)]
	for slot := range row.slots {
		row.slots[slot] = absentBits
	}
	for i, m := range row.metrics {
		row.slots[n.layout.slotOf(m)] = row.vals[i]
	}
	newest := newestOf(rows)
	if sec <= newest {
		if !widened && rows.Has(sec) && !h.differs(b, n, sec, newest) {
			return // the same sample again
		}
		h.logRow(b, sec, node)
		if sec < newest {
			n.insert(rows, sec, row.slots)
			return
		}
		h.fillIn(b, n, sec)
	}
	switch {
	case sec == newest: // logged above
	case widened:
		h.logRow(b, sec, node)
	case h.pending.rec != nil:
		h.pending.rec.row(b, sec, node, row.slots)
	}
	b.cells.append(&n.rows, sec, row.bytes[:putRow(row.bytes[:], row.slots)])
	rows.Set(sec)
	if h.pending.rec != nil { // Open shows what it replayed at its end
		c.show(b, n, node, row.slots)
	}
}

// fit leaves out what a row has no column for beside those of its node's layout: no layer's nodes report as many
// metrics, and who sends more has the first ones kept.
func (r *rowBuffer) fit(n *openNode) {
	free := maxColumns
	if n != nil {
		free -= len(n.layout.metrics)
	}
	kept := 0
	for i, m := range r.metrics {
		if n == nil || n.layout.slotOf(m) < 0 {
			if free == 0 {
				continue
			}
			free--
		}
		r.metrics[kept], r.vals[kept] = m, r.vals[i]
		kept++
	}
	r.metrics, r.vals = r.metrics[:kept], r.vals[:kept]
}

// fillIn completes h.row by what the second has already.
func (h *head) fillIn(b *openBlock, n *openNode, sec int) {
	there := h.thereAt(b, n, sec, sec)
	for slot, v := range h.row.slots {
		if v == absentBits {
			h.row.slots[slot] = there[slot]
		}
	}
}

func (h *head) logRow(b *openBlock, sec, node int) {
	if h.pending.rec != nil {
		h.pending.rec.namedRow(b, sec, node, h.row.metrics, h.row.vals)
	}
}

// thereAt returns what a second has already; newest is the node's newest.
func (h *head) thereAt(b *openBlock, n *openNode, sec, newest int) []uint64 {
	there := h.row.there[:len(n.layout.metrics)]
	if n.late == nil && n.rows.bytes > 0 && sec == newest {
		var row []byte
		row, h.row.scratch = b.cells.last(&n.rows, h.row.scratch)
		rowValues(row, there)
		return there
	}
	h.row.scratch = b.row(n, sec, there, h.row.scratch)
	return there
}

// differs says whether h.row would change a second that is there already.
func (h *head) differs(b *openBlock, n *openNode, sec, newest int) bool {
	there := h.thereAt(b, n, sec, newest)
	for slot, v := range h.row.slots {
		if v != absentBits && there[slot] != v {
			return true
		}
	}
	return false
}
