package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"fairway/collector/appendlog"
)

// Log segments: a page with a header, then records (appendlog), each from the begin of a page
// (format.go). A page is written once but for zeros, so that no write that a power cut tears hits what
// was answered, and goes to the device past the page cache.
const (
	logMagic      = "FWLG"
	logVersion    = 3
	logHeaderSize = 28 // magic, version u16, zero u16, first record's number u64, next block's id u64, CRC u32
	logPage       = 4096
	recordHead    = appendlog.HeadBytes
	maxRecord     = 64 << 20
	// logRoom is how many records like the one that needs room a file grows by, up to maxLogRoom bytes: writing
	// over zeros changes no metadata, which is half of the cost.
	logRoom    = 128
	maxLogRoom = 1 << 20
)

// writeLog appends records to numbered segment files. The committer owns it.
type writeLog struct {
	fs        files
	dir       string
	next      uint64 // number of the next record
	nextBlock uint64 // above the id of every block so far
	// wholeFrom is the least id of a block of which no row is on the device yet. A segment's header keeps it: of that
	// block and all later ones every row is in that segment or a newer one.
	wholeFrom uint64
	segment   uint64  // number of the newest segment
	file      logFile // newest segment, nil until one is needed
	durable   int64   // bytes of file that are on the device and hold records
	size      int64   // of file, with the zeros behind them
	zeros     []byte
	// segments are the files that exist, oldest first.
	segments []logSegment
	// unsynced are framed records that are not known to be on the device, oldest first. After a
	// failed write they go to a new segment: what it left of the old one cannot be trusted.
	unsynced [][]byte
	pending  []uint64 // blocks named by unsynced
}

// logBuffer returns an empty slice with room for n bytes that a device can read from: it begins at a page, and has
// whole pages.
func logBuffer(n int) []byte {
	n = (n + logPage - 1) / logPage * logPage
	b := make([]byte, n+logPage)
	from := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (logPage - 1)
	return b[from : from : from+n]
}

// logSegment is one file and the open blocks whose rows it has.
type logSegment struct {
	number uint64
	blocks []uint64
}

func segmentName(number uint64) string { return fmt.Sprintf("%010d.log", number) }

// listSegments returns the numbers of the segments in a directory, ascending.
func listSegments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			if n, err := strconv.ParseUint(name, 10, 64); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// add makes what a recordWriter wrote into buf the next record; block ids are those its rows belong to. The log
// owns buf from then on.
func (l *writeLog) add(buf []byte, blocks []uint64) {
	appendlog.Seal(buf, l.next)
	l.next++
	end := len(buf)
	buf = buf[:(end+logPage-1)/logPage*logPage]
	clear(buf[end:])
	l.unsynced = append(l.unsynced, buf)
	l.noteBlocks(&l.pending, blocks)
}

func (*writeLog) noteBlocks(into *[]uint64, blocks []uint64) {
	for _, id := range blocks {
		if !slices.Contains(*into, id) {
			*into = append(*into, id)
		}
	}
}

// flush makes durable what is unsynced, and returns a buffer that is free for a next record. After an error
// everything stays unsynced and the next flush starts a new segment.
func (l *writeLog) flush() (spare []byte, err error) {
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

func (l *writeLog) tryFlush() error {
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
func (l *writeLog) grow(at int64, record int) error {
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
func (l *writeLog) room(record int) int {
	room := min(record*logRoom, maxLogRoom)
	if room < 8*record {
		return 0
	}
	if l.zeros == nil {
		l.zeros = logBuffer(maxLogRoom)[:maxLogRoom]
	}
	return room
}

// startSegment makes the next file; its first record is the oldest unsynced one.
func (l *writeLog) startSegment() error {
	l.segment++
	path := filepath.Join(l.dir, segmentName(l.segment))
	f, err := l.fs.CreateLog(path)
	if err != nil {
		return err
	}
	l.file, l.durable, l.size = f, 0, 0
	// The blocks are noted before anything is written: a torn write may leave whole records.
	l.segments = append(l.segments, logSegment{number: l.segment})
	l.noteBlocks(&l.segments[len(l.segments)-1].blocks, l.pending)
	first := l.next - uint64(len(l.unsynced))
	page := logHeader(first, l.wholeFrom)
	if room := l.room(len(l.unsynced[0])); room > 0 {
		copy(l.zeros, page)
		page = l.zeros[:room]
		defer clear(l.zeros[:logPage])
	}
	if err := f.WriteSync(page, 0); err != nil {
		return err
	}
	l.durable, l.size = logPage, int64(len(page))
	return l.fs.SyncDir(l.dir)
}

// logHeader returns a segment's first page.
func logHeader(first, wholeFrom uint64) []byte {
	h := logBuffer(logPage)[:logPage]
	copy(h, logMagic)
	binary.LittleEndian.PutUint16(h[4:], logVersion)
	binary.LittleEndian.PutUint64(h[8:], first)
	binary.LittleEndian.PutUint64(h[16:], wholeFrom)
	binary.LittleEndian.PutUint32(h[24:], appendlog.Sum(h[:24]))
	return h
}

// rotate makes the next flush start a new segment.
func (l *writeLog) rotate() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// forget removes the oldest segments as long as none of their blocks is still open. The newest stays.
func (l *writeLog) forget(open func(block uint64) bool) error {
	for len(l.segments) > 1 && !slices.ContainsFunc(l.segments[0].blocks, open) {
		if err := l.fs.Remove(filepath.Join(l.dir, segmentName(l.segments[0].number))); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old log segment: %w", err)
		}
		l.segments = l.segments[1:]
	}
	return nil
}

func (l *writeLog) close() error {
	_, err := l.flush()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return err
}

// maxReplayed is how many open blocks a log may have; a writer keeps a few more than maxOpen. A log with more was
// written for a sender of rows in very many different hours: the newest blocks are kept.
const maxReplayed = 256

// skippedBlocks counts what makeRoom left out.
type skippedBlocks struct {
	count       int
	path        string // of the first one's segment
	first, last int64  // Unix seconds of the oldest and the newest
}

// makeRoom says whether a block that begins at start is opened. The oldest one gives way to it where there
// are too many.
func (p *replayer) makeRoom(start int64) bool {
	open := p.head.blocks.view.Load().open
	if len(open) < maxReplayed {
		return true
	}
	oldest := open[0]
	left := min(oldest.start, start)
	if s := &p.skipped; s.count == 0 {
		*s = skippedBlocks{1, p.path, left, left}
	} else {
		s.count, s.first, s.last = s.count+1, min(s.first, left), max(s.last, left)
	}
	if start <= oldest.start {
		return false
	}
	p.head.blocks.drop(oldest)
	delete(p.broken, oldest)
	p.open[oldest.id] = nil
	return true
}

// reportSkipped names what makeRoom left out.
func (p *replayer) reportSkipped() {
	if s := &p.skipped; s.count > 0 {
		p.head.damages.report(Damage{s.path, 0,
			fmt.Sprintf("its rows are of %d more spans of %d s than are open at a time; a sender with a wrong clock?",
				s.count, BlockSeconds),
			fmt.Sprintf("rows from between %s and %s that were in no sealed block",
				time.Unix(s.first, 0).UTC().Format(time.RFC3339), time.Unix(s.last, 0).UTC().Format(time.RFC3339))})
	}
}
