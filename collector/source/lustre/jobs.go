package lustre

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// partOfCore is what reading tables of jobs may cost: one that takes longer is read less often.
	partOfCore = 0.04
	// longestPace is the longest time between two readings.
	longestPace = time.Minute
	// longestReading ends one of a table without end.
	longestReading = 2 * longestPace
	// shownPast is how long after the next reading is due the newest one is reported.
	shownPast = 10 * time.Second
)

// jobReader reads the tables of jobs of a node's targets, beside the ticks: a table of 100,000 entries has 200 MB,
// which the kernel writes anew for each reader.
type jobReader struct {
	fsys   fs.FS
	tables map[string]*table // by file
	buffer []byte
	most   int       // entries to remember
	before time.Time // when the newest reading that ended was begun
	due    time.Time // when the next may begin
	begun  time.Time // when the one under way was
	under  beside[*jobReading]
	newest *jobReading
}

// jobReading is what one reading of all tables made.
type jobReading struct {
	trouble
	at      time.Time
	seconds float64 // since the one before; 0 where it makes no rates
	jobs    []collector.JobSamples
}

// readJobs begins a reading where one is due, and reports the newest that has ended: its rates are means since the one
// before, and stand until the next.
func (s *Source) readJobs(ctx context.Context) {
	j := &s.jobs
	now := s.into.Now
	if !j.under.way() && (!now.Before(j.due) || now.Before(j.before)) { // or the clock was set back
		files := append(s.files("obdfilter/*/job_stats"), s.files("mdt/*/job_stats")...)
		if len(files) == 0 {
			j.newest = nil
			return
		}
		j.under.begin(ctx, func(ctx context.Context) *jobReading { return j.read(ctx, now, files) })
		j.begun = now
		soon, enough := shortly(ctx)
		defer enough()
		select {
		case <-j.under.done:
		case <-soon.Done():
		}
	}
	if r, ended := j.under.take(); ended {
		j.take(s, r)
	}
	j.report(s)
}

// shortly ends when a source has waited half of the time that it has.
func shortly(ctx context.Context) (context.Context, context.CancelFunc) {
	until, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(until)/2)
}

// take notes a reading that has ended, and when the next is due.
func (j *jobReader) take(s *Source, r *jobReading) {
	j.newest, j.before = r, r.at
	j.due = r.at.Add(paceOf(j.under.took))
	s.into.Resets += r.resets
}

// paceOf is the time between the beginnings of two readings that take so much of a processor.
func paceOf(took time.Duration) time.Duration {
	pace := time.Duration(float64(took) / partOfCore)
	if pace <= time.Second { // a tick that comes a little early is due
		return 0
	}
	return min(pace, longestPace)
}

// report adds the newest reading's rows.
func (j *jobReader) report(s *Source) {
	if late := s.into.Now.Sub(j.begun); j.under.way() && late > longestPace {
		s.err = firstOf(s.err, fmt.Errorf("job_stats: still being read after %.0f s: what jobs do on this server is "+
			"not known meanwhile", late.Seconds()))
	}
	r := j.newest
	if r == nil || s.into.Now.Sub(j.due) > shownPast {
		return
	}
	s.seen = true
	s.err = firstOf(s.err, r.err)
	s.into.Jobs = append(s.into.Jobs, r.jobs...)
	var notes []string
	if r.seconds > 2*time.Second.Seconds() {
		notes = append(notes, fmt.Sprintf("means over %.0f s", r.seconds))
	}
	for _, n := range []struct {
		many int
		what string
	}{{r.unread, "could not be read"}, {r.beyond, fmt.Sprintf("beyond %d are in what nobody did", j.most)},
		{r.folded, "of the smallest are shown as one"}} {
		if n.many > 0 {
			notes = append(notes, fmt.Sprintf("%d entries %s", n.many, n.what))
		}
	}
	if len(notes) > 0 {
		s.into.AddNote("job_stats", strings.Join(notes, ", "))
	}
}

// read reads all tables.
func (j *jobReader) read(ctx context.Context, at time.Time, files []string) *jobReading {
	r := &jobReading{at: at}
	if gap := at.Sub(j.before); !j.before.IsZero() && gap > 0 && gap <= longestSpan {
		r.seconds = gap.Seconds()
	}
	if j.buffer == nil {
		j.buffer = make([]byte, 0, scanBuffer)
	}
	for name := range j.tables {
		if !slices.Contains(files, name) {
			delete(j.tables, name)
		}
	}
	for _, name := range files {
		err := collector.Fenced(func() error { return j.readTable(ctx, r, name, max(1, mostRows/len(files))) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.err = firstOf(r.err, fmt.Errorf("%s: %w", name, err))
		}
	}
	slices.SortFunc(r.jobs, func(a, b collector.JobSamples) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Target, b.Target))
	})
	return r
}

// readTable reads what one target counted in all, and then its table to the end.
func (j *jobReader) readTable(ctx context.Context, into *jobReading, name string, most int) error {
	f, err := j.fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		delete(j.tables, name)
		return err
	}
	t := j.tables[name]
	if t == nil {
		target := path.Base(path.Dir(name))
		t = newTable(topology.TargetID(shown(target)))
		j.tables[name] = t
	}
	others := 0
	for _, one := range j.tables {
		others += len(one.entries)
	}
	t.begin(j.before, max(0, j.most-others+len(t.entries)))
	// The total comes first: what it has and an entry does, the entry shows, however long the table takes.
	all, counted := j.totalOf(name)
	if err == nil {
		err = errors.Join(scanJobs(ctx, f, j.buffer, t.lengthOf, t.take), f.Close())
	}
	if t.end(err == nil); err != nil {
		t.lose()
	}
	rest, known := t.rest(&all, counted)
	if into.seconds > 0 {
		t.folded = t.fold(most)
		if known {
			t.rows = append(t.rows, row{collector.UncountedWork, rest})
		}
		for i := range t.rows {
			into.jobs = append(into.jobs, collector.JobSamples{Job: t.rows[i].who, Target: t.target,
				Samples: t.rows[i].samples(into.seconds)})
		}
	}
	into.unread, into.beyond = into.unread+t.unread, into.beyond+t.beyond
	into.resets, into.folded = into.resets+t.resets, into.folded+t.folded
	return firstOf(err, t.err)
}

// totalOf is what the target of a table counted of all that it did.
func (j *jobReader) totalOf(table string) (all tally, known bool) {
	file := "stats"
	folder := path.Dir(table)
	if path.Base(path.Dir(folder)) == "mdt" {
		file = "md_stats"
	}
	b, err := fs.ReadFile(j.fsys, path.Join(folder, file))
	if err != nil {
		return all, false
	}
	stats, err := ParseStats(b)
	for i := range stats {
		st := &stats[i]
		all.count([]byte(st.Name), op{samples: st.Samples, sum: st.Sum})
	}
	return all, err == nil
}
