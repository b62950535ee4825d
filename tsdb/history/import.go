package history

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector/topology"
)

// Imported is what an import came to.
type Imported struct {
	Runs    int `json:"runs"`
	Known   int `json:"known"`   // were there already: the same job at the same time
	Refused int `json:"refused"` // could not be read or cannot be true
	// Errors are the first refusals.
	Errors []error `json:"-"`
}

const (
	importBatch  = 1000 // runs that share one fsync
	importErrors = 100
)

// Import takes the ended runs of another log, in the order of their ends, for predictions follow
// that order. A run that cannot be read is counted and stops no other; a run that is known already is
// left alone, so an import may be repeated. Errors are those of ctx and of the disk.
func (s *Store) Import(ctx context.Context, runs iter.Seq2[Run, error]) (sum Imported, err error) {
	var batch []Run
	refuse := func(err error) {
		if sum.Refused++; len(sum.Errors) < importErrors {
			sum.Errors = append(sum.Errors, err)
		}
	}
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.append(batch...); err != nil {
			return err
		}
		sum.Runs += len(batch)
		batch = batch[:0]
		return nil
	}
	for r, err := range runs {
		if err == nil {
			if r.NodeList, r.Pending = nil, false; r.End.IsZero() {
				err = fmt.Errorf("%w: job %q has not ended", ErrInvalid, r.Job)
			} else {
				err = r.check()
			}
		}
		if err != nil {
			refuse(err)
			continue
		}
		if s.knows(&r) {
			sum.Known++
			continue
		}
		if batch = append(batch, r); len(batch) >= importBatch {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	return sum, flush()
}

// knows says whether the run is in the history, as this import or the daemon itself recorded it: their
// clocks and logs may differ by seconds, but a job does not run twice at a time. One of which nothing
// was collected is taken when the import knows more.
func (s *Store) knows(r *Run) bool {
	s.mu.RLock()
	live, here := s.running[r.Job]
	if !here {
		live, here = s.pending[r.Job]
	}
	places := slices.Clone(s.earlier[r.Job])
	if at, ok := s.at[r.Job]; ok {
		places = append(places, at)
	}
	file := s.file
	s.mu.RUnlock()
	if here && live.overlaps(r) {
		return true
	}
	return slices.ContainsFunc(places, func(at int64) bool {
		have, err := read(file, at)
		return err == nil && have.overlaps(r) && (have.Profile != nil || r.Profile == nil)
	})
}

// overlaps says whether two runs were under way at the same instant.
func (r *Run) overlaps(o *Run) bool {
	return r.Start.Equal(o.Start) || (o.End.IsZero() || r.Start.Before(o.End)) &&
		(r.End.IsZero() || o.Start.Before(r.End))
}

// Read reads the ended runs of a history's file, also of one that a daemon has open. A damaged record
// is an error that names its line, and the next one follows.
func Read(name string, in io.Reader) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		stop := errors.New("stop")
		_, _, err := scan(in, func(line int, _ int64, b []byte) error {
			r, err := decode(b)
			if err == nil && (r.End.IsZero() || r.Pending) {
				return nil
			}
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", name, line, err)
			}
			if !yield(r, err) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Run{}, fmt.Errorf("%s: %w", name, err))
		}
	}
}

// csvColumns are the columns of ReadCSV; those before "end" must be there.
const csvColumns = "job, user, app, project, nodes, start, end, volume_bytes, io_nodes, mode, bw, iops, meta_ops, " +
	"meta_queue"

// ReadCSV reads runs from a CSV with a heading: job, user, app, nodes, start and end (RFC 3339 or
// Unix seconds), and as far as they are known project, volume_bytes, io_nodes, mode, bw (bytes/s),
// iops, meta_ops and meta_queue. A bad row is an error that names its line, and the next row follows.
func ReadCSV(name string, in io.Reader) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		rows := csv.NewReader(in)
		rows.ReuseRecord = true
		head, err := rows.Read()
		if err != nil {
			yield(Run{}, fmt.Errorf("%s: heading: %w", name, err))
			return
		}
		at, err := columns(head)
		if err != nil {
			yield(Run{}, fmt.Errorf("%s:1: %w", name, err))
			return
		}
		for {
			row, err := rows.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var bad *csv.ParseError
			if err != nil {
				more := yield(Run{}, fmt.Errorf("%s: %w", name, err))
				if !more || !errors.As(err, &bad) { // else the file itself fails
					return
				}
				continue
			}
			r, err := csvRow{at, row}.run()
			if err != nil {
				line, _ := rows.FieldPos(0)
				err = fmt.Errorf("%s:%d: %w", name, line, err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func columns(head []string) (map[string]int, error) {
	at := map[string]int{}
	for i, h := range head {
		h = strings.TrimSpace(h)
		if !strings.Contains(", "+csvColumns+",", ", "+h+",") || h == "" {
			return nil, fmt.Errorf("unknown column %q; there are %s", h, csvColumns)
		}
		at[h] = i
	}
	for _, need := range []string{"job", "user", "app", "nodes", "start", "end"} {
		if _, ok := at[need]; !ok {
			return nil, fmt.Errorf("column %q is missing", need)
		}
	}
	return at, nil
}

// csvRow is one row with the places of its columns.
type csvRow struct {
	at  map[string]int
	row []string
}

func (c csvRow) text(column string) string {
	if i, ok := c.at[column]; ok {
		return strings.Clone(strings.TrimSpace(c.row[i]))
	}
	return ""
}

func (c csvRow) run() (r Run, err error) {
	r = Run{Job: topology.JobID(c.text("job")), User: c.text("user"), App: c.text("app"), Project: c.text("project")}
	if r.Nodes, err = strconv.Atoi(c.text("nodes")); err != nil {
		return r, fmt.Errorf("nodes: %q is not a number", c.text("nodes"))
	}
	if r.Start, err = parseTime(c.text("start")); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	if r.End, err = parseTime(c.text("end")); err != nil {
		return r, fmt.Errorf("end: %w", err)
	}
	if c.text("volume_bytes") == "" {
		return r, r.check()
	}
	p := &Profile{Mode: topology.Mode(c.text("mode")), Coverage: 1, From: "csv"}
	var ioNodes, queue float64
	for _, f := range []struct {
		column string
		to     *float64
	}{{"volume_bytes", &p.WriteBytes}, {"io_nodes", &ioNodes}, {"bw", &p.PeakBytesPerSec}, {"iops", &p.PeakOpsPerSec},
		{"meta_ops", &p.MetaOps}, {"meta_queue", &queue}} {
		text := c.text(f.column)
		if text == "" {
			continue
		}
		if *f.to, err = strconv.ParseFloat(text, 64); err != nil {
			return r, fmt.Errorf("%s: %q is not a number", f.column, text)
		}
	}
	if c.text("meta_queue") != "" {
		p.MetaQueue = &queue
	}
	p.IONodes = int(ioNodes)
	r.Profile = p
	return r, r.check()
}

// parseTime reads RFC 3339 or Unix seconds.
func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	sec, err := strconv.ParseFloat(text, 64)
	if err != nil || sec <= 0 || sec > 1<<36 {
		return time.Time{}, fmt.Errorf("%q is neither RFC 3339 nor Unix seconds", text)
	}
	return time.UnixMilli(int64(sec * 1000)).UTC(), nil
}
