package journal

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"fairway/collector/appendlog"
	"fairway/remap"
)

// StepArchived is the first line of a journal whose older records lie in a segment beside it. It has the number and the
// hash of the last of them, so that the chain goes on, and the segment's name as its reason. Its own number is
// that of the record before it.
const StepArchived RecordKind = "archived"

// Old are the first records of a journal, which a segment has as well.
type Old struct {
	Segment string // its path
	Records uint64
	last    place
}

// Old writes the records before a time to a compressed segment beside the journal, as the bytes that they are, for
// CutOff to take them out of it; nil where there are none, or fewer than least. What can still change keeps its
// records and all later ones in the journal: an exclusion that was not returned, an open finding, a plan that moves
// nodes, a standing approval in force, who is revoked; and so do the newest plan and finding, from which the next are
// numbered. It may be called beside a writer, for records that come later change nothing of it.
func (j *Journal) Old(before time.Time, least uint64) (*Old, error) {
	whole := j.catalog.whole()
	c, o := chain{name: j.path}, old{before: before, subjects: map[string]*reach{}}
	if err := c.read(io.NewSectionReader(whole, 0, whole.Size()), o.take); err != nil {
		return nil, err
	}
	cut := o.cut()
	if cut < max(least, 1) {
		return nil, nil
	}
	last := o.records[cut-1]
	found := &Old{fmt.Sprintf("%s.%d-%d.gz", j.path, o.first, last.seq), cut, last}
	if err := writeSegment(found.Segment, io.NewSectionReader(whole, 0, last.end)); err != nil {
		return nil, fmt.Errorf("journal: write a segment of old records: %w", err)
	}
	return found, nil
}

func writeSegment(path string, records io.Reader) error {
	to, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(to)
	_, err = io.Copy(z, records)
	if err := errors.Join(err, z.Close(), to.Sync(), to.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return errors.Join(os.Rename(path+".new", path), appendlog.SyncDir(filepath.Dir(path)))
}

// CutOff takes old records out of the journal. After a kill at any point the journal is the old one or the new one.
func (j *Journal) CutOff(o *Old) error {
	if err := j.Broken(); err != nil {
		return err
	}
	head, err := json.Marshal(&Record{Seq: o.last.seq, At: o.last.at, Kind: StepArchived,
		Reason: filepath.Base(o.Segment)})
	if err != nil {
		return fmt.Errorf("journal: BUG: %w", err)
	}
	line := fmt.Appendf(nil, lineStart+`%s","hash":"%s","record":%s}`+"\n", crcOf(head), o.last.hash, head)
	whole := j.catalog.whole()
	file, f, err := appendlog.Rewrite(j.path, func(w io.Writer) error {
		if _, err := w.Write(line); err != nil {
			return err
		}
		_, err := io.Copy(w, io.NewSectionReader(whole, o.last.end, whole.Size()-o.last.end))
		return err
	})
	if file != nil {
		j.file = file
		j.catalog.cutOff(f, o, int64(len(line)))
	}
	if err != nil {
		return fmt.Errorf("journal: cut off old records: %w", err)
	}
	return nil
}

// place is one record of a journal that is looked through.
type place struct {
	seq  uint64
	end  int64
	at   time.Time
	hash string
}

// reach are the places of the first and the last record of something that must stay together.
type reach struct {
	first, last int
	open        bool
}

// old looks through a journal for what may be moved out of it.
type old struct {
	before   time.Time
	first    uint64
	records  []place
	recent   int // the first record that is not before; len(records) without one
	subjects map[string]*reach
	over     []reach // subjects that ended and may begin again
	newest   map[string]string
}

func (o *old) take(r *Record) error {
	i := len(o.records)
	if i == 0 {
		o.first, o.newest = r.Seq, map[string]string{}
	}
	o.records = append(o.records, place{r.Seq, r.end, r.At, r.Hash})
	if o.recent == i && r.At.Before(o.before) {
		o.recent++
	}
	o.reach(fmt.Sprintf("batch %d", r.first()), i, false, false)
	switch {
	case r.Exclusion != nil:
		o.reach("exclusion "+string(r.Exclusion.Forwarder), i, r.Kind != StepReturn, r.Kind == StepReturn)
	case r.Finding != nil:
		o.reach("finding "+r.Plan, i, r.Finding.Finding.Open(), false)
		o.newest["finding"] = "finding " + r.Plan
	case r.Standing != nil:
		o.reach("standing "+r.Standing.ID, i, r.Kind == StepAllow && r.Standing.Until.After(o.before), false)
		o.newest["standing"] = "standing " + r.Standing.ID
	case r.Revoked != nil:
		if r.Kind == StepRevoked {
			delete(o.subjects, "revoked")
		}
		o.reach("revoked", i, true, false)
	case r.Plan != "" && r.Canary == nil && r.Kind != StepEnrol:
		s := o.reach("plan "+r.Plan, i, false, false)
		if r.Proposed != nil {
			s.open = r.Proposed.State.Moving() || r.Proposed.State == remap.Proposed
			o.newest["plan"] = "plan " + r.Plan
		}
		if r.State != "" {
			s.open = r.State.Moving() || r.State == remap.Proposed
		}
	}
	return nil
}

// reach takes one more record of a subject; ends says that what comes of it later is another one.
func (o *old) reach(subject string, i int, open, ends bool) *reach {
	s := o.subjects[subject]
	if s == nil {
		s = &reach{first: i}
		o.subjects[subject] = s
	}
	if s.last, s.open = i, open; ends {
		o.over = append(o.over, *s)
		delete(o.subjects, subject)
	}
	return s
}

// cut is how many records may go: nothing that must stay together lies on both sides.
func (o *old) cut() uint64 {
	for _, name := range o.newest {
		o.subjects[name].open = true
	}
	more := make([]int, len(o.records)+2) // by place, how many things a cut there parts beyond those one place before
	for _, s := range o.subjects {
		o.over = append(o.over, *s)
	}
	for _, s := range o.over {
		more[s.first+1]++
		if s.open {
			s.last = len(o.records)
		}
		more[s.last+1]--
	}
	cut, parted := 0, 0
	for place := range o.recent + 1 {
		if parted += more[place]; parted == 0 {
			cut = place
		}
	}
	return uint64(cut)
}

// resume makes the line at the head of a journal with archived records the place before its first record.
func (c *link) resume(line []byte) (segment string, ok bool) {
	var l journalLine
	rec, n := intact(line)
	if rec == nil || rec.Kind != StepArchived || n != len(bytes.TrimSuffix(line, []byte("\n"))) ||
		json.Unmarshal(line, &l) != nil {
		return "", false
	}
	hash, err := hex.DecodeString(l.Hash)
	if err != nil || len(hash) != len(c.prev) {
		return "", false
	}
	c.seq, c.last, c.size = rec.Seq, rec.At, int64(len(line))
	copy(c.prev[:], hash)
	return rec.Reason, true
}

// verifyArchived follows the segments before a journal to its first record; what is not there any more is not missed.
func (c *chain) verifyArchived(path string) error {
	if c.archive == "" {
		return nil
	}
	segment := filepath.Join(filepath.Dir(path), filepath.Base(c.archive))
	sum, err := Read(segment, nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if head := hex.EncodeToString(c.head.prev[:]); sum.Records != c.head.seq || sum.LastHash != head {
		return fmt.Errorf(
			"%s: %w: it ends with record %d and the hash %.12s, the journal goes on from record %d and %.12s",
			segment, ErrDamaged, sum.Records, sum.LastHash, c.head.seq, head)
	}
	return nil
}

// openAny opens a journal, or a segment of one.
func openAny(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || filepath.Ext(path) != ".gz" {
		return f, err
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", path, ErrDamaged, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}
