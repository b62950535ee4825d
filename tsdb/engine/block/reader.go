package block

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// Readers are the readers of one store, which share what they have read.
type Readers struct {
	Nodes   *rows.Chunks // whose locks guard open blocks
	Damages *disk.Damages
	idle    sync.Pool
	indexes cache
}

// Get returns a reader, which Release gives back. few says that it will ask for few nodes, whose columns leave room for
// those of others.
func (rs *Readers) Get(few bool) *Reader {
	r, ok := rs.idle.Get().(*Reader)
	if !ok {
		r = &Reader{of: rs}
	}
	r.err, r.fr.shared, r.fr.keep = nil, &rs.indexes, few
	return r
}

// Forget lets go of files that are removed.
func (rs *Readers) Forget() { rs.indexes.clear() }

// Reader reads spans for one query. Damaged pieces are reported and left out.
type Reader struct {
	of      *Readers
	fr      frameReader
	over    column.Column
	written column.Column
	open    rows.Snapshot
	err     error // reading failed for another reason than damage
}

// Err returns why reading failed, but for damage.
func (r *Reader) Err() error { return r.err }

// Release gives the reader back and returns its error.
func (r *Reader) Release() error {
	err := r.err
	for i := range r.fr.cached {
		r.fr.cached[i].frame = nil
	}
	for i := range r.fr.indexes {
		r.fr.indexes[i] = cachedIndex{}
	}
	r.fr.vouched, r.fr.shared = nil, nil
	r.of.idle.Put(r)
	if errors.Is(err, os.ErrClosed) {
		return tsdb.ErrClosed
	}
	return err
}

func (r *Reader) failed(f *frame, err error) {
	if errors.Is(err, errDamaged) {
		r.of.Damages.Report(disk.Damage{File: f.path, Offset: f.offset, What: err.Error(),
			Lost: fmt.Sprintf("these values in the %d s from %d", column.Seconds, f.start)})
		return
	}
	r.err = err
}

// Column reads a node's values; ok is false where the span has none.
func (r *Reader) Column(s *Span, node int, m collector.Metric, c *column.Column) (ok bool) {
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
			c.Overlay(&r.over)
		}
		ok = ok || found
	}
	for _, b := range s.open {
		if !b.Snapshot(r.of.Nodes.Of(node), node, m, &r.open) {
			continue
		}
		var vals [column.Seconds]uint64
		r.open.Column(&vals)
		if !ok {
			c.Present = column.Mask{}
			ok = true
		}
		for i, v := range vals {
			if v != rows.Absent {
				c.V[i] = math.Float64frombits(v)
				c.Present.Set(i)
			}
		}
	}
	return ok && c.Present != column.Mask{}
}

// Moved reads into c how many bytes a node moved in each second; of c only the values count.
func (r *Reader) Moved(s *Span, node int, c *column.Column) {
	if !r.Column(s, node, collector.ReadBytes, c) {
		c.Present = column.Mask{}
	}
	if !r.Column(s, node, collector.WriteBytes, &r.written) {
		return
	}
	r.written.Present.Each(func(k int) {
		if !c.Present.Has(k) {
			c.V[k] = 0
		}
		c.V[k] += r.written.V[k]
	})
	c.Present = c.Present.Or(r.written.Present)
}

// Extent is how much of a column the index alone has.
type Extent uint8

// The extents.
const (
	Nothing Extent = iota // the span has no value
	Line                  // one line in the index is all there is
	Values                // the values must be read
)

// Only looks whether a node's line in the index is all that the span has of the metric.
func (r *Reader) Only(s *Span, node int, m collector.Metric) (e Entry, is Extent) {
	for _, b := range s.open {
		if b.Has(r.of.Nodes.Of(node), node, m) {
			return e, Values
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
		if is == Line {
			return e, Values
		}
		e, is = *line, Line
	}
	return e, is
}
