package job

import (
	"context"
	"fmt"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// Logs lists jobs of low bandwidth with their factors, slowest first.
type Logs struct {
	screen.Page[[]api.SlowJob]
	screen.Sorted[api.SlowJob]
	op  string // read, write
	all bool   // also those that are not slow
}

func NewLogs(a screen.Address) *Logs {
	p := &Logs{op: "write", all: a.All, Sorted: screen.NewSorted(allSlowColumns,
		table.Sorting{Column: columnRate, Reverse: true}, a.Sort)}
	if a.Op == "read" {
		p.op = a.Op
	}
	return p
}

const columnRate = "bw"

var slowColumns = []table.Column[api.SlowJob]{
	{Name: "job", Title: "JOB", Width: 11, Text: func(r *api.SlowJob) string { return chart.Clean(string(r.Job)) }},
	{Name: "app", Title: "APP", Width: 14, Text: func(r *api.SlowJob) string { return chart.Clean(r.App) }},
	{Name: "procs", Title: "PROCS", Width: 9,
		Text:   func(r *api.SlowJob) string { return strconv.FormatInt(r.Procs, 10) },
		Number: func(r *api.SlowJob) *float64 { n := float64(r.Procs); return &n }},
	table.Numbered(columnRate, "MB/s", 8, chart.Mega, func(r *api.SlowJob) *float64 { return r.BytesPerSec }),
	table.Numbered("bytes", "BYTES", 9, sized, func(r *api.SlowJob) *float64 { return r.Bytes }),
	table.Numbered("small", "SMALL%", 8, chart.Ratio, func(r *api.SlowJob) *float64 { return r.Small }),
	table.Numbered("nonconsec", "NONCONS%", 10, chart.Ratio, func(r *api.SlowJob) *float64 { return r.Nonconsec }),
	table.Numbered("collective", "COLL%", 7, chart.Ratio, func(r *api.SlowJob) *float64 { return r.Collective }),
	table.Numbered("longest_share", "ONEFILE%", 10, chart.Ratio,
		func(r *api.SlowJob) *float64 { return r.LongestShare }),
	table.Numbered("osts", "OSTS", 7, chart.Count, func(r *api.SlowJob) *float64 { return r.OSTs }),
	table.Numbered("contention", "PROCS/OST", 11, chart.Count, func(r *api.SlowJob) *float64 { return r.ProcsPerOST }),
}

func allSlowColumns(time.Time) []table.Column[api.SlowJob] { return slowColumns }

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
	return screen.Address{Page: "logs", Logs: screen.Logs{Op: p.op, All: p.all}, Sort: p.Sort.String()}
}

func (p *Logs) Refresh(s *screen.State) tea.Cmd {
	op, all := p.op, p.all
	return p.Load.Refresh(s, "low-bandwidth "+op+"s, all "+strconv.FormatBool(all),
		func(ctx context.Context) ([]api.SlowJob, error) { return s.Server.SlowJobs(ctx, op, all) })
}

func (p *Logs) Table(s *screen.State) [][]string { return p.Export(s, p.Load.Value) }

func (p *Logs) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActOp:
		p.op = map[string]string{"read": "write", "write": "read"}[p.op]
		return p.Refresh(s)
	case screen.ActAll:
		p.all = !p.all
		return p.Refresh(s)
	case screen.ActOpen:
		one := p.Chosen(s, p.Load.Value)
		if one == nil {
			s.Note = "no job to explain"
			return nil
		}
		return s.Host.Open(screen.AtJob(one.Job, screen.PartWhy))
	}
	p.Arrange(a, slowColumns, len(p.Load.Value))
	return nil
}

func (p *Logs) Title(*screen.State, int) string { return " I/O logs: low " + p.op + " bandwidth" }

func (p *Logs) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have {
		return p.Load.Missing(s, "the jobs of low bandwidth", w)
	}
	which := "more than 1,000 processes, 10 MB each, below 1 GB/s on the critical path (" + s.Key(screen.ActAll) +
		" all)"
	if p.all {
		which = "all in the archive (" + s.Key(screen.ActAll) + " only slow ones)"
	}
	lines := chart.Paragraphs(w, fmt.Sprintf("%s: %s", anomaly.Counted(len(p.Load.Value), "job"), which))
	lines = append(lines, p.Load.Old(s, "as they were", w)...)
	if len(p.Load.Value) == 0 {
		return append(lines,
			chart.Paragraphs(w,
				"No such job. Logs come into the archive by 'fairway import PATH' on the daemon's host; "+
					s.Key(screen.ActAll)+" shows all jobs.")...)
	}
	return append(lines, p.Lines(s, p.Load.Value, slowColumnsOf(w), w, h-len(lines))...)
}
