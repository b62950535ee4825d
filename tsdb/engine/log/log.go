// Package log is the store's append-only log: rows are written to records, records made durable together, and replayed
// after a restart. The comment of tsdb/engine has the bytes.
package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"fairway/collector/appendlog"
	"fairway/tsdb/engine/disk"
)

// Log segments: a page with a header, then records (appendlog), each from the begin of a page
// (tsdb/engine/format.go). A page is written once but for zeros, so that no write that a power cut tears hits what
// was answered, and goes to the device past the page cache.
const (
	segmentMagic   = "FWLG"
	segmentVersion = 3
	headerBytes    = 28 // magic, version u16, zero u16, first record's number u64, next block's id u64, CRC u32
	pageBytes      = 4096
	recordHead     = appendlog.HeadBytes
	maxRecord      = 64 << 20
	// growth is how many records like the one that needs room a file grows by, up to maxGrowth bytes: writing
	// over zeros changes no metadata, which is half of the cost.
	growth    = 128
	maxGrowth = 1 << 20
)

// Log appends records to numbered segment files. One caller at a time may use it.
type Log struct {
	fs        disk.Files
	dir       string
	next      uint64 // number of the next record
	nextBlock uint64 // above the id of every block so far
	// wholeFrom is the least id of a block of which no row is on the device yet. A segment's header keeps it: of that
	// block and all later ones every row is in that segment or a newer one.
	wholeFrom uint64
	segment   uint64   // number of the newest segment
	file      disk.Log // newest segment, nil until one is needed
	durable   int64    // bytes of file that are on the device and hold records
	size      int64    // of file, with the zeros behind them
	zeros     []byte
	// segments are the files that exist, oldest first.
	segments []segment
	// unsynced are framed records that are not known to be on the device, oldest first. After a
	// failed write they go to a new segment: what it left of the old one cannot be trusted.
	unsynced [][]byte
	pending  []uint64 // blocks named by unsynced
}

// New returns the log in a directory, to be replayed before it takes records.
func New(fs disk.Files, dir string) *Log { return &Log{fs: fs, dir: dir} }

// newBuffer returns an empty slice with room for n bytes that a device can read from: it begins at a page, and has
// whole pages.
func newBuffer(n int) []byte {
	n = (n + pageBytes - 1) / pageBytes * pageBytes
	b := make([]byte, n+pageBytes)
	from := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (pageBytes - 1)
	return b[from : from : from+n]
}

// segment is one file and the open blocks whose rows it has.
type segment struct {
	number uint64
	blocks []uint64
}

const segmentExt = ".log"

func segmentName(number uint64) string { return fmt.Sprintf("%010d"+segmentExt, number) }

// add makes what a Writer wrote into buf the next record; block ids are those its rows belong to. The log
// owns buf from then on.
func (l *Log) add(buf []byte, blocks []uint64) {
	appendlog.Seal(buf, l.next)
	l.next++
	end := len(buf)
	buf = buf[:(end+pageBytes-1)/pageBytes*pageBytes]
	clear(buf[end:])
	l.unsynced = append(l.unsynced, buf)
	l.noteBlocks(&l.pending, blocks)
}

func (*Log) noteBlocks(into *[]uint64, blocks []uint64) {
	for _, id := range blocks {
		if !slices.Contains(*into, id) {
			*into = append(*into, id)
		}
	}
}

// Flush makes durable what is unsynced, and returns a buffer that is free for a next record. nextBlock is above the id
// of every block so far. After an error everything stays unsynced and the next Flush starts a new segment.
func (l *Log) Flush(nextBlock uint64) (spare []byte, err error) {
	l.nextBlock = nextBlock
	if len(l.unsynced) == 0 {
		return nil, nil
	}
	if err := l.tryFlush(); err != nil {
		if l.file != nil {
			// A later process must not take for durable what is only in the page cache.
			err = errors.Join(err, l.file.Truncate(l.durable), l.file.Close())
			l.file = nil
		}
		return nil, fmt.Errorf("write-ahead log %s: %w; what was not answered is kept in memory and tried again",
			filepath.Join(l.dir, segmentName(l.segment)), err)
	}
	spare = l.unsynced[0][:0]
	clear(l.unsynced)
	l.unsynced = l.unsynced[:0]
	l.pending = l.pending[:0]
	l.wholeFrom = l.nextBlock
	return spare, nil
}

func (l *Log) tryFlush() error {
	if l.file == nil {
		if err := l.startSegment(); err != nil {
			return err
		}
	}
	at := l.durable
	for _, rec := range l.unsynced {
		if err := l.grow(at, len(rec)); err != nil {
			return err
		}
		if err := l.file.WriteSync(rec, at); err != nil {
			return err
		}
		at += int64(len(rec))
		l.size = max(l.size, at)
	}
	l.durable = at
	l.noteBlocks(&l.segments[len(l.segments)-1].blocks, l.pending)
	return nil
}

// grow writes zeros behind the end for a small record and others like it.
func (l *Log) grow(at int64, record int) error {
	room := l.room(record)
	if at+int64(record) <= l.size || room == 0 {
		return nil
	}
	if err := l.file.WriteSync(l.zeros[:room], at); err != nil {
		return err
	}
	l.size = at + int64(room)
	return nil
}

// room returns how much a file grows by at a record, with as many zeros at hand; 0 where it is not worth it.
func (l *Log) room(record int) int {
	room := min(record*growth, maxGrowth)
	if room < 8*record {
		return 0
	}
	if l.zeros == nil {
		l.zeros = newBuffer(maxGrowth)[:maxGrowth]
	}
	return room
}

// startSegment makes the next file; its first record is the oldest unsynced one.
func (l *Log) startSegment() error {
	l.segment++
	path := filepath.Join(l.dir, segmentName(l.segment))
	f, err := l.fs.CreateLog(path)
	if err != nil {
		return err
	}
	l.file, l.durable, l.size = f, 0, 0
	// The blocks are noted before anything is written: a torn write may leave whole records.
	l.segments = append(l.segments, segment{number: l.segment})
	l.noteBlocks(&l.segments[len(l.segments)-1].blocks, l.pending)
	first := l.next - uint64(len(l.unsynced))
	page := newHeader(first, l.wholeFrom)
	if room := l.room(len(l.unsynced[0])); room > 0 {
		copy(l.zeros, page)
		page = l.zeros[:room]
		defer clear(l.zeros[:pageBytes])
	}
	if err := f.WriteSync(page, 0); err != nil {
		return err
	}
	l.durable, l.size = pageBytes, int64(len(page))
	return l.fs.SyncDir(l.dir)
}

// newHeader returns a segment's first page.
func newHeader(first, wholeFrom uint64) []byte {
	h := newBuffer(pageBytes)[:pageBytes]
	copy(h, segmentMagic)
	binary.LittleEndian.PutUint16(h[4:], segmentVersion)
	binary.LittleEndian.PutUint64(h[8:], first)
	binary.LittleEndian.PutUint64(h[16:], wholeFrom)
	binary.LittleEndian.PutUint32(h[24:], appendlog.Sum(h[:24]))
	return h
}

// Rotate makes the next Flush start a new segment.
func (l *Log) Rotate() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// Forget removes the oldest segments as long as none of their blocks is still open. The newest stays.
func (l *Log) Forget(open func(block uint64) bool) error {
	for len(l.segments) > 1 && !slices.ContainsFunc(l.segments[0].blocks, open) {
		if err := l.fs.Remove(filepath.Join(l.dir, segmentName(l.segments[0].number))); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old log segment: %w", err)
		}
		l.segments = l.segments[1:]
	}
	return nil
}

// Close makes durable what is unsynced and closes the newest segment.
func (l *Log) Close() error {
	_, err := l.Flush(l.nextBlock)
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return err
}
