package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// runsRows is how many runs are compared with.
const runsRows = 200

// askRuns asks for the runs like a job; several pages show them.
func askRuns(l *Load[api.JobRuns], s *State, id topology.JobID) tea.Cmd {
	return l.Refresh(s, "runs like "+string(id),
		func(ctx context.Context) (api.JobRuns, error) { return s.Server.JobRuns(ctx, id, runsRows) })
}

// runsPage lists the ended runs that are like a job.
type runsPage struct {
	id     topology.JobID
	runs   Load[api.JobRuns]
	sort   Sorting
	cursor int
}

func newRunsPage(id, sort string) *runsPage {
	p := &runsPage{id: topology.JobID(id), sort: Sorting{Column: "started"}}
	ParseSort(&p.sort, runColumns(time.Time{}), sort)
	return p
}

// numbered makes a column of runs that sorts by a number.
func numbered(name, title string, width int, text func(r *api.RunRow) string,
	v func(*api.RunRow) *float64) Column[api.RunRow] {
	return Column[api.RunRow]{Name: name, Title: title, Width: width, Text: text, Number: v}
}

func pointer(v float64) *float64 { return &v }

// runColumns are all columns of runs.
func runColumns(now time.Time) []Column[api.RunRow] {
	return []Column[api.RunRow]{
		{Name: "job", Title: "JOB", Width: 10, Text: func(r *api.RunRow) string { return clean(string(r.Job)) }},
		numbered("started", "STARTED", 14, func(r *api.RunRow) string { return moment(r.Start, now) },
			func(r *api.RunRow) *float64 { return pointer(float64(r.Start.Unix())) }),
		numbered("ran", "RAN", 8, func(r *api.RunRow) string { return age(r.End.Sub(r.Start)) },
			func(r *api.RunRow) *float64 { return pointer(r.End.Sub(r.Start).Seconds()) }),
		numbered("read", "READ", 9, func(r *api.RunRow) string { return volume(r.ReadBytes) },
			func(r *api.RunRow) *float64 { return &r.ReadBytes }),
		numbered("written", "WRITTEN", 9, func(r *api.RunRow) string { return volume(r.WriteBytes) },
			func(r *api.RunRow) *float64 { return &r.WriteBytes }),
		numbered("io", "I/O TIME", 10, func(r *api.RunRow) string { return seconds(r.IOSeconds) },
			func(r *api.RunRow) *float64 { return &r.IOSeconds }),
		numbered("bw", "MB/s", 8, func(r *api.RunRow) string { return mega(r.BytesPerSec) },
			func(r *api.RunRow) *float64 { return r.BytesPerSec }),
		numbered("md", "MD/s", 8, func(r *api.RunRow) string { return count(r.MetaOpsPerSec) },
			func(r *api.RunRow) *float64 { return r.MetaOpsPerSec }),
		numbered("waited", "WAITED", 13, func(r *api.RunRow) string { return longestWait(r.Waits) },
			func(r *api.RunRow) *float64 {
				if len(r.Waits) == 0 {
					return nil
				}
				return &r.Waits[0].Share
			}),
		{Name: "mode", Title: " MODE", Width: 7,
			Text: func(r *api.RunRow) string { return " " + orMissing(string(r.Mode)) }},
		{Name: "remapped", Title: "MOVED BY", Width: 10, Text: func(r *api.RunRow) string { return moved(r) }},
		{Name: "forwarders", Title: "FORWARDERS", Width: 80,
			Text: func(r *api.RunRow) string { return forwardersText(r.Forwarders) }},
	}
}

// moved is the plan that moved a run; "no", or missing where nobody knows.
func moved(r *api.RunRow) string {
	switch {
	case r.Remapped == nil:
		return missing
	case *r.Remapped:
		return clean(r.Plan)
	}
	return "no"
}

func forwardersText(on []topology.ForwarderID) string {
	if len(on) == 0 {
		return missing
	}
	names := make([]string, len(on))
	for i, f := range on {
		names[i] = clean(string(f))
	}
	if len(on) > 1 {
		return strconv.Itoa(len(on)) + ": " + strings.Join(names, " ")
	}
	return names[0]
}

// longestWait is the forwarder that a run waited for most.
func longestWait(w []history.Wait) string {
	if len(w) == 0 {
		return missing
	}
	return clean(string(w[0].Forwarder)) + " " + ratio(&w[0].Share) + "%"
}

// seconds is a time of I/O: with a decimal when it is short.
func seconds(v float64) string {
	if v < 10 {
		return number(v) + "s"
	}
	return age(time.Duration(v * float64(time.Second)))
}

// runColumnsOf are the columns that fit a width; how fast runs were that only work on metadata is told
// in operations.
func runColumnsOf(now time.Time, w int, metaOnly bool) []Column[api.RunRow] {
	rate, other := "bw", "md"
	if metaOnly {
		rate, other = other, rate
	}
	switch {
	case w >= 118:
		return slices.DeleteFunc(runColumns(now), func(c Column[api.RunRow]) bool { return c.Name == other })
	case w >= 78:
		return Pick(runColumns(now), "job", "started", "read", "written", "io", rate, "mode", "remapped")
	}
	return Pick(runColumns(now), "job", "started", "written", "io", rate, "remapped")
}

func (p *runsPage) Name() string { return onRuns }

func (p *runsPage) Address(*State) Address {
	return Address{Page: "jobs", ID: string(p.id), Part: partRuns, Sort: p.sort.String()}
}

func (p *runsPage) Refresh(s *State) tea.Cmd { return askRuns(&p.runs, s, p.id) }

func (p *runsPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.runs.Take(msg)
	return nil
}

func (p *runsPage) rows(s *State) []*api.RunRow {
	rows := make([]*api.RunRow, len(p.runs.Value.Runs))
	for i := range rows {
		rows[i] = &p.runs.Value.Runs[i]
	}
	Sort(rows, runColumns(s.Now), p.sort)
	return rows
}

func (p *runsPage) Table(s *State) [][]string { return Texts(runColumns(s.Now), p.rows(s)) }

func (p *runsPage) Act(s *State, a Action) tea.Cmd {
	rows := p.rows(s)
	switch a {
	case actSortPrev:
		StepSort(&p.sort, runColumnsOf(s.Now, 200, p.runs.Value.MetaOnly), -1)
	case actSortNext:
		StepSort(&p.sort, runColumnsOf(s.Now, 200, p.runs.Value.MetaOnly), 1)
	case actReverse:
		p.sort.Reverse = !p.sort.Reverse
	case actOpen:
		if p.cursor >= len(rows) {
			s.Note = "there is no run to open"
			return nil
		}
		return s.Host.Open(AtJob(rows[p.cursor].Job, ""))
	default:
		p.cursor = a.Moved(p.cursor, len(rows))
	}
	return nil
}

func (p *runsPage) Title(*State, int) string { return " runs like job " + clean(string(p.id)) }

func (p *runsPage) Body(s *State, w, h int) []string {
	if !p.runs.Have {
		return p.runs.Missing(s, "the runs like job "+clean(string(p.id)), w)
	}
	v, rows := &p.runs.Value, p.rows(s)
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	if len(rows) == 0 {
		return append([]string{""}, paragraphs(w, noRunsLike(v))...)
	}
	head := fmt.Sprintf("%s of %s by %s on %s", api.Counted(v.All, "ended run"), orMissing(v.App), orMissing(v.User),
		api.Counted(v.Nodes, "node"))
	if v.All > len(v.Runs) {
		head += fmt.Sprintf(", the newest %d of them", len(v.Runs))
	}
	rate := "MB/s"
	if v.MetaOnly {
		rate = "MD/s"
	}
	lines := []string{clip(" "+head+". "+rate+" and I/O TIME: while it did I/O.", w)}
	lines = append(lines, p.runs.Old(s, "as they were", w)...)
	lines = append(lines, comparison(v, w)...)
	cols := runColumnsOf(s.Now, w, v.MetaOnly)
	lines = append(lines, s.Bold(clip(Heading(cols, p.sort), w)))
	return append(lines, Lines(s.Palette, len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return " " + Cells(rows[i], cols) })...)
}

func noRunsLike(v *api.JobRuns) string {
	return fmt.Sprintf(
		"No other ended run of %s by %s on %s is in the history with a profile, so there is nothing to compare with "+
			"yet. The batch system's hooks tell of runs; 'fairway import' brings older ones from their logs.",
		orMissing(v.App), orMissing(v.User), api.Counted(v.Nodes, "node"))
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
			return clip(" "+left(label, 10)+"no I/O in "+api.Counted(len(v.Runs), "run")+" like it", w)
		}
		return clip(" "+left(label, 10)+boxPlot(of, cells)+"  "+standing(of, less, more, like, text, unit), w)
	}
	so := ""
	if v.This != nil && v.This.End.IsZero() {
		so = " so far"
	}
	lines := []string{line("I/O TIME", v.IOSeconds, "shorter", "longer", seconds, so)}
	if v.MetaOnly {
		return append(lines, line("METADATA", v.MetaOpsPerSec, "slower", "faster", number, " ops/s"))
	}
	return append(lines, line("BANDWIDTH", v.BytesPerSec, "slower", "faster",
		func(x float64) string { return mega(&x) }, " MB/s"))
}

// wideComparison is the width from which a comparison has room for all its words.
const wideComparison = 100

// standing says in words how a job's value compares.
func standing(of *api.Spread, less, more, like string, text func(float64) string, unit string) string {
	if of.This == nil {
		return fmt.Sprintf("of this run not known in full; median of %d%s: %s", of.Runs, like, text(of.Median))
	}
	how, than := more, of.Below
	if of.Above > of.Below {
		how, than = less, of.Above
	}
	return fmt.Sprintf("%s%s: %s than %d of %d%s, median %s", text(*of.This), unit, how, than, of.Runs, like,
		text(of.Median))
}
