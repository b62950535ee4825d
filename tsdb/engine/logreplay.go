package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
)

// ErrNewerFormat says that a file was written by a newer version of the program.
var ErrNewerFormat = errors.New("written by a newer version")

// checkVersion refuses a file of another format version: those before v0.1.0 had older ones.
func checkVersion(what string, version, want uint16) error {
	switch {
	case version > want:
		return fmt.Errorf("%s has format version %d, this program reads %d: %w", what, version, want, ErrNewerFormat)
	case version < want:
		return fmt.Errorf("%s has format version %d, of before v0.1.0; fairwayd v0.2.0 reads it", what, version)
	}
	return nil
}

// segment is a log segment that is read.
type segment struct {
	r   *bufio.Reader
	at  int64 // of the next record
	buf []byte
}

// readSegment calls header with the number of the first record and the block id of the segment's head, then record
// with every intact record in order, and returns how far the file was intact. A torn end is not an error: it is a
// record that was never answered.
func readSegment(path string, header func(first, block uint64),
	record func(number uint64, payload []byte) error) (intact int64, torn bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	s := segment{r: bufio.NewReaderSize(f, 1<<20), at: logHeaderSize}
	head := make([]byte, logHeaderSize)
	if _, err := io.ReadFull(s.r, head); err != nil {
		return 0, true, nil // the file was made and its header not yet written
	}
	if string(head[:4]) != logMagic || appendlog.Sum(head[:24]) != binary.LittleEndian.Uint32(head[24:]) {
		return 0, true, nil
	}
	if err := checkVersion("log segment "+path, binary.LittleEndian.Uint16(head[4:]), logVersion); err != nil {
		return 0, false, err
	}
	header(binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:]))
	for {
		s.toPage()
		number, payload, err := s.record()
		if err != nil {
			return s.at, !errors.Is(err, io.EOF), nil
		}
		if err := record(number, payload); err != nil {
			return s.at, false, err
		}
		s.at += recordHead + int64(len(payload))
	}
}

// toPage skips to where the next record begins.
func (s *segment) toPage() {
	if over := s.at % logPage; over > 0 {
		n, _ := s.r.Discard(int(logPage - over))
		s.at += int64(n)
	}
}

// record reads a record. io.EOF says that the log ends here; any other error that no whole record is here.
func (s *segment) record() (number uint64, payload []byte, err error) {
	number, s.buf, err = appendlog.ReadRecord(s.r, maxRecord, s.buf)
	return number, s.buf, err
}

// replay rebuilds the open blocks from the log's segments and readies the log for new records.
func replay(h *head, wal *writeLog) error {
	numbers, err := listSegments(wal.dir)
	if err != nil {
		return fmt.Errorf("list the write-ahead log: %w", err)
	}
	next, known := uint64(0), false
	rep := replayer{head: h, open: map[uint64]*openBlock{}, broken: map[*openBlock]bool{},
		checked: map[*frame]*[]Damage{}}
	for i, number := range numbers {
		path := filepath.Join(wal.dir, segmentName(number))
		rep.path, rep.seen, rep.noted = path, nil, map[uint64]struct{}{}
		intact, torn, err := readSegment(path, func(first, block uint64) {
			if !known {
				next, known, rep.wholeFrom = first, true, block
			}
			h.nextBlock = max(h.nextBlock, block)
		}, func(n uint64, payload []byte) error {
			if n < next {
				return nil // was written again after a failed fsync
			}
			if n > next {
				h.damages.report(Damage{path, 0, fmt.Sprintf("records %d to %d are missing", next, n-1),
					"the rows of these records and the changes that build on them"})
				rep.distrust()
			}
			next = n + 1
			if err := rep.apply(payload); err != nil {
				if errors.Is(err, ErrNewerFormat) || errors.Is(err, errCannotReplay) {
					return err
				}
				h.damages.report(Damage{path, 0, fmt.Sprintf("record %d: %v", n, err),
					"the rest of this record's rows and the changes that build on them"})
				rep.distrust()
			}
			return nil
		})
		if err != nil {
			return err
		}
		if torn && i == len(numbers)-1 {
			h.log.Info(
				"the log's newest segment ends in an unfinished record, as after a crash; it was never answered",
				"file", path, "intact_bytes", intact)
		}
		// What was read may be in memory only, if its writer was killed before an fsync. New records
		// build on it.
		if err := syncFile(h.fs, path); err != nil {
			return err
		}
		wal.segments = append(wal.segments, logSegment{number, rep.seen})
		wal.segment = number
	}
	wal.next = max(next, 1)
	rep.reportSkipped()
	rep.showReplayed()
	if !known {
		highest, err := h.blocks.highestID()
		if err != nil {
			return err
		}
		h.nextBlock = max(h.nextBlock, highest)
	}
	wal.wholeFrom = h.nextBlock + 1
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

// errCannotReplay says that something other than the log kept it from being replayed.
var errCannotReplay = errors.New("the write-ahead log cannot be replayed")

// replayer applies records to the head's open blocks.
type replayer struct {
	head *head
	open map[uint64]*openBlock // by id; nil for one whose rows are in a sealed block
	path string                // of this segment
	seen []uint64              // ids in this segment
	// noted are the ids in seen.
	noted map[uint64]struct{}
	// skipped are the blocks whose rows are left out, because the log has more open ones than any writer keeps.
	skipped skippedBlocks
	// wholeFrom is the block id from which on the log has all rows.
	wholeFrom uint64
	// checked are the blocks that were read in full to see whether the log is still needed.
	checked map[*frame]*[]Damage
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
		known := len(p.head.nodes.entries)
		if op == opSame {
			if arg > uint64(known-cursor) {
				return fmt.Errorf("log record: a run of %d nodes from node %d, but %d are known", arg, cursor, known)
			}
			if b != nil && !p.broken[b] {
				p.same(b, cursor, cursor+int(arg), sec)
			}
			cursor += int(arg)
			continue
		}
		node := cursor + int(unzigzag(arg))
		if node < 0 || node >= known {
			return fmt.Errorf("log record: node %d, but %d are known", node, known)
		}
		cursor = node + 1
		if op == opNamed {
			err = p.named(&r, b, node, sec)
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
	if _, noted := p.noted[id]; !noted {
		p.noted[id] = struct{}{}
		p.seen = append(p.seen, id)
	}
	b, known := p.open[id]
	if !known {
		if b, err = p.replayedBlock(id, start); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errCannotReplay, err)
		}
		p.open[id] = b
		if b != nil && id < p.wholeFrom {
			p.broken[b] = true // its first rows were in a sealed block, which is gone
		}
	}
	return b, int(sec), nil
}

// same repeats the newest row of nodes.
func (p *replayer) same(b *openBlock, node, end, sec int) {
	chunks := *b.chunks.Load()
	for end = min(end, len(chunks)*chunkNodes); node < end; {
		c := chunks[node/chunkNodes]
		if c == nil {
			node = (node/chunkNodes + 1) * chunkNodes
			continue
		}
		for k := node % chunkNodes; k < chunkNodes && node < end; k, node = k+1, node+1 {
			if rows := &c.rows[k]; *rows != (column.Mask{}) && sec > newestOf(rows) {
				rows.Set(sec)
			}
		}
	}
}

// row takes a row by columns: only a node's newest is written so.
func (p *replayer) row(r *recordReader, b *openBlock, node, sec int) error {
	row, err := r.row()
	if err != nil || b == nil || p.broken[b] {
		return err
	}
	n, rows := b.node(node)
	if n == nil || sec <= newestOf(rows) {
		return nil
	}
	if int(row[0]) > len(n.layout.metrics) {
		return fmt.Errorf("log record: a row of %d columns of node %d, which has %d", row[0], node,
			len(n.layout.metrics))
	}
	if row[0] > 0 {
		b.cells.append(&n.rows, sec, row)
	}
	rows.Set(sec)
	return nil
}

// named takes a row by metric.
func (p *replayer) named(r *recordReader, b *openBlock, node, sec int) error {
	count, err := r.uvarint()
	if err != nil {
		return err
	}
	row := &p.head.row
	row.reset()
	if count > maxColumns {
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
			return fmt.Errorf("log record: metric number %d is not known: %w", m, ErrNewerFormat)
		}
		row.add(collector.Metric(m), v)
	}
	if b != nil && count > 0 {
		p.head.writeRow(p.head.nodes.chunkOf(node), b, node, sec)
	}
	return nil
}

// showReplayed makes the newest row of every node its latest.
func (p *replayer) showReplayed() {
	for _, b := range p.head.blocks.view.Load().open {
		for i, chunk := range *b.chunks.Load() {
			for k := range chunk.size() {
				n := &chunk.nodes[k]
				if n.layout == nil {
					continue
				}
				sec, node := newestOf(&chunk.rows[k]), i*chunkNodes+k
				c := p.head.nodes.chunkOf(node)
				c.mu.Lock()
				c.show(b, n, node, p.head.thereAt(b, n, sec, sec))
				c.mu.Unlock()
			}
		}
	}
}

// sealedThrough returns the id up to which a span's open blocks are in sealed ones. A sealed block that is
// damaged is dropped if the log still has all its rows, as after a crash while it was written; else what is
// readable of it stays.
func (p *replayer) sealedThrough(start int64) (uint64, error) {
	v := p.head.blocks.view.Load()
	through := uint64(0)
	for _, s := range v.files {
		if s.hour != tsdb.FloorDiv(start, fileSeconds)*fileSeconds {
			continue
		}
		frames, err := s.frames()
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			if f.start != start {
				continue
			}
			if p.checked[f] == nil {
				if err := syncFile(p.head.fs, f.path); err != nil {
					return 0, err
				}
				damages := checkFrame(f)
				p.checked[f] = &damages
			}
			if len(*p.checked[f]) > 0 && f.id >= p.wholeFrom {
				s.drop(f)
				continue
			}
			through = max(through, f.id)
		}
	}
	return through, nil
}

// replayedBlock opens the block of an id found in the log; nil says that its rows are sealed.
func (p *replayer) replayedBlock(id uint64, start int64) (*openBlock, error) {
	p.head.nextBlock = max(p.head.nextBlock, id)
	if through, err := p.sealedThrough(start); err != nil || id <= through {
		return nil, err
	}
	if !p.makeRoom(start) {
		return nil, nil
	}
	b := p.head.addBlock(id, start)
	b.last = p.head.opts.Now().Unix()
	return b, nil
}
