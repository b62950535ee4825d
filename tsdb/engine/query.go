package engine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
)

// span is 120 seconds for which the store has rows, and where they are; later pieces win.
type span struct {
	start  int64
	frames []*frame
	open   []*openBlock
}

// spans lists the spans that overlap [from, to), Unix seconds, in order of time.
func (v *view) spans(from, to int64) ([]span, error) {
	out := make([]span, 0, min((to-from)/BlockSeconds+2, fileSeconds/BlockSeconds))
	at := func(start int64) *span {
		i, found := slices.BinarySearchFunc(out, start, func(s span, start int64) int { return int(s.start - start) })
		if !found {
			out = slices.Insert(out, i, span{start: start})
		}
		return &out[i]
	}
	inside := func(start int64) bool { return start < to && start+BlockSeconds > from }
	for _, file := range v.files {
		if file.hour >= to || file.hour+fileSeconds <= from {
			continue
		}
		frames, err := file.frames()
		if err != nil {
			return nil, err
		}
		for _, f := range frames {
			if inside(f.start) {
				s := at(f.start)
				s.frames = append(s.frames, f)
			}
		}
	}
	for _, b := range v.open {
		if inside(b.start) {
			s := at(b.start)
			s.open = append(s.open, b)
		}
	}
	return out, nil
}

// reader reads spans for one query. Damaged pieces are reported and left out.
type reader struct {
	nodes   *nodeTable
	damages *damageList
	fr      frameReader
	over    column.Column
	open    copied // an open node's rows
	err     error  // reading failed for another reason than damage
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// reader returns a reader of the store's blocks; release gives it back.
func (h *head) reader() *reader {
	r := readers.Get().(*reader)
	r.nodes, r.damages, r.err, r.fr.shared = h.nodes, &h.damages, nil, &h.blocks.indexes
	return r
}

// release gives the reader back and returns its error.
func (r *reader) release() error {
	err := r.err
	for i := range r.fr.cached {
		r.fr.cached[i].frame = nil
	}
	for i := range r.fr.indexes {
		r.fr.indexes[i] = cachedIndex{}
	}
	r.fr.vouched, r.fr.keep = nil, false
	r.nodes, r.damages, r.fr.shared = nil, nil, nil
	readers.Put(r)
	if errors.Is(err, os.ErrClosed) {
		return tsdb.ErrClosed
	}
	return err
}

func (r *reader) failed(f *frame, err error) {
	if errors.Is(err, errDamaged) {
		r.damages.report(Damage{f.path, f.offset, err.Error(), fmt.Sprintf("these values in the %d s from %d",
			BlockSeconds,
			f.start)})
		return
	}
	r.err = err
}

// column reads a node's values; ok is false where the span has none.
func (r *reader) column(s *span, node int, m collector.Metric, c *column.Column) (ok bool) {
	for _, f := range s.frames {
		dst := c
		if ok {
			dst = &r.over
		}
		found, err := r.fr.column(f, m, node, dst)
		if err != nil {
			r.failed(f, err)
			continue
		}
		if found && ok {
			overlay(c, &r.over)
		}
		ok = ok || found
	}
	for _, b := range s.open {
		slot, found := b.copy(r.nodes.chunkOf(node), node, m, &r.open)
		if !found {
			continue
		}
		var vals [BlockSeconds]uint64
		r.open.column(slot, &vals)
		if !ok {
			c.Present = column.Mask{}
			ok = true
		}
		for i, v := range vals {
			if v != absentBits {
				c.V[i] = math.Float64frombits(v)
				c.Present.Set(i)
			}
		}
	}
	return ok && c.Present != column.Mask{}
}

// overlay puts the present values of over in place of c's.
func overlay(c, over *column.Column) {
	for s, v := range over.V {
		if over.Present.Has(s) {
			c.V[s] = v
		}
	}
	c.Present = c.Present.Or(over.Present)
}

// found is how much of a column the index alone has.
type found uint8

const (
	foundNothing found = iota // the span has no value
	foundEntry                // one line in the index is all there is
	foundValues               // the values must be read
)

// only looks whether a node's line in the index is all that the span has of the metric.
func (r *reader) only(s *span, node int, m collector.Metric) (e entry, is found) {
	for _, b := range s.open {
		if b.has(r.nodes.chunkOf(node), node, m) {
			return e, foundValues
		}
	}
	for _, f := range s.frames {
		line, err := r.fr.entry(f, m, node)
		if err != nil {
			r.failed(f, err)
			continue
		}
		if line == nil {
			continue
		}
		if is == foundEntry {
			return e, foundValues
		}
		e, is = *line, foundEntry
	}
	return e, is
}

// window returns which of a span's seconds lie in [from, to).
func (s *span) window(from, to int64) (lo, hi int) {
	return int(max(from-s.start, 0)), int(min(to-s.start, BlockSeconds))
}

// secondRange turns [from, to) in milliseconds into seconds.
func secondRange(fromMillis, toMillis int64) (from, to int64) {
	return tsdb.CeilSecond(fromMillis), tsdb.CeilSecond(toMillis)
}
