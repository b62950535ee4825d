package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"fairway/collector"
	"fairway/collector/topology"
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

// floatBits is the engine's form of a value from outside: what is no value (collector.IsValue) is not known, and
// there is one zero. It has no branch that depends on whether a value is 0, which nobody can foretell. Magnitudes
// of float64 are in the order of their bits, those of what is no number come last.
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

// write puts frames into the open blocks and the pending log record; the caller holds mu.
func (db *DB) write(frames []collector.Frame) error {
	var refused []error
	var b *openBlock
	var held *liveChunk
	now := db.opts.Now().Unix()
	millis, sec := int64(0), int64(0)
	for i := range frames {
		f := &frames[i]
		if f.TimeMillis != millis {
			millis, sec = f.TimeMillis, floorDiv(f.TimeMillis, 1000)
		}
		node, err := db.nodeOf(f, sec)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if b == nil || sec-b.start >= BlockSeconds || sec < b.start {
			if !slices.ContainsFunc(f.Samples, named) {
				continue // a block without a row would have a number that the log does not know
			}
			b = db.blockFor(floorDiv(sec, BlockSeconds) * BlockSeconds)
			db.useCount++
			b.last, b.used, b.round = now, db.useCount, db.round
		}
		if c := db.chunkOf(node); c != held {
			if held != nil {
				held.mu.Unlock()
			}
			c.mu.Lock()
			held = c
		}
		db.take(held, b, node, int(sec-b.start), f.Samples)
		if len(db.rec.buf) >= cutRecord {
			db.cutRecord()
		}
	}
	if held != nil {
		held.mu.Unlock()
	}
	return errors.Join(refused...)
}

// take puts one node's samples into a block; the caller holds the lock of its chunk.
func (db *DB) take(c *liveChunk, b *openBlock, node, sec int, samples []collector.Sample) {
	if db.fastRow(c, b, node, sec, samples) {
		return
	}
	db.row.reset()
	for _, s := range samples {
		if named(s) {
			db.row.add(s.Metric, floatBits(s.Value))
		}
	}
	if len(db.row.metrics) > 0 {
		db.writeRow(c, b, node, sec)
	}
}

// named says whether this program has a name for a sample's metric.
func named(s collector.Sample) bool {
	return s.Metric.Known()
}

// cutRecord ends the pending log record, so that no record grows beyond what a reader takes; the
// caller holds mu.
func (db *DB) cutRecord() {
	db.rec.flush()
	if db.rec.empty() {
		return
	}
	db.unsynced += len(db.rec.buf)
	db.cut = append(db.cut, db.rec.buf)
	db.rec.reset(db.spare)
	db.spare = nil
}

// nodeOf returns the number of a frame's node, which it adds when it is new.
func (db *DB) nodeOf(f *collector.Frame, sec int64) (int, error) {
	if sec < minSecond || sec >= maxSecond {
		return 0, fmt.Errorf("append: frame of node %q has time %d ms, outside 1970 to 2242; it is left out", f.Node,
			f.TimeMillis)
	}
	if node, ok := db.table.foretold(f.Node, f.Role, db.lastNode); ok {
		db.lastNode = node
		return node, nil
	}
	if f.Node == "" || len(f.Node) > maxName {
		return 0, fmt.Errorf("append: a node name of %d bytes (1 to %d are allowed); its frame is left out",
			len(f.Node), maxName)
	}
	node, ok := db.table.byName[f.Node]
	if !ok {
		if len(db.table.entries) >= maxNodes {
			return 0, fmt.Errorf("append: node %q would be number %d, the most is %d; its frame is left out", f.Node,
				len(db.table.entries)+1, maxNodes)
		}
		node = db.table.add(f.Node, f.Role)
		db.growLive()
		db.numbers.Store(f.Node, node)
	}
	if e := &db.table.entries[node]; e.role != f.Role && f.Role != topology.RoleUnknown {
		e.role, db.table.changed = f.Role, true
		db.table.roles++
	}
	db.table.foretell(db.lastNode, node, f.Role)
	db.lastNode = node
	return node, nil
}

// fastRow takes the usual row: the newest of its node, with metrics of the row before in the same order, though
// not all of them. It returns false, with nothing changed, for any other.
func (db *DB) fastRow(c *liveChunk, b *openBlock, node, sec int, samples []collector.Sample) bool {
	n, rows := b.node(node)
	if n == nil || sec <= newestOf(rows) || len(samples) == 0 {
		return false
	}
	k := node % chunkNodes
	slots := db.row.all[:len(n.layout.metrics)]
	if !n.layout.take(slots, samples) {
		return false
	}
	rows.Set(sec)
	if c.repeats(b, n, k, slots) {
		db.rec.sameRow(b, sec, node)
		c.secs[k] = b.start + int64(sec)
		return true
	}
	b.cells.append(&n.rows, sec, db.rec.row(b, sec, node, slots))
	c.show(db, b, n, node, sec, slots)
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
func (c *liveChunk) repeats(b *openBlock, n *openNode, k int, slots []uint64) bool {
	if c.blocks[k] != b.id || c.layouts[k] != n.layout {
		return false
	}
	differ := uint64(0)
	for slot, v := range c.row(k, len(slots)) {
		differ |= math.Float64bits(v) ^ slots[slot]
	}
	return differ == 0
}

// writeRow takes any row, from db.row, which the caller has filled with at least one metric.
func (db *DB) writeRow(c *liveChunk, b *openBlock, node, sec int) {
	row := &db.row
	n, rows := b.node(node)
	widened := n == nil || slices.ContainsFunc(row.metrics,
		func(m collector.Metric) bool { return n.layout.slotOf(m) < 0 })
	if widened {
		n, rows = b.ensure(node, db.layoutFor(n, row.metrics))
		db.noteMetrics(node, row.metrics)
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
		if !widened && rows.Has(sec) && !db.differs(b, n, sec, newest) {
			return // the same sample again
		}
		db.logRow(b, sec, node)
		if sec < newest {
			n.insert(rows, sec, row.slots)
			return
		}
		db.fillIn(b, n, sec)
	}
	switch {
	case sec == newest: // logged above
	case widened:
		db.logRow(b, sec, node)
	case db.rec != nil:
		db.rec.row(b, sec, node, row.slots)
	}
	b.cells.append(&n.rows, sec, row.bytes[:putRow(row.bytes[:], row.slots)])
	rows.Set(sec)
	if db.rec != nil { // Open shows what it replayed at its end
		c.show(db, b, n, node, sec, row.slots)
	}
}

// fillIn completes db.row by what the second has already.
func (db *DB) fillIn(b *openBlock, n *openNode, sec int) {
	there := db.thereAt(b, n, sec, sec)
	for slot, v := range db.row.slots {
		if v == absentBits {
			db.row.slots[slot] = there[slot]
		}
	}
}

func (db *DB) logRow(b *openBlock, sec, node int) {
	if db.rec != nil {
		db.rec.namedRow(b, sec, node, db.row.metrics, db.row.vals)
	}
}

// thereAt returns what a second has already; newest is the node's newest.
func (db *DB) thereAt(b *openBlock, n *openNode, sec, newest int) []uint64 {
	there := db.row.there[:len(n.layout.metrics)]
	if n.late == nil && n.rows.bytes > 0 && sec == newest {
		var row []byte
		row, db.row.scratch = b.cells.last(&n.rows, db.row.scratch)
		rowValues(row, there)
		return there
	}
	db.row.scratch = b.row(n, sec, there, db.row.scratch)
	return there
}

// differs says whether db.row would change a second that is there already.
func (db *DB) differs(b *openBlock, n *openNode, sec, newest int) bool {
	there := db.thereAt(b, n, sec, newest)
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
	} else if db.newest != nil && slices.Equal(db.newest.metrics, metrics) {
		return db.newest
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
	db.newest = l
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
