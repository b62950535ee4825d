package tsdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Log segments: a header, then records of a 16-byte head and a payload (docs/store-format.md).
const (
	logMagic      = "FWLG"
	logVersion    = 1
	logHeaderSize = 28 // magic, version u16, zero u16, first record's number u64, next block's id u64, CRC u32
	recordHead    = 16 // payload length u32, CRC of number and payload u32, number u64
	maxRecord     = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeLog appends records to numbered segment files. The committer owns it.
type writeLog struct {
	fs   files
	dir  string
	next uint64 // number of the next record
	// nextBlock is above the id of every block so far; a segment's header keeps it.
	nextBlock uint64
	segment   uint64 // number of the newest segment
	file      file   // newest segment, nil until one is needed
	durable   int64  // bytes of file that are known to be on the device
	// segments are the files that exist, oldest first.
	segments []logSegment
	// unsynced are framed records that are not known to be on the device, oldest first. After a
	// failed write or fsync they go to a new segment: what a failed fsync left of the old one
	// cannot be trusted.
	unsynced [][]byte
	pending  []uint64 // blocks named by unsynced
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

// add frames a payload as the next record; block ids are those its rows belong to.
func (l *writeLog) add(payload []byte, blocks []uint64) {
	rec := make([]byte, recordHead, recordHead+len(payload))
	rec = append(rec, payload...)
	binary.LittleEndian.PutUint32(rec, uint32(len(payload)))
	binary.LittleEndian.PutUint64(rec[8:], l.next)
	binary.LittleEndian.PutUint32(rec[4:], crc32.Checksum(rec[8:], castagnoli))
	l.next++
	l.unsynced = append(l.unsynced, rec)
	l.noteBlocks(&l.pending, blocks)
}

func (*writeLog) noteBlocks(into *[]uint64, blocks []uint64) {
	for _, id := range blocks {
		if !slices.Contains(*into, id) {
			*into = append(*into, id)
		}
	}
}

// flush writes and syncs what is unsynced. After an error everything stays unsynced and the next
// flush starts a new segment.
func (l *writeLog) flush() error {
	if len(l.unsynced) == 0 {
		return nil
	}
	if err := l.tryFlush(); err != nil {
		if l.file != nil {
			// A later process must not take for durable what is only in the page cache.
			err = errors.Join(err, l.file.Truncate(l.durable), l.file.Close())
			l.file = nil
		}
		return fmt.Errorf("write-ahead log %s: %w; what was not answered is kept in memory and tried again", filepath.Join(l.dir, segmentName(l.segment)), err)
	}
	l.unsynced = l.unsynced[:0]
	l.pending = l.pending[:0]
	return nil
}

func (l *writeLog) tryFlush() error {
	if l.file == nil {
		if err := l.startSegment(); err != nil {
			return err
		}
	}
	size := max(l.durable, logHeaderSize)
	for _, rec := range l.unsynced {
		if _, err := l.file.Write(rec); err != nil {
			return err
		}
		size += int64(len(rec))
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.durable = size
	l.noteBlocks(&l.segments[len(l.segments)-1].blocks, l.pending)
	return nil
}

// startSegment makes the next file; its first record is the oldest unsynced one.
func (l *writeLog) startSegment() error {
	l.segment++
	path := filepath.Join(l.dir, segmentName(l.segment))
	f, err := l.fs.Create(path)
	if err != nil {
		return err
	}
	l.file, l.durable = f, 0
	// The blocks are noted before anything is written: a torn write may leave whole records.
	l.segments = append(l.segments, logSegment{number: l.segment})
	l.noteBlocks(&l.segments[len(l.segments)-1].blocks, l.pending)
	first := l.next - uint64(len(l.unsynced))
	if _, err := f.Write(logHeader(first, l.nextBlock)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir)
}

func logHeader(first, nextBlock uint64) []byte {
	h := make([]byte, logHeaderSize)
	copy(h, logMagic)
	binary.LittleEndian.PutUint16(h[4:], logVersion)
	binary.LittleEndian.PutUint64(h[8:], first)
	binary.LittleEndian.PutUint64(h[16:], nextBlock)
	binary.LittleEndian.PutUint32(h[24:], crc32.Checksum(h[:24], castagnoli))
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

// forget removes the oldest segments as long as none of their blocks is still open. The newest
// stays.
func (l *writeLog) forget(open func(block uint64) bool) error {
	for len(l.segments) > 1 && !slices.ContainsFunc(l.segments[0].blocks, open) {
		if err := l.fs.Remove(filepath.Join(l.dir, segmentName(l.segments[0].number))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old log segment: %w", err)
		}
		l.segments = l.segments[1:]
	}
	return nil
}

func (l *writeLog) close() error {
	err := l.flush()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return err
}
