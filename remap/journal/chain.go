package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"fairway/collector/appendlog"
)

// Verify checks every record, CRC and link of the journal at path without locking or
// changing it. The error wraps ErrDamaged and names the first bad record.
func Verify(path string) (Summary, error) { return Read(path, nil) }

// Read is Verify that shows each good record to visit, which may stop it by an error.
func Read(path string, visit func(*Record) error) (Summary, error) {
	f, err := openAny(path)
	if err != nil {
		return Summary{}, fmt.Errorf("open journal: %w", err)
	}
	defer f.Close()
	c := chain{name: path}
	if err = c.read(f, visit); err == nil {
		err = c.verifyArchived(path)
	}
	return c.summary(), err
}

// chain follows a journal from its first record. Its own link is the end of the last whole batch.
type chain struct {
	link
	name  string
	first time.Time
	torn  int64 // bytes of an unfinished last batch
	why   error // what is wrong with it
	// archive is the segment with the records before the first line, head their end; empty: there are none.
	archive string
	head    link
}

// link is a place between two records.
type link struct {
	seq  uint64
	prev [sha256.Size]byte
	size int64 // bytes before it
	last time.Time
	more uint64 // records that the batch still lacks here
}

func (c *chain) summary() Summary {
	s := Summary{Records: c.seq, Archived: c.head.seq, Segment: c.archive, First: c.first, Last: c.last,
		TornBytes: c.torn}
	if c.seq > 0 {
		s.LastHash = hex.EncodeToString(c.prev[:])
	}
	if c.torn > 0 {
		s.Torn = c.why.Error()
	}
	return s
}

// read follows src to its end and shows the records of whole batches. A batch is written at once and
// the next one only when it is on disk, so damage within the last batch is what a crash leaves of a
// batch that was not answered, whatever order its pages went to disk in: it is counted as torn. Any
// other bad line is an error.
func (c *chain) read(src io.Reader, visit func(*Record) error) error {
	in := bufio.NewReaderSize(src, 1<<20)
	at := c.link
	var batch []*Record
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: read record %d: %w", c.name, at.seq+1, err)
		}
		if err != nil && len(line) == 0 {
			c.torn, c.why = at.size-c.size, fmt.Errorf("record %d is missing", at.seq+1)
			return nil
		}
		if c.size == 0 && at.size == 0 && err == nil {
			if segment, ok := at.resume(line); ok {
				c.archive, c.head, c.link = segment, at, at
				continue
			}
		}
		rec, bad := (*Record)(nil), fmt.Errorf("%w: line has no end", ErrDamaged)
		if err == nil {
			rec, bad = at.next(line)
		}
		if bad != nil {
			return c.tail(at, line, in, bad)
		}
		if batch = append(batch, rec); at.more > 0 {
			continue
		}
		if c.seq == c.head.seq {
			c.first = batch[0].At
		}
		c.link = at
		for _, rec := range batch {
			if visit == nil {
				break
			}
			if err := visit(rec); err != nil {
				return fmt.Errorf("%s: record %d: %w", c.name, rec.Seq, err)
			}
		}
		batch = nil
	}
}

// tail judges a journal's rest from its first bad line on. It counts it as torn unless something shows
// that the bad batch was answered: a good record of another batch, or bytes behind the batch's last.
// A first bad line that is well-formed was changed by other hands: missing pages leave no JSON.
func (c *chain) tail(at link, line []byte, in *bufio.Reader, bad error) error {
	bad = fmt.Errorf("record %d at byte %d: %w", at.seq+1, at.size, bad)
	refuse := fmt.Errorf("%s: %w", c.name, bad)
	if bytes.HasSuffix(line, []byte("\n")) && json.Valid(line) {
		return refuse
	}
	ended := false
	for size := at.size; ; {
		size += int64(len(line))
		for part := range lineStarts(line) {
			rec, n := intact(part)
			if ended || rec != nil && (rec.first() != c.seq+1 || rec.Seq <= at.seq) {
				return refuse
			}
			ended = rec != nil && rec.More == 0
			if ended && len(part) > n+1 {
				return refuse
			}
		}
		var err error
		if line, err = in.ReadBytes('\n'); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: read behind record %d: %w", c.name, at.seq, err)
		}
		if len(line) == 0 {
			c.torn, c.why = size-c.size, bad
			return nil
		}
	}
}

// lineStart begins every line; within a record its quotes would be escaped.
const lineStart = `{"crc":"`

// lineStarts cuts b before every place where a line of a journal begins, for its newline may be gone.
func lineStarts(b []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := len(b)
			if i := bytes.Index(b[1:], []byte(lineStart)); i >= 0 {
				n = i + 1
			}
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// intact returns the record that b begins with and the bytes of its line without the newline; nil
// where no record begins or its CRC is wrong. Links are not checked.
func intact(b []byte) (*Record, int) {
	var l journalLine
	in := json.NewDecoder(bytes.NewReader(b))
	if !bytes.HasPrefix(b, []byte(lineStart)) || in.Decode(&l) != nil || l.CRC != crcOf(l.Record) {
		return nil, 0
	}
	rec := &Record{}
	if json.Unmarshal(l.Record, rec) != nil {
		return nil, 0
	}
	rec.Hash = l.Hash
	return rec, int(in.InputOffset())
}

// next checks one line against the place before it and moves on.
func (c *link) next(line []byte) (*Record, error) {
	var l journalLine
	if len(line) > maxRecordBytes+256 {
		return nil, fmt.Errorf("%w: line of %d bytes", ErrDamaged, len(line))
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	if want := crcOf(l.Record); l.CRC != want {
		return nil, fmt.Errorf("%w: CRC is %q, its bytes give %q", ErrDamaged, l.CRC, want)
	}
	hash := chainHash(c.prev, l.Record)
	if want := hex.EncodeToString(hash[:]); l.Hash != want {
		return nil, fmt.Errorf("%w: hash does not follow from the record before (has %.12s, expected %.12s)",
			ErrDamaged, l.Hash, want)
	}
	rec := &Record{}
	if err := json.Unmarshal(l.Record, rec); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	if rec.Seq != c.seq+1 {
		return nil, fmt.Errorf("%w: sequence number is %d", ErrDamaged, rec.Seq)
	}
	if begins := rec.first() == rec.Seq; begins != (c.more == 0) || !begins && rec.More != c.more-1 {
		return nil, fmt.Errorf("%w: %d records of the batch before are missing", ErrDamaged, c.more)
	}
	rec.Hash = l.Hash
	c.seq, c.prev, c.last, c.more, c.size = rec.Seq, hash, rec.At, rec.More, c.size+int64(len(line))
	rec.end = c.size
	return rec, nil
}

func crcOf(body []byte) string { return fmt.Sprintf("%08x", appendlog.Sum(body)) }
