package console

import (
	"context"
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/webui/api"
)

// logsPage lists jobs of low bandwidth with their factors, slowest first.
type logsPage struct {
	op     string // read, write
	all    bool   // also those that are not slow
	sort   sorting
	jobs   load[[]api.SlowJob]
	cursor int
}

func newLogsPage(a Address) *logsPage {
	p := &logsPage{op: "write", all: a.All, sort: sorting{column: columnRate, reverse: true}}
	if a.Op == "read" {
		p.op = a.Op
	}
	parseSort(&p.sort, slowColumns, a.Sort)
	return p
}

const columnRate = "bw"

// factor makes a column of a share in percent.
func factor(name, title string, width int, v func(*api.SlowJob) *float64) column[api.SlowJob] {
	return column[api.SlowJob]{name: name, title: title, width: width, number: v,
		text: func(_ *State, r *api.SlowJob) string { return ratio(v(r)) }}
}

// amount makes a column of a number.
func amount(name, title string, width int, text func(*float64) string, v func(*api.SlowJob) *float64) column[api.SlowJob] {
	return column[api.SlowJob]{name: name, title: title, width: width, number: v,
		text: func(_ *State, r *api.SlowJob) string { return text(v(r)) }}
}

var slowColumns = []column[api.SlowJob]{
	{name: "job", title: "JOB", width: 11, text: func(_ *State, r *api.SlowJob) string { return clean(string(r.Job)) }},
	{name: "app", title: "APP", width: 14, text: func(_ *State, r *api.SlowJob) string { return clean(r.App) }},
	{name: "procs", title: "PROCS", width: 9,
		text:   func(_ *State, r *api.SlowJob) string { return strconv.FormatInt(r.Procs, 10) },
		number: func(r *api.SlowJob) *float64 { n := float64(r.Procs); return &n }},
	amount(columnRate, "MB/s", 8, mega, func(r *api.SlowJob) *float64 { return r.BytesPerSec }),
	amount("bytes", "BYTES", 9, func(v *float64) string {
		if v == nil {
			return missing
		}
		return volume(*v)
	}, func(r *api.SlowJob) *float64 { return r.Bytes }),
	factor("small", "SMALL%", 8, func(r *api.SlowJob) *float64 { return r.Small }),
	factor("nonconsec", "NONCONS%", 10, func(r *api.SlowJob) *float64 { return r.Nonconsec }),
	factor("collective", "COLL%", 7, func(r *api.SlowJob) *float64 { return r.Collective }),
	factor("longest_share", "ONEFILE%", 10, func(r *api.SlowJob) *float64 { return r.LongestShare }),
	amount("osts", "OSTS", 7, count, func(r *api.SlowJob) *float64 { return r.OSTs }),
	amount("contention", "PROCS/OST", 11, count, func(r *api.SlowJob) *float64 { return r.ProcsPerOST }),
}

// slowColumnsOf are the columns that fit a width.
func slowColumnsOf(w int) []column[api.SlowJob] {
	switch {
	case w >= 106:
		return slowColumns
	case w >= 78:
		return pickOf(slowColumns, []string{"job", "app", "procs", columnRate, "small", "nonconsec", "collective",
			"longest_share"})
	}
	return pickOf(slowColumns, []string{"job", "app", columnRate, "small", "nonconsec", "collective"})
}

func (p *logsPage) name() string { return onLogs }

func (p *logsPage) address(*State) Address {
	return Address{Page: "logs", Op: p.op, All: p.all, Sort: p.sort.String()}
}

func (p *logsPage) refresh(s *State, k *asker) tea.Cmd {
	op, all := p.op, p.all
	return p.jobs.refresh(s, k, "low-bandwidth "+op+"s, all "+strconv.FormatBool(all),
		func(ctx context.Context) ([]api.SlowJob, error) { return k.backend.SlowJobs(ctx, op, all) })
}

func (p *logsPage) answer(_ *State, _ *asker, msg tea.Msg) tea.Cmd {
	p.jobs.take(msg)
	return nil
}

func (p *logsPage) rows(s *State) []*api.SlowJob {
	rows := make([]*api.SlowJob, len(p.jobs.value))
	for i := range rows {
		rows[i] = &p.jobs.value[i]
	}
	sortRows(s, rows, slowColumns, p.sort)
	return rows
}

func (p *logsPage) table(s *State) [][]string { return texts(s, slowColumns, p.rows(s)) }

func (p *logsPage) act(s *State, ask *asker, a action) tea.Cmd {
	rows := p.rows(s)
	switch a {
	case actOp:
		p.op = map[string]string{"read": "write", "write": "read"}[p.op]
		return p.refresh(s, ask)
	case actAll:
		p.all = !p.all
		return p.refresh(s, ask)
	case actSortPrev:
		stepSort(&p.sort, slowColumns, -1)
	case actSortNext:
		stepSort(&p.sort, slowColumns, 1)
	case actReverse:
		p.sort.reverse = !p.sort.reverse
	case actOpen:
		if p.cursor >= len(rows) {
			s.Note = "there is no job to explain"
			return nil
		}
		return s.open(ask, newWhyPage(string(rows[p.cursor].Job)))
	default:
		p.cursor = max(0, min(p.cursor+steps[a], len(rows)-1))
	}
	return nil
}

func (p *logsPage) title(*State, int) string { return " I/O logs: low " + p.op + " bandwidth" }

func (p *logsPage) body(s *State, w, h int) []string {
	if !p.jobs.have {
		return p.jobs.missing(s, "the jobs of low bandwidth", w)
	}
	rows := p.rows(s)
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	which := "more than 1,000 processes, 10 MB each, below 1 GB/s on the critical path (" + s.key(actAll) + " all)"
	if p.all {
		which = "all in the archive (" + s.key(actAll) + " only slow ones)"
	}
	lines := indent(wrap(fmt.Sprintf("%s: %s", api.Counted(len(rows), "job"), which), max(1, w-2)), w)
	if p.jobs.err != nil {
		lines = append(lines, s.Palette.paint(s.Palette.bold, clip(" as they were: "+clean(p.jobs.err.Error()), w)))
	}
	if len(rows) == 0 {
		return append(lines,
			indent(wrap("No such job. Logs come into the archive by 'fairway import PATH' on the daemon's host; "+
				s.key(actAll)+" shows all jobs.", max(1, w-2)), w)...)
	}
	cols := slowColumnsOf(w)
	lines = append(lines, s.Palette.paint(s.Palette.bold, clip(heading(cols, p.sort), w)))
	return append(lines, s.scrolled(len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return " " + cells(s, rows[i], cols) })...)
}
