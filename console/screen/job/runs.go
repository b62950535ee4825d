package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// runsRows is how many runs are compared with.
const runsRows = 200

// askRuns asks for the runs like a job; several pages show them.
func askRuns(l *screen.Load[api.JobRuns], s *screen.State, id topology.JobID) tea.Cmd {
	return l.Refresh(s, "runs like "+string(id),
		func(ctx context.Context) (api.JobRuns, error) { return s.Server.JobRuns(ctx, id, runsRows) })
}

// Runs lists the ended runs that are like a job.
type Runs struct {
	screen.Page[api.JobRuns]
	screen.Sorted[api.RunRow]
	id topology.JobID
}

func NewRuns(id, sort string) *Runs {
	return &Runs{id: topology.JobID(id), Sorted: screen.NewSorted(runColumns, table.Sorting{Column: "started"}, sort)}
}

// sized is an amount of bytes, where it is known.
func sized(v *float64) string { return chart.Known(v, anomaly.Size) }

// runColumns are all columns of runs.
func runColumns(now time.Time) []table.Column[api.RunRow] {
	return []table.Column[api.RunRow]{
		{Name: "job", Title: "JOB", Width: 10, Text: func(r *api.RunRow) string { return chart.Clean(string(r.Job)) }},
		{Name: "started", Title: "STARTED", Width: 14,
			Text:   func(r *api.RunRow) string { return chart.Moment(r.Start, now) },
			Number: func(r *api.RunRow) *float64 { return new(float64(r.Start.Unix())) }},
		table.Numbered("ran", "RAN", 8, func(v *float64) string { return chart.Age(time.Duration(*v * 1e9)) },
			func(r *api.RunRow) *float64 { return new(r.End.Sub(r.Start).Seconds()) }),
		table.Numbered("read", "READ", 9, sized, func(r *api.RunRow) *float64 { return &r.ReadBytes }),
		table.Numbered("written", "WRITTEN", 9, sized, func(r *api.RunRow) *float64 { return &r.WriteBytes }),
		table.Numbered("io", "I/O TIME", 10, func(v *float64) string { return seconds(*v) },
			func(r *api.RunRow) *float64 { return &r.IOSeconds }),
		table.Numbered("bw", "MB/s", 8, chart.Mega, func(r *api.RunRow) *float64 { return r.BytesPerSec }),
		table.Numbered("md", "MD/s", 8, chart.Count, func(r *api.RunRow) *float64 { return r.MetaOpsPerSec }),
		{Name: "waited", Title: "WAITED", Width: 13,
			Text: func(r *api.RunRow) string { return longestWait(r.Waits) },
			Number: func(r *api.RunRow) *float64 {
				if len(r.Waits) == 0 {
					return nil
				}
				return &r.Waits[0].Share
			}},
		{Name: "mode", Title: " MODE", Width: 7,
			Text: func(r *api.RunRow) string { return " " + chart.OrMissing(string(r.Mode)) }},
		{Name: "remapped", Title: "MOVED BY", Width: 10, Text: func(r *api.RunRow) string { return moved(r) }},
		{Name: "forwarders", Title: "FORWARDERS", Width: 80,
			Text: func(r *api.RunRow) string { return forwardersText(r.Forwarders) }},
	}
}

// moved is the plan that moved a run; "no", or missing where nobody knows.
func moved(r *api.RunRow) string {
	switch {
	case r.Remapped == nil:
		return chart.Missing
	case *r.Remapped:
		return chart.Clean(r.Plan)
	}
	return "no"
}

func forwardersText(on []topology.ForwarderID) string {
	if len(on) > 1 {
		return strconv.Itoa(len(on)) + ": " + chart.Names(on)
	}
	return chart.OrMissing(chart.Names(on))
}

// longestWait is the forwarder that a run waited for most.
func longestWait(w []history.Wait) string {
	if len(w) == 0 {
		return chart.Missing
	}
	return chart.Clean(string(w[0].Forwarder)) + " " + chart.Ratio(&w[0].Share) + "%"
}

// seconds is a time of I/O: with a decimal when it is short.
func seconds(v float64) string {
	if v < 10 {
		return chart.Number(v) + "s"
	}
	return chart.Age(time.Duration(v * float64(time.Second)))
}

// runColumnsOf are the columns that fit a width; the speed of runs that only work on metadata is
// counted in operations.
func runColumnsOf(now time.Time, w int, metaOnly bool) []table.Column[api.RunRow] {
	rate, other := "bw", "md"
	if metaOnly {
		rate, other = other, rate
	}
	switch {
	case w >= 118:
		return slices.DeleteFunc(runColumns(now), func(c table.Column[api.RunRow]) bool { return c.Name == other })
	case w >= 78:
		return table.Pick(runColumns(now), "job", "started", "read", "written", "io", rate, "mode", "remapped")
	}
	return table.Pick(runColumns(now), "job", "started", "written", "io", rate, "remapped")
}

func (p *Runs) Name() string { return screen.OnRuns }

func (p *Runs) Address(*screen.State) screen.Address {
	return screen.Address{Page: "jobs", ID: string(p.id), Part: screen.PartRuns, Sort: p.Sort.String()}
}

func (p *Runs) Refresh(s *screen.State) tea.Cmd { return askRuns(&p.Load, s, p.id) }

func (p *Runs) Table(s *screen.State) [][]string { return p.Export(s, p.Load.Value.Runs) }

func (p *Runs) Act(s *screen.State, a screen.Action) tea.Cmd {
	if a == screen.ActOpen {
		one := p.Chosen(s, p.Load.Value.Runs)
		if one == nil {
			s.Note = "no run to open"
			return nil
		}
		return s.Host.Open(screen.AtJob(one.Job, ""))
	}
	p.Arrange(a, runColumnsOf(s.Now, 200, p.Load.Value.MetaOnly), len(p.Load.Value.Runs))
	return nil
}

func (p *Runs) Title(*screen.State, int) string { return " runs like job " + chart.Clean(string(p.id)) }

func (p *Runs) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have {
		return p.Load.Missing(s, "the runs like job "+chart.Clean(string(p.id)), w)
	}
	v := &p.Load.Value
	if len(v.Runs) == 0 {
		return append([]string{""}, chart.Paragraphs(w, noRunsLike(v))...)
	}
	head := fmt.Sprintf("%s of %s by %s on %s", anomaly.Counted(v.All, "ended run"), chart.OrMissing(v.App),
		chart.OrMissing(v.User),
		anomaly.Counted(v.Nodes, "node"))
	if v.All > len(v.Runs) {
		head += fmt.Sprintf(", the newest %d of them", len(v.Runs))
	}
	rate := "MB/s"
	if v.MetaOnly {
		rate = "MD/s"
	}
	lines := []string{chart.Clip(" "+head+". "+rate+" and I/O TIME: while it did I/O.", w)}
	lines = append(lines, p.Load.Old(s, "as they were", w)...)
	lines = append(lines, comparison(v, w)...)
	return append(lines, p.Lines(s, v.Runs, runColumnsOf(s.Now, w, v.MetaOnly), w, h-len(lines))...)
}

func noRunsLike(v *api.JobRuns) string {
	return fmt.Sprintf(
		"No other ended run of %s by %s on %s is in the history with a profile, so there is nothing to compare with "+
			"yet. The batch system's hooks report runs; 'fairway import' brings older ones from their logs.",
		chart.OrMissing(v.App), chart.OrMissing(v.User), anomaly.Counted(v.Nodes, "node"))
}

// comparison is where a job stands among the runs like it: its I/O time, and its bandwidth or, where
// they only work on metadata, its operations.
func comparison(v *api.JobRuns, w int) []string {
	cells, like := 16, ""
	if w >= wideComparison {
		cells, like = min(44, w/3-6), " like it"
	}
	line := func(label string, of *api.Spread, less, more string, text func(float64) string, unit string) string {
		if of == nil {
			return chart.Clip(" "+chart.Left(label, 10)+"no I/O in "+anomaly.Counted(len(v.Runs), "run")+" like it", w)
		}
		return chart.Clip(" "+chart.Left(label, 10)+chart.BoxPlot(of, cells)+"  "+standing(of, less, more, like, text,
			unit), w)
	}
	so := ""
	if v.This != nil && v.This.End.IsZero() {
		so = " so far"
	}
	lines := []string{line("I/O TIME", v.IOSeconds, "shorter", "longer", seconds, so)}
	if v.MetaOnly {
		return append(lines, line("METADATA", v.MetaOpsPerSec, "slower", "faster", chart.Number, " ops/s"))
	}
	return append(lines, line("BANDWIDTH", v.BytesPerSec, "slower", "faster",
		func(x float64) string { return chart.Mega(&x) }, " MB/s"))
}

// wideComparison is the width from which a comparison has room for all its words.
const wideComparison = 100

// standing says in words how a job's value compares.
func standing(of *api.Spread, less, more, like string, text func(float64) string, unit string) string {
	if of.This == nil {
		return fmt.Sprintf("this run: not known in full; median of %d%s: %s", of.Runs, like, text(of.Median))
	}
	how, than := more, of.Below
	if of.Above > of.Below {
		how, than = less, of.Above
	}
	return fmt.Sprintf("%s%s: %s than %d of %d%s, median %s", text(*of.This), unit, how, than, of.Runs, like,
		text(of.Median))
}
