package tsdb

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"fairway/collector"
	"fairway/collector/topology"
)

// rowBuffer is one row on its way into a block.
type rowBuffer struct {
	metrics []collector.Metric
	vals    []uint64 // by place in metrics
	slots   []uint64 // by slot of the node's layout
	there   []uint64 // what the second has already, by slot
	body    []byte   // the row's changes, as the log and the node's stream keep them
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

// floatBits is the engine's form of a value from outside: what is no value is not known, and
// there is one zero.
func floatBits(v float64) uint64 {
	if v == 0 {
		return 0
	}
	if !collector.IsValue(v) {
		return absentBits
	}
	return math.Float64bits(v)
}

// write puts frames into the open blocks and the pending log record; the caller holds mu.
func (db *DB) write(frames []collector.Frame) error {
	var refused []error
	var b *openBlock
	now := db.opts.Now().Unix()
	for i := range frames {
		f := &frames[i]
		sec := floorDiv(f.TimeMillis, 1000)
		node, err := db.nodeOf(f, sec)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		start := floorDiv(sec, BlockSeconds) * BlockSeconds
		if b == nil || b.start != start {
			if !slices.ContainsFunc(f.Samples, named) {
				continue // a block without a row would have a number that the log does not know
			}
			b = db.blockFor(start)
			db.useCount++
			b.last, b.used, b.round = now, db.useCount, db.round
		}
		off := int(sec - start)
		if n := b.node(node); n == nil || off <= n.newest() || !db.fastRow(b, n, node, off, f.Samples) {
			db.row.reset()
			for _, s := range f.Samples {
				if named(s) {
					db.row.add(s.Metric, floatBits(s.Value))
				}
			}
			if len(db.row.metrics) > 0 {
				db.writeRow(b, node, off)
			}
		}
		if len(db.rec.buf) >= cutRecord {
			db.cutRecord()
		}
	}
	return errors.Join(refused...)
}

// named says whether this program has a name for a sample's metric.
func named(s collector.Sample) bool {
	return s.Metric != collector.MetricNone && int(s.Metric) < collector.MetricCount
}

// cutRecord ends the pending log record, so that no record grows beyond what a reader takes; the
// caller holds mu.
func (db *DB) cutRecord() {
	db.rec.flush()
	if db.rec.empty() {
		return
	}
	db.cut = append(db.cut, slices.Clone(db.rec.buf))
	db.unsynced += len(db.rec.buf)
	db.rec.reset()
}

// nodeOf returns the number of a frame's node, which it adds when it is new.
func (db *DB) nodeOf(f *collector.Frame, sec int64) (int, error) {
	if sec < minSecond || sec >= maxSecond {
		return 0, fmt.Errorf("append: frame of node %q has time %d ms, outside 1970 to 2242; it is left out", f.Node, f.TimeMillis)
	}
	if f.Node == "" || len(f.Node) > maxName {
		return 0, fmt.Errorf("append: a node name of %d bytes (1 to %d are allowed); its frame is left out", len(f.Node), maxName)
	}
	node, ok := db.table.find(f.Node, db.lastNode)
	if !ok {
		if len(db.table.entries) >= maxNodes {
			return 0, fmt.Errorf("append: node %q would be number %d, the most is %d; its frame is left out", f.Node, len(db.table.entries)+1, maxNodes)
		}
		node = db.table.add(f.Node, f.Role)
		db.growLive()
		db.numbers.Store(f.Node, node)
	}
	if e := &db.table.entries[node]; e.role != f.Role && f.Role != topology.RoleUnknown {
		e.role, db.table.changed = f.Role, true
	}
	db.lastNode = node
	return node, nil
}

// fastRow takes the usual row: the newest of its node, with the metrics of the row before in the
// same order. It returns false, with nothing changed, for any other.
func (db *DB) fastRow(b *openBlock, n *openNode, node, sec int, samples []collector.Sample) bool {
	metrics := n.layout.metrics
	if len(samples) != len(metrics) {
		return false
	}
	last := n.last[:len(metrics)]
	mask := uint64(0)
	for i := range samples {
		if samples[i].Metric != metrics[i] {
			return false
		}
		if floatBits(samples[i].Value) != last[i] {
			mask |= 1 << i
		}
	}
	if mask == 0 {
		db.rec.sameRow(b, sec, node)
		db.finishRow(n, node, sec)
		return true
	}
	next := db.row.slots[:0]
	for i := range samples {
		next = append(next, floatBits(samples[i].Value))
	}
	db.row.slots = next
	db.row.body = appendChanges(db.row.body[:0], mask, n.last, next)
	db.rec.deltaRow(b, sec, node, db.row.body)
	db.changeRow(b, n, node, sec, mask)
	return true
}

// changeRow adds the node's newest row, or more of it, from db.row; it differs from the one before in the slots
// of mask, of which body tells.
func (db *DB) changeRow(b *openBlock, n *openNode, node, sec int, mask uint64) {
	n.seq.Add(1)
	if mask != 0 {
		b.cells.append(&n.changes, sec, db.row.body)
	}
	for ; mask != 0; mask &= mask - 1 {
		slot := bits.TrailingZeros64(mask)
		atomic.StoreUint64(&n.last[slot], db.row.slots[slot])
	}
	db.finishRow(n, node, sec)
	n.seq.Add(1)
}

// finishRow makes a row visible whose values are in place.
func (db *DB) finishRow(n *openNode, node, sec int) {
	n.addRow(sec)
	live := &(*db.live.Load())[node]
	if cur := live.Load(); cur != n && db.newer(n, cur) {
		live.Store(n)
	}
}

// newer says whether n's newest row should be shown as its node's latest instead of cur's. A clock
// that ran ahead and was set right must not hide the rows after that.
func (db *DB) newer(n, cur *openNode) bool {
	if cur == nil {
		return true
	}
	const ahead = 60
	shown, next := cur.block.start+int64(cur.newest()), n.block.start+int64(n.newest())
	return next >= shown || shown > db.opts.Now().Unix()+ahead
}

// writeRow takes any row, from db.row, which the caller has filled with at least one metric.
func (db *DB) writeRow(b *openBlock, node, sec int) {
	row := &db.row
	n := b.node(node)
	widened := n == nil || slices.ContainsFunc(row.metrics, func(m collector.Metric) bool { return n.layout.slotOf(m) < 0 })
	if widened {
		n = b.ensure(node, db.layoutFor(n, row.metrics))
		db.noteMetrics(node, row.metrics)
		live := &(*db.live.Load())[node]
		if shown := live.Load(); shown != nil && shown.block.start == b.start {
			live.Store(n)
		}
	}
	row.slots = row.slots[:0]
	for range n.layout.metrics {
		row.slots = append(row.slots, absentBits)
	}
	for i, m := range row.metrics {
		row.slots[n.layout.slotOf(m)] = row.vals[i]
	}
	newest := n.newest()
	if sec <= newest {
		if !widened && n.has(sec) && !db.differs(n, sec) {
			return // the same sample again
		}
		db.logRow(b, sec, node)
		if sec < newest {
			n.insert(sec, row.slots)
			return
		}
		for slot, v := range row.slots { // more of the newest row
			if v == absentBits {
				row.slots[slot] = n.last[slot]
			}
		}
	}
	mask := uint64(0)
	for slot, v := range row.slots {
		if v != n.last[slot] {
			mask |= 1 << slot
		}
	}
	row.body = appendChanges(row.body[:0], mask, n.last, row.slots)
	switch {
	case sec == newest: // logged above
	case widened:
		db.logRow(b, sec, node)
	case db.rec != nil:
		db.rec.deltaRow(b, sec, node, row.body)
	}
	db.changeRow(b, n, node, sec, mask)
}

func (db *DB) logRow(b *openBlock, sec, node int) {
	if db.rec != nil {
		db.rec.fullRow(b, sec, node, db.row.metrics, db.row.vals)
	}
}

// differs says whether db.row would change a second that is there already.
func (db *DB) differs(n *openNode, sec int) bool {
	there := n.last
	if sec < n.newest() {
		db.row.there = append(db.row.there[:0], n.last...)
		there = db.row.there
		db.row.scratch = n.row(sec, there, db.row.scratch)
	}
	for slot, v := range db.row.slots {
		if v != absentBits && there[slot] != v {
			return true
		}
	}
	return false
}

// layoutFor returns the layout of a node's columns once it also has metrics.
func (db *DB) layoutFor(n *openNode, metrics []collector.Metric) *layout {
	var all []collector.Metric
	if n != nil {
		all = slices.Clone(n.layout.metrics)
	}
	for _, m := range metrics {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	key := string(asBytes(all))
	l := db.layouts[key]
	if l == nil {
		l = newLayout(all)
		db.layouts[key] = l
	}
	return l
}

func asBytes(metrics []collector.Metric) []byte {
	out := make([]byte, len(metrics))
	for i, m := range metrics {
		out[i] = byte(m)
	}
	return out
}

func (db *DB) noteMetrics(node int, metrics []collector.Metric) {
	e := &db.table.entries[node]
	for _, m := range metrics {
		if e.metrics>>m&1 == 0 {
			e.metrics |= 1 << m
			db.table.changed = true
		}
	}
}

// blockFor returns the open block that begins at start, opening one where there is none.
func (db *DB) blockFor(start int64) *openBlock {
	v := db.view.Load()
	for i := len(v.open) - 1; i >= 0; i-- {
		if b := v.open[i]; b.start == start && !b.closed {
			db.noteBlock(b.id)
			return b
		}
	}
	db.nextBlock++
	db.rotate = true // a segment goes when the blocks in it are sealed
	b := db.addBlock(db.nextBlock, start)
	db.noteBlock(b.id)
	return b
}

func (db *DB) noteBlock(id uint64) {
	if !slices.Contains(db.recBlocks, id) {
		db.recBlocks = append(db.recBlocks, id)
	}
}

func (db *DB) addBlock(id uint64, start int64) *openBlock {
	b := newOpenBlock(id, start, len(db.table.entries))
	old := db.view.Load()
	next := *old
	next.open = append(slices.Clone(old.open), b)
	slices.SortStableFunc(next.open, func(a, b *openBlock) int { return int(a.start - b.start) })
	db.view.Store(&next)
	return b
}

// replayedBlock opens the block of an id found in the log; nil says that its rows are sealed.
func (db *DB) replayedBlock(id uint64, start int64) (*openBlock, error) {
	db.nextBlock = max(db.nextBlock, id)
	if through, err := db.sealedThrough(start); err != nil || id <= through {
		return nil, err
	}
	b := db.addBlock(id, start)
	b.last = db.opts.Now().Unix()
	return b, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
