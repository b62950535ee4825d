package log

import (
	"encoding/binary"
	"fmt"
	"math"

	"fairway/collector"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// Op is an operation of a record. Its kind says what it holds, which is valid until the next.
type Op struct {
	Kind  Kind
	Block uint64 // what rows are of
	Start int64  // of the block
	Sec   int    // in the block
	// Node is the row's. Of Same all nodes below End repeat their newest row.
	Node, End int
	Row       []byte             // by the node's columns
	Metrics   []collector.Metric // of a row by metric
	Values    []uint64           // of Metrics
}

// Record is a record that is read, operation by operation.
type Record struct {
	Path string // of its segment
	Op          // that Next read

	buf    []byte
	at     int
	nodes  int // that are known
	cursor int // the node after the last one
	chosen bool
	seen   map[uint64]bool // blocks of this segment
	blocks []uint64        // seen, in order
}

func (r *Record) begin(payload []byte) {
	r.buf, r.at, r.cursor, r.chosen, r.Sec = payload, 0, 0, false, 0
}

// Next reads an operation; more is false at the end.
func (r *Record) Next() (more bool, err error) {
	if r.at >= len(r.buf) {
		return false, nil
	}
	head, err := r.uvarint()
	if err != nil {
		return false, err
	}
	arg := head >> 2
	r.Kind = Kind(head & 3)
	if r.Kind == Context {
		return true, r.context()
	}
	if !r.chosen {
		return false, fmt.Errorf("log record: rows before a block was chosen, at byte %d", r.at)
	}
	if r.Kind == Same {
		if arg > uint64(r.nodes-r.cursor) {
			return false, fmt.Errorf("log record: a run of %d nodes from node %d, but %d are known", arg, r.cursor,
				r.nodes)
		}
		r.Node, r.End = r.cursor, r.cursor+int(arg)
		r.cursor = r.End
		return true, nil
	}
	r.Node = r.cursor + int(column.Unzigzag(arg))
	if r.Node < 0 || r.Node >= r.nodes {
		return false, fmt.Errorf("log record: node %d, but %d are known", r.Node, r.nodes)
	}
	r.cursor = r.Node + 1
	if r.Kind == Named {
		return true, r.named()
	}
	return true, r.row()
}

func (r *Record) context() error {
	id, err := r.uvarint()
	if err != nil {
		return err
	}
	span, err := r.uvarint()
	if err != nil {
		return err
	}
	sec, err := r.byte()
	if err != nil {
		return err
	}
	start := column.Unzigzag(span) * column.Seconds
	if sec >= column.Seconds || start > rows.MaxSecond || start < rows.MinSecond {
		return fmt.Errorf("log record: second %d of a block at %d", sec, start)
	}
	if !r.seen[id] {
		r.seen[id] = true
		r.blocks = append(r.blocks, id)
	}
	r.Block, r.Start, r.Sec, r.chosen = id, start, int(sec), true
	return nil
}

// row reads a row by columns.
func (r *Record) row() error {
	size, ok := rows.Size(r.buf[r.at:])
	if !ok {
		return fmt.Errorf("log record: no row at byte %d of %d", r.at, len(r.buf))
	}
	r.at += size
	r.Row = r.buf[r.at-size : r.at]
	return nil
}

// named reads a row by metric.
func (r *Record) named() error {
	count, err := r.uvarint()
	if err != nil {
		return err
	}
	r.Metrics, r.Values = r.Metrics[:0], r.Values[:0]
	if count > rows.MaxColumns {
		return fmt.Errorf("log record: a row of %d metrics", count)
	}
	for range count {
		m, err := r.byte()
		if err != nil {
			return err
		}
		v, err := r.value()
		if err != nil {
			return err
		}
		if int(m) >= collector.MetricCount {
			return fmt.Errorf("log record: metric number %d is not known: %w", m, disk.ErrNewerFormat)
		}
		r.Metrics, r.Values = append(r.Metrics, collector.Metric(m)), append(r.Values, v)
	}
	return nil
}

func (r *Record) uvarint() (uint64, error) {
	if r.at < len(r.buf) && r.buf[r.at] < 0x80 {
		r.at++
		return uint64(r.buf[r.at-1]), nil
	}
	u, n := column.Uvarint(r.buf[r.at:])
	if n <= 0 {
		return 0, fmt.Errorf("log record: bad number at byte %d of %d", r.at, len(r.buf))
	}
	r.at += n
	return u, nil
}

func (r *Record) byte() (byte, error) {
	if r.at >= len(r.buf) {
		return 0, fmt.Errorf("log record: ends at byte %d inside an operation", r.at)
	}
	r.at++
	return r.buf[r.at-1], nil
}

// value reads one value.
func (r *Record) value() (uint64, error) {
	u, err := r.uvarint()
	if err != nil {
		return 0, err
	}
	switch {
	case u&1 == 0:
		return math.Float64bits(float64(column.Unzigzag(u >> 1))), nil
	case u == valueAbsent:
		return rows.Absent, nil
	case u == valueRaw && len(r.buf)-r.at >= 8:
		r.at += 8
		return binary.LittleEndian.Uint64(r.buf[r.at-8:]), nil
	}
	return 0, fmt.Errorf("log record: unknown value code %d before byte %d of %d", u, r.at, len(r.buf))
}
