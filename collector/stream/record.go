package stream

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/collector/appendlog"
	"fairway/collector/wire"
)

// A segment file is records (appendlog) without anything between them. A record's number is the message's sequence
// number, its payload the message as it goes over the wire.
const segmentSuffix = ".spool"

// segment is one file; it holds the messages first..last, none while last < first.
type segment struct {
	path        string
	file        *os.File
	first, last uint64
	size        int64
	synced      int64 // bytes known to be on the device since this process began
}

func createSegment(dir string, first uint64) (*segment, error) {
	p := filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &segment{path: p, file: f, first: first, last: first - 1}, nil
}

func (g *segment) remove() error { return errors.Join(g.file.Close(), os.Remove(g.path)) }

func appendRecord(dst []byte, m *wire.Frames) ([]byte, error) {
	from := len(dst)
	b, err := wire.Append(append(dst, make([]byte, appendlog.HeadBytes)...), m)
	if err != nil {
		return dst, err
	}
	appendlog.Seal(b[from:], m.Seq)
	return b, nil
}

// readRecord reads the record at off of a file of the given size into buf, grown as needed; n is
// its length. Errors wrap appendlog.ErrTorn, or are the file's own.
func readRecord(f io.ReaderAt, off, size int64, buf []byte) (seq uint64, msg []byte, n int64, err error) {
	seq, msg, err = appendlog.ReadRecord(io.NewSectionReader(f, off, size-off), wire.MaxMessageBytes, buf)
	if errors.Is(err, io.EOF) { // room in a file says that there is a record
		err = fmt.Errorf("%w: zeros", appendlog.ErrTorn)
	}
	if err != nil {
		err = fmt.Errorf("at byte %d: %w", off, err)
	}
	return seq, msg, appendlog.HeadBytes + int64(len(msg)), err
}

// recover finds the segments of an earlier run and cuts off what a crash left torn.
func (s *Spool) recover() error {
	names, err := filepath.Glob(filepath.Join(s.dir, "*"+segmentSuffix))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, p := range names {
		var first uint64
		if _, err := fmt.Sscanf(strings.TrimSuffix(filepath.Base(p), segmentSuffix), "%d", &first); err != nil ||
			first == 0 {
			s.log.Warn("not a spool segment, left alone", "file", p)
			continue
		}
		f, err := os.OpenFile(p, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		g := &segment{path: p, file: f, first: first, last: first - 1}
		if n := len(s.segments); n > 0 && first > max(s.last, s.acked)+1 {
			s.dropped += first - 1 - max(s.last, s.acked) // were in the part that was cut off
		}
		s.segments = append(s.segments, g)
		if err := s.scan(g); err != nil {
			return err
		}
		s.last = max(s.last, g.last, first-1)
	}
	return nil
}

// scan reads a segment to its end or to the first record that is not whole, and cuts it there.
func (s *Spool) scan(g *segment) error {
	st, err := g.file.Stat()
	if err != nil {
		return err
	}
	for g.size < st.Size() {
		seq, buf, n, err := readRecord(g.file, g.size, st.Size(), s.buf)
		s.buf = buf
		if err == nil && seq != g.last+1 {
			err = fmt.Errorf("%w: message %d after %d", appendlog.ErrTorn, seq, g.last)
		}
		if errors.Is(err, appendlog.ErrTorn) {
			s.log.Warn("a spool segment ends in a record that is not whole; cutting it off", "file", g.path, "bytes",
				st.Size()-g.size, "err", err)
			return g.file.Truncate(g.size)
		}
		if err != nil {
			return err
		}
		g.last = seq
		g.size += n
	}
	return nil
}

// readInstance reads the numbering's name, or makes one.
func readInstance(path string) (string, error) {
	const instanceBytes = 8
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 2*instanceBytes {
		return string(b), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := make([]byte, instanceBytes)
	rand.Read(id) // never fails
	name := hex.EncodeToString(id)
	return name, os.WriteFile(path, []byte(name), 0o600)
}

// The acked file is the number and its CRC-32C; one that is torn counts as 0: everything still
// there is sent again, which the daemon takes as the same.
const ackedBytes = 12

func readAcked(f io.ReaderAt) uint64 {
	var b [ackedBytes]byte
	if _, err := f.ReadAt(b[:], 0); err != nil ||
		appendlog.Sum(b[:8]) != binary.LittleEndian.Uint32(b[8:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

func writeAcked(f io.WriterAt, seq uint64) error {
	var b [ackedBytes]byte
	binary.LittleEndian.PutUint64(b[:], seq)
	binary.LittleEndian.PutUint32(b[8:], appendlog.Sum(b[:8]))
	_, err := f.WriteAt(b[:], 0)
	return err
}
