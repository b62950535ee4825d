package backtest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// Summary is what a Darshan summary says of one run's POSIX I/O.
type Summary struct {
	App                   string
	Procs                 float64
	ReadBytes, WriteBytes float64
	// Opens and Stats are metadata operations, over Seconds of run time.
	Opens, Stats, Seconds float64
	// Files is the number of files of the interface that wrote (or, without writes, read) most.
	Files float64
	// BusiestBytes is what the busiest process wrote or read.
	BusiestBytes float64
}

// ReadSummaries reads the CSV of Darshan job summaries that TOKIO's published year of Edison and Mira
// has: one row a run, columns darshan_*. A row without volume or processes is left out.
func ReadSummaries(name string, in io.Reader) ([]Summary, error) {
	t, err := openTable(name, in)
	if err != nil {
		return nil, err
	}
	var out []Summary
	for t.next() {
		s := Summary{App: t.text("darshan_app"), Procs: t.number("darshan_nprocs"),
			ReadBytes:  t.number("darshan_tot_bytes_read_posix"),
			WriteBytes: t.number("darshan_tot_bytes_written_posix"), Opens: t.number("darshan_tot_opens_posix"),
			Stats:   t.number("darshan_tot_stats_posix"),
			Seconds: t.number("darshan_walltime"), Files: t.number("darshan_biggest_write_api_files"),
			BusiestBytes: t.number("darshan_max_bytes_written_posix")}
		if s.WriteBytes == 0 {
			s.Files, s.BusiestBytes = t.number("darshan_biggest_read_api_files"),
				t.number("darshan_max_bytes_read_posix")
		}
		if s.ReadBytes+s.WriteBytes > 0 && s.Procs >= 1 {
			out = append(out, s)
		}
	}
	if t.err == nil && len(out) == 0 {
		t.err = fmt.Errorf("%s: no run with volume and processes", name)
	}
	return out, t.err
}

// TaihuLight2018 reads the job list of Sunway TaihuLight (jobid, queue, nodenum, corenum, submittime,
// starttime, endtime, runtime) and gives its jobs the I/O of runs in summaries, since the list has
// none: jobs of the same queue and size count as runs of the same application, each such
// application gets one of the summaries' by a hash of its name and seed, and its jobs that
// application's runs in turn. What comes of it is a mixture, not a history of that machine.
func TaihuLight2018(name string, in io.Reader, summaries []Summary, seed uint64) ([]history.Run, error) {
	t, err := openTable(name, in)
	if err != nil {
		return nil, err
	}
	byApp, apps := map[string][]Summary{}, []string{}
	for _, s := range summaries {
		if byApp[s.App] == nil {
			apps = append(apps, s.App)
		}
		byApp[s.App] = append(byApp[s.App], s)
	}
	slices.Sort(apps)
	runs := map[string]int{}
	var out []history.Run
	for t.next() {
		r := history.Run{Job: topology.JobID(t.text("jobid")), User: t.text("queue"), Nodes: int(t.number("nodenum")),
			Start: t.time("starttime"), End: t.time("endtime")}
		if t.err != nil {
			break
		}
		kind := fmt.Sprintf("%s/%d", r.User, r.Nodes)
		r.App = kind
		if len(apps) > 0 {
			h := fnv.New64a()
			fmt.Fprintf(h, "%d/%s", seed, kind)
			like := byApp[apps[h.Sum64()%uint64(len(apps))]]
			r.Profile = like[runs[kind]%len(like)].profile(r.Nodes)
			runs[kind]++
		}
		out = append(out, r)
	}
	return out, t.err
}

// metaSeconds is what one metadata operation is taken to wait, for summaries do not have it.
const metaSeconds = 1e-3

// profile is the summary's I/O on so many nodes. One process that moved nearly everything is 1-1; as
// many files as processes is N-N, one file N-1, anything between N-M.
func (s *Summary) profile(nodes int) *history.Profile {
	p := &history.Profile{ReadBytes: s.ReadBytes, WriteBytes: s.WriteBytes, MetaOps: s.Opens + s.Stats, Coverage: 1,
		From: "darshan"}
	p.IONodes = int(max(1, min(float64(nodes), s.Procs)))
	switch {
	case s.BusiestBytes > 0.99*max(s.ReadBytes, s.WriteBytes) || s.Procs == 1:
		p.Mode, p.IONodes = topology.Mode11, 1
	case s.Files <= 1:
		p.Mode = topology.ModeN1
	case s.Files >= s.Procs:
		p.Mode = topology.ModeNN
	default:
		p.Mode = topology.ModeNM
	}
	p.MetaQueue = new(metaSeconds * p.MetaOps / max(1, s.Seconds))
	return p
}

// table reads the rows of a CSV by the names of its columns.
type table struct {
	name string
	rows *csv.Reader
	at   map[string]int
	row  []string
	more int // columns before the first named one: an index that the heading leaves out
	line int
	err  error
}

func openTable(name string, in io.Reader) (*table, error) {
	t := &table{name: name, rows: csv.NewReader(in), at: map[string]int{}}
	t.rows.FieldsPerRecord, t.rows.ReuseRecord = -1, true
	head, err := t.rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: heading: %w", name, err)
	}
	for i, h := range head {
		t.at[h] = i
	}
	t.more = -len(head)
	return t, nil
}

// next reads a row; it ends at the first one that cannot be read.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil {
		t.err = fmt.Errorf("%s: %w", t.name, err)
		return false
	}
	t.row = row
	t.line, _ = t.rows.FieldPos(0)
	return true
}

func (t *table) text(column string) string {
	i, ok := t.at[column]
	if !ok {
		t.fail(column, "is missing")
		return ""
	}
	if i += max(0, len(t.row)+t.more); i >= len(t.row) {
		t.fail(column, "is not in this row")
		return ""
	}
	return t.row[i]
}

func (t *table) fail(column, why string) {
	if t.err == nil {
		t.err = fmt.Errorf("%s:%d: column %q %s", t.name, t.line, column, why)
	}
}

// number reads a number of 0 or more; an empty cell is 0.
func (t *table) number(column string) float64 {
	text := t.text(column)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		t.fail(column, fmt.Sprintf("is %q, not a number of 0 or more", text))
	}
	return v
}

// time reads "2018-02-22 10:07:46", taken as UTC.
func (t *table) time(column string) time.Time {
	at, err := time.Parse(time.DateTime, t.text(column))
	if err != nil {
		t.fail(column, fmt.Sprintf("is %q, not a time such as 2018-02-22 10:07:46", t.text(column)))
	}
	return at
}
