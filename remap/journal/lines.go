package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A journal that several daemons keep together is written as lines: one of them encodes its next batch, and each
// takes the very same bytes, so that the files are equal and each one's chain of hashes proves it.

// ErrOtherHistory is wrapped where lines, or another journal, do not share this journal's history.
var ErrOtherHistory = errors.New("another journal's history")

// Head is the end of a journal: the number and the hash of its last record.
type Head struct {
	Records uint64 `json:"records"`
	Hash    string `json:"hash"` // empty without a record
}

// Head returns the end of the journal.
func (j *Journal) Head() Head {
	if j.seq == 0 {
		return Head{}
	}
	return Head{j.seq, hex.EncodeToString(j.prev[:])}
}

// Next reads the first whole batch of lines that follow the journal's last record: its records, its own lines and the
// rest. Records that the journal has already are left out, so that lines may come a second time; nil where that leaves
// none. The error wraps ErrOtherHistory where the lines belong to another history, and ErrDamaged where they are
// damaged.
func (j *Journal) Next(lines []byte) (recs []*Record, own, rest []byte, err error) {
	at := link{seq: j.seq, prev: j.prev, size: j.file.Size()}
	fail := func(err error) ([]*Record, []byte, []byte, error) { return nil, nil, nil, err }
	for own, rest = lines, lines; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		rest = rest[len(line):]
		first, _ := intact(line)
		if first == nil {
			return fail(fmt.Errorf("lines after record %d: %w", at.seq, ErrDamaged))
		}
		if first.Seq <= j.seq {
			had, err := j.HashAt(first.Seq)
			if err != nil {
				return fail(err)
			}
			if had != first.Hash {
				return fail(fmt.Errorf("record %d: %w: its hash is %.12s here and %.12s there", first.Seq,
					ErrOtherHistory, had, first.Hash))
			}
			own = rest
			continue
		}
		rec, err := at.next(line)
		if err != nil {
			return fail(fmt.Errorf("record %d does not follow record %d: %w: %w", first.Seq, at.seq,
				ErrOtherHistory, err))
		}
		if recs = append(recs, rec); at.more == 0 {
			return recs, own[:len(own)-len(rest)], rest, nil
		}
	}
	if at.more > 0 {
		return fail(fmt.Errorf("lines after record %d: %w: %d records of the batch are missing", j.seq, ErrDamaged,
			at.more))
	}
	return nil, nil, nil, nil
}

// AppendLines writes what Next or Encode returned.
func (j *Journal) AppendLines(recs []*Record, lines []byte) error {
	if len(recs) == 0 {
		return nil
	}
	if err := j.Broken(); err != nil {
		return err
	}
	if err := j.file.Append(lines); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	last := recs[len(recs)-1]
	hash, err := hex.DecodeString(last.Hash)
	if err != nil {
		return fmt.Errorf("journal: BUG: record %d: %w", last.Seq, err)
	}
	j.seq = last.Seq
	copy(j.prev[:], hash)
	for _, r := range recs {
		j.catalog.add(r)
	}
	return nil
}

// HashAt returns the hash of record n; empty for 0. It may be called beside a writer.
func (j *Journal) HashAt(n uint64) (string, error) {
	if n == 0 {
		return "", nil
	}
	if n > j.catalog.records() {
		return "", fmt.Errorf("journal: it has no record %d", n)
	}
	r, err := j.catalog.read(n)
	if err != nil {
		return "", err
	}
	return r.Hash, nil
}

// Batches cuts lines into pieces of whole batches, of at least size bytes but for the last one.
func Batches(src io.Reader, size int, visit func(lines []byte) error) error {
	c := chain{name: "lines"}
	var piece []byte
	in := io.TeeReader(src, writerFunc(func(b []byte) { piece = append(piece, b...) }))
	done := int64(0)
	flush := func() error {
		n := c.size - done
		if n == 0 {
			return nil
		}
		err := visit(bytes.Clone(piece[:n]))
		piece, done = append(piece[:0], piece[n:]...), c.size
		return err
	}
	err := c.read(in, func(r *Record) error {
		if r.More == 0 && c.size-done >= int64(size) {
			return flush()
		}
		return nil
	})
	if err == nil && c.torn > 0 {
		err = fmt.Errorf("%w: %w", ErrDamaged, c.why)
	}
	if err != nil {
		return err
	}
	return flush()
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }
