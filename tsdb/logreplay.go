package tsdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"fairway/collector"
)

// Damage is one thing that a reader found wrong with a file of the store, and what it cost.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Lost   string `json:"lost"`
}

// String returns the damage as one line for a log or a report.
func (d Damage) String() string {
	return fmt.Sprintf("%s at byte %d: %s; lost: %s", d.File, d.Offset, d.What, d.Lost)
}

// ErrNewerFormat says that a file was written by a newer version of the program.
var ErrNewerFormat = errors.New("written by a newer version")

// readSegment calls record with every intact record of a segment in order and returns how far the
// file was intact. A torn end is not an error: it is a record that was never answered.
func readSegment(path string, header func(first, nextBlock uint64), record func(number uint64, payload []byte) error) (intact int64, torn bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	head := make([]byte, logHeaderSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, true, nil // the file was made and its header not yet written
	}
	if string(head[:4]) != logMagic {
		return 0, true, nil
	}
	if v := binary.LittleEndian.Uint16(head[4:]); v > logVersion {
		return 0, false, fmt.Errorf("log segment %s has format version %d, this program reads up to %d: %w", path, v, logVersion, ErrNewerFormat)
	}
	if crc32.Checksum(head[:24], castagnoli) != binary.LittleEndian.Uint32(head[24:]) {
		return 0, true, nil
	}
	header(binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:]))
	intact = logHeaderSize
	var buf []byte
	for {
		var h [recordHead]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return intact, !errors.Is(err, io.EOF), nil
		}
		size := binary.LittleEndian.Uint32(h[:])
		if size > maxRecord {
			return intact, true, nil
		}
		if buf, err = readUpTo(r, buf[:0], int(size)); err != nil {
			return intact, true, nil
		}
		sum := crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, buf)
		if sum != binary.LittleEndian.Uint32(h[4:]) {
			return intact, true, nil
		}
		if err := record(binary.LittleEndian.Uint64(h[8:]), buf); err != nil {
			return intact, false, err
		}
		intact += recordHead + int64(size)
	}
}

// readUpTo reads exactly n bytes into buf, growing it with what really arrives, so that a wrong
// length cannot make it allocate more than the file holds.
func readUpTo(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for len(buf) < n {
		at := len(buf)
		k := min(n-at, step)
		if cap(buf) < at+k {
			buf = append(buf, make([]byte, k)...)
		}
		buf = buf[:at+k]
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// replay rebuilds the open blocks from the log's segments and readies the log for new records.
func (db *DB) replay() error {
	dir := filepath.Join(db.dir, "wal")
	numbers, err := listSegments(dir)
	if err != nil {
		return fmt.Errorf("list the write-ahead log: %w", err)
	}
	next, known := uint64(0), false
	rep := replayer{db: db, blocks: map[uint64]*openBlock{}, broken: map[*openBlock]bool{}}
	for i, number := range numbers {
		path := filepath.Join(dir, segmentName(number))
		rep.seen = nil
		intact, torn, err := readSegment(path, func(first, nextBlock uint64) {
			if !known {
				next, known = first, true
			}
			db.nextBlock = max(db.nextBlock, nextBlock-1)
		}, func(n uint64, payload []byte) error {
			if n < next {
				return nil // was written again after a failed fsync
			}
			if n > next {
				db.damaged(Damage{path, 0, fmt.Sprintf("records %d to %d are missing", next, n-1), "the rows of these records and the changes that build on them"})
				rep.distrust()
			}
			next = n + 1
			if err := rep.apply(payload); err != nil {
				if errors.Is(err, ErrNewerFormat) || errors.Is(err, errCannotReplay) {
					return err
				}
				db.damaged(Damage{path, 0, fmt.Sprintf("record %d: %v", n, err), "the rest of this record's rows and the changes that build on them"})
				rep.distrust()
			}
			return nil
		})
		if err != nil {
			return err
		}
		if torn && i == len(numbers)-1 {
			db.log.Info("the log's newest segment ends in an unfinished record, as after a crash; it was never answered", "file", path, "intact_bytes", intact)
		}
		// What was read may be in memory only, if its writer was killed before an fsync. New records
		// build on it.
		if err := syncFile(db.fs, path); err != nil {
			return err
		}
		db.wal.segments = append(db.wal.segments, logSegment{number, rep.seen})
		db.wal.segment = number
	}
	db.wal.next = max(next, 1)
	if !known {
		return db.idsFromBlocks()
	}
	return nil
}

// syncFile makes what a file holds durable.
func syncFile(fsys files, path string) error {
	f, err := fsys.OpenAppend(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// idsFromBlocks finds the highest block id in use where the log cannot tell.
func (db *DB) idsFromBlocks() error {
	for _, file := range db.view.Load().files {
		frames, err := file.frames()
		if err != nil {
			return err
		}
		for _, f := range frames {
			db.nextBlock = max(db.nextBlock, f.id)
		}
	}
	return nil
}

// errCannotReplay says that something other than the log kept it from being replayed.
var errCannotReplay = errors.New("the write-ahead log cannot be replayed")

// replayer applies records to the DB's open blocks.
type replayer struct {
	db     *DB
	blocks map[uint64]*openBlock // by id; nil for one whose rows are in a sealed block
	seen   []uint64              // ids in this segment
	// broken are blocks of which a record is missing: their differences have no base any more, so
	// only rows written in full are still taken.
	broken map[*openBlock]bool
}

func (p *replayer) distrust() {
	for _, b := range p.blocks {
		if b != nil {
			p.broken[b] = true
		}
	}
}

func (p *replayer) apply(payload []byte) error {
	r := recordReader{buf: payload}
	var b *openBlock
	var have bool
	sec, cursor := 0, 0
	for r.at < len(r.buf) {
		head, err := r.uvarint()
		if err != nil {
			return err
		}
		op, arg := int(head&3), head>>2
		if op == opContext {
			if b, sec, err = p.context(&r); err != nil {
				return err
			}
			have = true
			continue
		}
		if !have {
			return fmt.Errorf("log record: rows before a block was chosen, at byte %d", r.at)
		}
		known := p.db.nodeCount()
		if op == opSame {
			if arg > uint64(known-cursor) {
				return fmt.Errorf("log record: a run of %d nodes from node %d, but %d are known", arg, cursor, known)
			}
			for range int(arg) {
				if b != nil && !p.broken[b] {
					p.same(b, cursor, sec)
				}
				cursor++
			}
			continue
		}
		node := cursor + int(unzigzag(arg))
		if node < 0 || node >= known {
			return fmt.Errorf("log record: node %d, but %d are known", node, known)
		}
		cursor = node + 1
		if op == opDelta {
			err = p.delta(&r, b, node, sec)
		} else {
			err = p.row(&r, b, node, sec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *replayer) context(r *recordReader) (*openBlock, int, error) {
	id, err := r.uvarint()
	if err != nil {
		return nil, 0, err
	}
	span, err := r.uvarint()
	if err != nil {
		return nil, 0, err
	}
	sec, err := r.byte()
	if err != nil {
		return nil, 0, err
	}
	start := unzigzag(span) * BlockSeconds
	if sec >= BlockSeconds || start > maxSecond || start < minSecond {
		return nil, 0, fmt.Errorf("log record: second %d of a block at %d", sec, start)
	}
	p.db.wal.noteBlocks(&p.seen, []uint64{id})
	b, known := p.blocks[id]
	if !known {
		if b, err = p.db.replayedBlock(id, start); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errCannotReplay, err)
		}
		p.blocks[id] = b
	}
	return b, int(sec), nil
}

func (p *replayer) same(b *openBlock, node, sec int) {
	if n := b.node(node); n != nil && sec > n.newest() {
		p.db.finishRow(n, node, sec)
	}
}

func (p *replayer) delta(r *recordReader, b *openBlock, node, sec int) error {
	begin := r.at
	mask, err := r.uvarint()
	if err != nil {
		return err
	}
	var n *openNode
	if b != nil && !p.broken[b] {
		if n = b.node(node); n != nil && sec <= n.newest() {
			n = nil
		}
	}
	if n != nil && bits.Len64(mask) > len(n.last) {
		return fmt.Errorf("log record: node %d has no column %d", node, bits.Len64(mask)-1)
	}
	for m := mask; m != 0; m &= m - 1 {
		v, diff, relative, err := r.value()
		if err != nil {
			if n != nil { // the stream does not have this row
				n.row(n.newest(), n.last, nil)
			}
			return err
		}
		if n != nil {
			slot := bits.TrailingZeros64(m)
			n.last[slot] = resolve(n.last[slot], v, diff, relative)
		}
	}
	if n != nil {
		if mask != 0 {
			b.cells.append(&n.changes, sec, r.buf[begin:r.at])
		}
		p.db.finishRow(n, node, sec)
	}
	return nil
}

func (p *replayer) row(r *recordReader, b *openBlock, node, sec int) error {
	count, err := r.uvarint()
	if err != nil {
		return err
	}
	row := &p.db.row
	row.reset()
	if count > maxColumns {
		return fmt.Errorf("log record: a row of %d metrics", count)
	}
	for range count {
		m, err := r.byte()
		if err != nil {
			return err
		}
		v, diff, relative, err := r.value()
		if err != nil {
			return err
		}
		if int(m) >= collector.MetricCount {
			return fmt.Errorf("log record: metric number %d is not known: %w", m, ErrNewerFormat)
		}
		row.add(collector.Metric(m), resolve(absentBits, v, diff, relative))
	}
	if b != nil {
		p.db.writeRow(b, node, sec)
	}
	return nil
}
