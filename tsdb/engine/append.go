package engine

import (
	"errors"
	"slices"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// rowBuffer is one row on its way into a block.
type rowBuffer struct {
	metrics []collector.Metric
	vals    []uint64 // by place in metrics
	all     [rows.MaxColumns]uint64
	slots   []uint64                // by slot of the node's layout
	there   [rows.MaxColumns]uint64 // what a second has already, by slot
	bytes   [rows.MaxBytes + rows.Slack]byte
}

func (r *rowBuffer) reset() { r.metrics, r.vals = r.metrics[:0], r.vals[:0] }

func (r *rowBuffer) add(m collector.Metric, v uint64) {
	if i := slices.Index(r.metrics, m); i >= 0 {
		r.vals[i] = v
		return
	}
	r.metrics, r.vals = append(r.metrics, m), append(r.vals, v)
}

// write puts frames into the open blocks and the pending log record; the caller holds the lock.
func (h *head) write(frames []collector.Frame) error {
	var refused []error
	var b *openBlock
	var held *rows.Latest
	now := h.opts.Now().Unix()
	millis, sec, start := int64(0), int64(0), int64(0)
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
		if b == nil || sec-start >= column.Seconds || sec < start {
			if !slices.ContainsFunc(f.Samples, named) {
				continue // a block without a row would have a number that the log does not know
			}
			start = tsdb.FloorDiv(sec, column.Seconds) * column.Seconds
			b = h.blockFor(start)
			h.useCount++
			b.last, b.used, b.round = now, h.useCount, h.round
		}
		if c := h.nodes.chunks.Of(node); c != held {
			if held != nil {
				held.Unlock()
			}
			c.Lock()
			held = c
		}
		h.take(held, b.Block, node, int(sec-start), f.Samples)
		if h.pending.Full() {
			h.pending.Cut()
		}
	}
	if held != nil {
		held.Unlock()
	}
	return errors.Join(refused...)
}

// take puts one node's samples into a block; the caller holds the lock of its chunk.
func (h *head) take(c *rows.Latest, b *rows.Block, node, sec int, samples []collector.Sample) {
	if h.fastRow(c, b, node, sec, samples) {
		return
	}
	h.row.reset()
	for _, s := range samples {
		if named(s) {
			h.row.add(s.Metric, rows.Bits(s.Value))
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
func (h *head) fastRow(c *rows.Latest, b *rows.Block, node, sec int, samples []collector.Sample) bool {
	n, secs := b.Node(node)
	if n == nil || sec <= secs.Newest() || len(samples) == 0 {
		return false
	}
	slots := h.row.all[:len(n.Layout.Metrics)]
	if !n.Layout.Take(slots, samples) {
		return false
	}
	secs.Set(sec)
	if c.Repeats(b, n, node, slots) {
		h.pending.Writer.SameRow(b, sec, node)
		return true
	}
	row := h.row.bytes[:rows.Put(h.row.bytes[:], slots)]
	h.pending.Writer.Row(b, sec, node, row)
	n.Append(sec, row)
	c.Show(b, n, node, slots)
	return true
}

// writeRow takes any row, from h.row, which the caller has filled with at least one metric.
func (h *head) writeRow(c *rows.Latest, b *rows.Block, node, sec int) {
	row := &h.row
	n, secs := b.Node(node)
	widened := n == nil || slices.ContainsFunc(row.metrics,
		func(m collector.Metric) bool { return n.Layout.Slot(m) < 0 })
	if widened {
		if row.fit(n); len(row.metrics) == 0 {
			return
		}
		n, secs = b.Ensure(node, h.layouts.Of(n, row.metrics))
		h.nodes.note(node, row.metrics)
	}
	row.slots = row.all[:len(n.Layout.Metrics)]
	for slot := range row.slots {
		row.slots[slot] = rows.Absent
	}
	for i, m := range row.metrics {
		row.slots[n.Layout.Slot(m)] = row.vals[i]
	}
	newest := secs.Newest()
	if sec <= newest {
		if !widened && secs.Has(sec) && !h.differs(n, sec, newest) {
			return // the same sample again
		}
		h.logRow(b, sec, node)
		if sec < newest {
			n.Insert(secs, sec, row.slots)
			return
		}
		h.fillIn(n, sec)
	}
	whole := row.bytes[:rows.Put(row.bytes[:], row.slots)]
	switch {
	case sec == newest: // logged above
	case widened:
		h.logRow(b, sec, node)
	case h.pending.Writer != nil:
		h.pending.Writer.Row(b, sec, node, whole)
	}
	n.Append(sec, whole)
	secs.Set(sec)
	if h.pending.Writer != nil { // Open shows what it replayed at its end
		c.Show(b, n, node, row.slots)
	}
}

// fit leaves out what a row has no column for beside those of its node's layout: no layer's nodes report as many
// metrics, and who sends more has the first ones kept.
func (r *rowBuffer) fit(n *rows.Node) {
	free := rows.MaxColumns
	if n != nil {
		free -= len(n.Layout.Metrics)
	}
	kept := 0
	for i, m := range r.metrics {
		if n == nil || n.Layout.Slot(m) < 0 {
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
func (h *head) fillIn(n *rows.Node, sec int) {
	there := h.thereAt(n, sec, sec)
	for slot, v := range h.row.slots {
		if v == rows.Absent {
			h.row.slots[slot] = there[slot]
		}
	}
}

func (h *head) logRow(b *rows.Block, sec, node int) {
	if h.pending.Writer != nil {
		h.pending.Writer.NamedRow(b, sec, node, h.row.metrics, h.row.vals)
	}
}

// thereAt returns what a second has already; newest is the node's newest.
func (h *head) thereAt(n *rows.Node, sec, newest int) []uint64 {
	there := h.row.there[:len(n.Layout.Metrics)]
	n.There(sec, newest, there)
	return there
}

// differs says whether h.row would change a second that is there already.
func (h *head) differs(n *rows.Node, sec, newest int) bool {
	there := h.thereAt(n, sec, newest)
	for slot, v := range h.row.slots {
		if v != rows.Absent && there[slot] != v {
			return true
		}
	}
	return false
}
