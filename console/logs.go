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
	sort   Sorting
	jobs   Load[[]api.SlowJob]
	cursor int
}

func newLogsPage(a Address) *logsPage {
	p := &logsPage{op: "write", all: a.All, sort: Sorting{Column: columnRate, Reverse: true}}
	if a.Op == "read" {
		p.op = a.Op
	}
	ParseSort(&p.sort, slowColumns, a.Sort)
	return p
}

const columnRate = "bw"

// factor makes a column of a share in percent.
func factor(name, title string, width int, v func(*api.SlowJob) *float64) Column[api.SlowJob] {
	return Column[api.SlowJob]{Name: name, Title: title, Width: width, Number: v,
		Text: func(r *api.SlowJob) string { return ratio(v(r)) }}
}

// amount makes a column of a number.
func amount(name, title string, width int, text func(*float64) string, v func(*api.SlowJob) *float64) Column[api.SlowJob] {
	return Column[api.SlowJob]{Name: name, Title: title, Width: width, Number: v,
		Text: func(r *api.SlowJob) string { return text(v(r)) }}
}

var slowColumns = []Column[api.SlowJob]{
	{Name: "job", Title: "JOB", Width: 11, Text: func(r *api.SlowJob) string { return clean(string(r.Job)) }},
	{Name: "app", Title: "APP", Width: 14, Text: func(r *api.SlowJob) string { return clean(r.App) }},
	{Name: "procs", Title: "PROCS", Width: 9,
		Text:   func(r *api.SlowJob) string { return strconv.FormatInt(r.Procs, 10) },
		Number: func(r *api.SlowJob) *float64 { n := float64(r.Procs); return &n }},
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
func slowColumnsOf(w int) []Column[api.SlowJob] {
	switch {
	case w >= 106:
		return slowColumns
	case w >= 78:
		return Pick(slowColumns, "job", "app", "procs", columnRate, "small", "nonconsec", "collective",
			"longest_share")
	}
	return Pick(slowColumns, "job", "app", columnRate, "small", "nonconsec", "collective")
}

func (p *logsPage) Name() string { return onLogs }

func (p *logsPage) Address(*State) Address {
	return Address{Page: "logs", Op: p.op, All: p.all, Sort: p.sort.String()}
}

func (p *logsPage) Refresh(s *State) tea.Cmd {
	op, all := p.op, p.all
	return p.jobs.Refresh(s, "low-bandwidth "+op+"s, all "+strconv.FormatBool(all),
		func(ctx context.Context) ([]api.SlowJob, error) { return s.Server.SlowJobs(ctx, op, all) })
}

func (p *logsPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.jobs.Take(msg)
	return nil
}

func (p *logsPage) rows(s *State) []*api.SlowJob {
	rows := make([]*api.SlowJob, len(p.jobs.Value))
	for i := range rows {
		rows[i] = &p.jobs.Value[i]
	}
	Sort(rows, slowColumns, p.sort)
	return rows
}

func (p *logsPage) Table(s *State) [][]string { return Texts(slowColumns, p.rows(s)) }

func (p *logsPage) Act(s *State, a Action) tea.Cmd {
	rows := p.rows(s)
	switch a {
	case actOp:
		p.op = map[string]string{"read": "write", "write": "read"}[p.op]
		return p.Refresh(s)
	case actAll:
		p.all = !p.all
		return p.Refresh(s)
	case actSortPrev:
		StepSort(&p.sort, slowColumns, -1)
	case actSortNext:
		StepSort(&p.sort, slowColumns, 1)
	case actReverse:
		p.sort.Reverse = !p.sort.Reverse
	case actOpen:
		if p.cursor >= len(rows) {
			s.Note = "there is no job to explain"
			return nil
		}
		return s.Host.Open(AtJob(rows[p.cursor].Job, partWhy))
	default:
		p.cursor = a.Moved(p.cursor, len(rows))
	}
	return nil
}

func (p *logsPage) Title(*State, int) string { return " I/O logs: low " + p.op + " bandwidth" }

func (p *logsPage) Body(s *State, w, h int) []string {
	if !p.jobs.Have {
		return p.jobs.Missing(s, "the jobs of low bandwidth", w)
	}
	rows := p.rows(s)
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	which := "more than 1,000 processes, 10 MB each, below 1 GB/s on the critical path (" + s.Key(actAll) + " all)"
	if p.all {
		which = "all in the archive (" + s.Key(actAll) + " only slow ones)"
	}
	lines := paragraphs(w, fmt.Sprintf("%s: %s", api.Counted(len(rows), "job"), which))
	lines = append(lines, p.jobs.Old(s, "as they were", w)...)
	if len(rows) == 0 {
		return append(lines,
			paragraphs(w, "No such job. Logs come into the archive by 'fairway import PATH' on the daemon's host; "+
				s.Key(actAll)+" shows all jobs.")...)
	}
	cols := slowColumnsOf(w)
	lines = append(lines, s.Bold(clip(Heading(cols, p.sort), w)))
	return append(lines, Lines(s.Palette, len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return " " + Cells(rows[i], cols) })...)
}
