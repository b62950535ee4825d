package job

import (
	"context"
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// Logs lists jobs of low bandwidth with their factors, slowest first.
type Logs struct {
	op     string // read, write
	all    bool   // also those that are not slow
	sort   table.Sorting
	jobs   screen.Load[[]api.SlowJob]
	cursor int
}

func NewLogs(a screen.Address) *Logs {
	p := &Logs{op: "write", all: a.All, sort: table.Sorting{Column: columnRate, Reverse: true}}
	if a.Op == "read" {
		p.op = a.Op
	}
	table.ParseSort(&p.sort, slowColumns, a.Sort)
	return p
}

const columnRate = "bw"

// factor makes a column of a share in percent.
func factor(name, title string, width int, v func(*api.SlowJob) *float64) table.Column[api.SlowJob] {
	return table.Column[api.SlowJob]{Name: name, Title: title, Width: width, Number: v,
		Text: func(r *api.SlowJob) string { return chart.Ratio(v(r)) }}
}

// amount makes a column of a number.
func amount(name, title string, width int, text func(*float64) string,
	v func(*api.SlowJob) *float64) table.Column[api.SlowJob] {
	return table.Column[api.SlowJob]{Name: name, Title: title, Width: width, Number: v,
		Text: func(r *api.SlowJob) string { return text(v(r)) }}
}

var slowColumns = []table.Column[api.SlowJob]{
	{Name: "job", Title: "JOB", Width: 11, Text: func(r *api.SlowJob) string { return chart.Clean(string(r.Job)) }},
	{Name: "app", Title: "APP", Width: 14, Text: func(r *api.SlowJob) string { return chart.Clean(r.App) }},
	{Name: "procs", Title: "PROCS", Width: 9,
		Text:   func(r *api.SlowJob) string { return strconv.FormatInt(r.Procs, 10) },
		Number: func(r *api.SlowJob) *float64 { n := float64(r.Procs); return &n }},
	amount(columnRate, "MB/s", 8, chart.Mega, func(r *api.SlowJob) *float64 { return r.BytesPerSec }),
	amount("bytes", "BYTES", 9, func(v *float64) string {
		if v == nil {
			return chart.Missing
		}
		return anomaly.Size(*v)
	}, func(r *api.SlowJob) *float64 { return r.Bytes }),
	factor("small", "SMALL%", 8, func(r *api.SlowJob) *float64 { return r.Small }),
	factor("nonconsec", "NONCONS%", 10, func(r *api.SlowJob) *float64 { return r.Nonconsec }),
	factor("collective", "COLL%", 7, func(r *api.SlowJob) *float64 { return r.Collective }),
	factor("longest_share", "ONEFILE%", 10, func(r *api.SlowJob) *float64 { return r.LongestShare }),
	amount("osts", "OSTS", 7, chart.Count, func(r *api.SlowJob) *float64 { return r.OSTs }),
	amount("contention", "PROCS/OST", 11, chart.Count, func(r *api.SlowJob) *float64 { return r.ProcsPerOST }),
}

// slowColumnsOf are the columns that fit a width.
func slowColumnsOf(w int) []table.Column[api.SlowJob] {
	switch {
	case w >= 106:
		return slowColumns
	case w >= 78:
		return table.Pick(slowColumns, "job", "app", "procs", columnRate, "small", "nonconsec", "collective",
			"longest_share")
	}
	return table.Pick(slowColumns, "job", "app", columnRate, "small", "nonconsec", "collective")
}

func (p *Logs) Name() string { return screen.OnLogs }

func (p *Logs) Address(*screen.State) screen.Address {
	return screen.Address{Page: "logs", Logs: screen.Logs{Op: p.op, All: p.all}, Sort: p.sort.String()}
}

func (p *Logs) Refresh(s *screen.State) tea.Cmd {
	op, all := p.op, p.all
	return p.jobs.Refresh(s, "low-bandwidth "+op+"s, all "+strconv.FormatBool(all),
		func(ctx context.Context) ([]api.SlowJob, error) { return s.Server.SlowJobs(ctx, op, all) })
}

func (p *Logs) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	p.jobs.Take(msg)
	return nil
}

func (p *Logs) rows(s *screen.State) []*api.SlowJob {
	rows := make([]*api.SlowJob, len(p.jobs.Value))
	for i := range rows {
		rows[i] = &p.jobs.Value[i]
	}
	table.Sort(rows, slowColumns, p.sort)
	return rows
}

func (p *Logs) Table(s *screen.State) [][]string { return table.Texts(slowColumns, p.rows(s)) }

func (p *Logs) Act(s *screen.State, a screen.Action) tea.Cmd {
	rows := p.rows(s)
	switch a {
	case screen.ActOp:
		p.op = map[string]string{"read": "write", "write": "read"}[p.op]
		return p.Refresh(s)
	case screen.ActAll:
		p.all = !p.all
		return p.Refresh(s)
	case screen.ActOpen:
		if p.cursor >= len(rows) {
			s.Note = "no job to explain"
			return nil
		}
		return s.Host.Open(screen.AtJob(rows[p.cursor].Job, screen.PartWhy))
	default:
		if !screen.Arrange(&p.sort, slowColumns, a) {
			p.cursor = a.Moved(p.cursor, len(rows))
		}
	}
	return nil
}

// Left is how the list is left.
func (p *Logs) Left() screen.Kept { return screen.LeftOf(p.sort, "") }

// Restore is how it was left.
func (p *Logs) Restore(k screen.Kept) { screen.Restore(&p.sort, slowColumns, k) }

func (p *Logs) Title(*screen.State, int) string { return " I/O logs: low " + p.op + " bandwidth" }

func (p *Logs) Body(s *screen.State, w, h int) []string {
	if !p.jobs.Have {
		return p.jobs.Missing(s, "the jobs of low bandwidth", w)
	}
	rows := p.rows(s)
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	which := "more than 1,000 processes, 10 MB each, below 1 GB/s on the critical path (" + s.Key(screen.ActAll) +
		" all)"
	if p.all {
		which = "all in the archive (" + s.Key(screen.ActAll) + " only slow ones)"
	}
	lines := chart.Paragraphs(w, fmt.Sprintf("%s: %s", anomaly.Counted(len(rows), "job"), which))
	lines = append(lines, p.jobs.Old(s, "as they were", w)...)
	if len(rows) == 0 {
		return append(lines,
			chart.Paragraphs(w,
				"No such job. Logs come into the archive by 'fairway import PATH' on the daemon's host; "+
					s.Key(screen.ActAll)+" shows all jobs.")...)
	}
	cols := table.Shown(slowColumnsOf(w), p.sort)
	lines = append(lines, s.Bold(chart.Clip(table.Heading(cols, p.sort), w)))
	return append(lines, table.Lines(s.Palette, len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return " " + table.Cells(rows[i], cols) })...)
}
