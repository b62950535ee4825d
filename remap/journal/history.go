package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// catalog knows where in the journal each record is: 24 bytes a record, and the newest of each subject.
type catalog struct {
	mu     sync.RWMutex // guards everything that follows
	file   io.ReaderAt
	base   uint64   // records before the file's first, which are in segments
	starts []int64  // by record number less 1 and base
	end    int64    // of the last
	before []uint64 // the number of the same subject's record before; 0: none
	newest map[string]uint64
	at     []int64 // by record as starts, Unix ns; clocks are set back, so they are not in order
}

func newCatalog(file io.ReaderAt) *catalog { return &catalog{file: file, newest: map[string]uint64{}} }

// begin says where the file's records begin; there are none yet.
func (x *catalog) begin(head link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.base, x.end = head.seq, head.size
}

// whole is the file up to the last record's end.
func (x *catalog) whole() *io.SectionReader {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return io.NewSectionReader(x.file, 0, x.end)
}

// cutOff goes on with a file that has a head of some bytes in the place of old records.
func (x *catalog) cutOff(file io.ReaderAt, o *Old, head int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.file, x.base, x.end = file, o.last.seq, x.end-o.last.end+head
	// Copies: what was cut off is not to stay in memory.
	x.starts, x.before = slices.Clone(x.starts[o.Records:]), slices.Clone(x.before[o.Records:])
	x.at = slices.Clone(x.at[o.Records:])
	for i := range x.starts {
		x.starts[i] += head - o.last.end
	}
	maps.DeleteFunc(x.newest, func(_ string, n uint64) bool { return n <= x.base })
}

// nanos is a time as Unix nanoseconds, of which int64 holds those of 1678 to 2261: others are before or after all.
func nanos(t time.Time) int64 {
	switch y := t.UTC().Year(); {
	case y < 1678:
		return math.MinInt64
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// add takes the next record.
func (x *catalog) add(r *Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.starts, x.end, x.at = append(x.starts, x.end), r.end, append(x.at, nanos(r.At))
	x.before = append(x.before, x.newest[r.subject()])
	x.newest[r.subject()] = r.Seq
}

// previous returns the number of the newest wanted record among those before number n, or with 0 of all; 0: there is
// none.
func (x *catalog) previous(w *Wanted, n uint64) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !w.From.IsZero() {
		from = nanos(w.From)
	}
	if !w.To.IsZero() {
		to = nanos(w.To)
	}
	for first := n == 0; first || n > x.base; first = false { // else it has been cut off since
		switch {
		case first && w.Subject != "":
			n = x.newest[w.Subject]
		case first:
			n = x.base + uint64(len(x.starts))
		case w.Subject != "":
			n = x.before[n-1-x.base]
		default:
			n--
		}
		if n <= x.base {
			break
		}
		if at := x.at[n-1-x.base]; from <= at && at < to {
			return n
		}
	}
	return 0
}

// read reads one record from the file.
func (x *catalog) read(n uint64) (*Record, error) {
	x.mu.RLock()
	if n <= x.base {
		x.mu.RUnlock()
		return nil, fmt.Errorf("journal: record %d %w", n, errArchived)
	}
	file, i := x.file, n-x.base
	start, end := x.starts[i-1], x.end
	if i < uint64(len(x.starts)) {
		end = x.starts[i]
	}
	x.mu.RUnlock()
	line := make([]byte, end-start)
	if _, err := file.ReadAt(line, start); err != nil {
		return nil, fmt.Errorf("journal: record %d at byte %d: %w", n, start, err)
	}
	rec, _ := intact(line)
	if rec == nil || rec.Seq != n {
		return nil, fmt.Errorf("journal: record %d at byte %d: %w since it was written", n, start, ErrDamaged)
	}
	return rec, nil
}

// Since shows the records after number n, the oldest first, as they are on disk, beside a writer of more;
// it returns the number of the last one that visit took, for the next time. An error of visit ends it.
func (x *catalog) Since(n uint64, visit func(*Record) error) (uint64, error) {
	x.mu.RLock()
	n = max(n, x.base)
	file, last, end, start := x.file, x.base+uint64(len(x.starts)), x.end, x.end
	if n < last {
		start = x.starts[n-x.base]
	}
	x.mu.RUnlock()
	in := bufio.NewReaderSize(io.NewSectionReader(file, start, end-start), 1<<20)
	for ; n < last; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return n, fmt.Errorf("journal: record %d: %w", n+1, err)
		}
		rec, _ := intact(line)
		if rec == nil || rec.Seq != n+1 {
			return n, fmt.Errorf("journal: record %d: %w since it was written", n+1, ErrDamaged)
		}
		if err := visit(rec); err != nil {
			return n, err
		}
	}
	return n, nil
}

// records counts the records.
func (x *catalog) records() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.base + uint64(len(x.starts))
}

// Lines reads the lines of the first n records, beside a writer of more.
func (x *catalog) Lines(n uint64) (io.Reader, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := x.end
	switch {
	case n > x.base+uint64(len(x.starts)):
		return nil, fmt.Errorf("journal: it has no record %d", n)
	case n < x.base:
		return nil, fmt.Errorf("journal: record %d %w", n, errArchived)
	case n < x.base+uint64(len(x.starts)):
		end = x.starts[n-x.base]
	}
	return io.NewSectionReader(x.file, 0, end), nil
}

// errArchived is of a record that is not in the journal any more.
var errArchived = errors.New("is in a segment beside it")

// History shows the records that are wanted, the newest first, as they are on disk: it reads those and
// no others, beside a writer of more. After an error there is nothing more.
func (x *catalog) History(w Wanted) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for n := x.previous(&w, 0); n > 0; n = x.previous(&w, n) {
			rec, err := x.read(n)
			if errors.Is(err, errArchived) {
				return // it has been cut off since, with all before it
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Wanted says which records History shows.
type Wanted struct {
	// Subject is a plan's or finding's id, or a forwarder that was excluded or asked for a canary; empty: all.
	Subject string
	// From and To bound the time, To not included; zero: no bound.
	From, To time.Time
}
