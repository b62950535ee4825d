package log

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"fairway/collector/appendlog"
	"fairway/tsdb/engine/disk"
)

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
	r, at := bufio.NewReaderSize(f, 1<<20), int64(headerBytes)
	head := make([]byte, headerBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, true, nil // the file was made and its header not yet written
	}
	if string(head[:4]) != segmentMagic || appendlog.Sum(head[:24]) != binary.LittleEndian.Uint32(head[24:]) {
		return 0, true, nil
	}
	version := binary.LittleEndian.Uint16(head[4:])
	if err := disk.CheckVersion("log segment "+path, version, segmentVersion); err != nil {
		return 0, false, err
	}
	header(binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:]))
	for payload := []byte(nil); ; {
		if over := at % pageBytes; over > 0 { // a record begins at a page
			n, _ := r.Discard(int(pageBytes - over))
			at += int64(n)
		}
		number := uint64(0)
		number, payload, err = appendlog.ReadRecord(r, maxRecord, payload)
		if err != nil { // io.EOF: the log ends here; any other: no whole record is here
			return at, !errors.Is(err, io.EOF), nil
		}
		if err := record(number, payload); err != nil {
			return at, false, err
		}
		at += recordHead + int64(len(payload))
	}
}

// ErrCannotReplay says that something other than the log kept it from being replayed.
var ErrCannotReplay = errors.New("the write-ahead log cannot be replayed")

// Target is who takes in what a log holds.
type Target struct {
	Nodes  int // whose numbers are known
	Log    *slog.Logger
	Report func(disk.Damage)
	// Take takes in a record. What it returns costs the rest of the record, but for ErrCannotReplay and
	// disk.ErrNewerFormat, which end the replay.
	Take func(*Record) error
	// Distrust is called where rows are missing: what builds on rows before has no base any more.
	Distrust func()
}

// Replay shows to, in order, every record that the log has; begun says whether it has any segment. The log takes new
// records after Resume.
func (l *Log) Replay(to Target) (begun bool, err error) {
	numbers, err := disk.List(l.dir, segmentExt)
	if err != nil {
		return false, fmt.Errorf("list the write-ahead log: %w", err)
	}
	for i, n := range numbers {
		number := uint64(n)
		path := filepath.Join(l.dir, segmentName(number))
		rec := Record{Path: path, nodes: to.Nodes, seen: map[uint64]bool{}}
		intact, torn, err := readSegment(path, func(first, block uint64) {
			if !begun {
				l.next, begun, l.wholeFrom = first, true, block
			}
			l.nextBlock = max(l.nextBlock, block)
		}, func(n uint64, payload []byte) error {
			if n < l.next {
				return nil // was written again after a failed fsync
			}
			if n > l.next {
				to.Report(disk.Damage{File: path, What: fmt.Sprintf("records %d to %d are missing", l.next, n-1),
					Lost: "the rows of these records and the changes that build on them"})
				to.Distrust()
			}
			l.next = n + 1
			rec.begin(payload)
			if err := to.Take(&rec); err != nil {
				if errors.Is(err, disk.ErrNewerFormat) || errors.Is(err, ErrCannotReplay) {
					return err
				}
				to.Report(disk.Damage{File: path, What: fmt.Sprintf("record %d: %v", n, err),
					Lost: "the rest of this record's rows and the changes that build on them"})
				to.Distrust()
			}
			return nil
		})
		if err != nil {
			return begun, err
		}
		if torn && i == len(numbers)-1 {
			to.Log.Info(
				"the log's newest segment ends in an unfinished record, as after a crash; it was never answered",
				"file", path, "intact_bytes", intact)
		}
		// What was read may be in memory only, if its writer was killed before an fsync. New records
		// build on it.
		if err := disk.Sync(l.fs, path); err != nil {
			return begun, err
		}
		l.segments = append(l.segments, segment{number, rec.blocks})
		l.segment = number
	}
	l.next = max(l.next, 1)
	return begun, nil
}

// WholeFrom returns the block id from which on the log has all rows.
func (l *Log) WholeFrom() uint64 { return l.wholeFrom }

// NextBlock returns a block id that is above those of all blocks when the newest segment began.
func (l *Log) NextBlock() uint64 { return l.nextBlock }

// Resume readies a log that was replayed for new records, of blocks from an id on.
func (l *Log) Resume(block uint64) { l.wholeFrom = block }

// Found is what Check found.
type Found struct {
	Segments, Records int
	Damages           []disk.Damage
}

// Check reads every record of the log in a directory.
func Check(dir string) (found Found, err error) {
	numbers, err := disk.List(dir, segmentExt)
	if err != nil {
		return found, fmt.Errorf("check: %w", err)
	}
	next := uint64(0)
	for i, number := range numbers {
		path := filepath.Join(dir, segmentName(uint64(number)))
		intact, torn, err := readSegment(path, func(_, _ uint64) {}, func(n uint64, _ []byte) error {
			if next != 0 && n > next {
				found.Damages = append(found.Damages, disk.Damage{File: path,
					What: fmt.Sprintf("records %d to %d are missing", next, n-1), Lost: "their rows"})
			}
			next = max(next, n+1)
			found.Records++
			return nil
		})
		if err != nil {
			return found, err
		}
		found.Segments++
		if torn && i == len(numbers)-1 {
			found.Damages = append(found.Damages, disk.Damage{File: path, Offset: intact,
				What: "the newest segment ends in an unfinished record",
				Lost: "nothing that was answered, after a crash"})
		}
	}
	return found, nil
}
