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
func askRuns(l *load[api.JobRuns], s *State, k *asker, id topology.JobID) tea.Cmd {
	return l.refresh(s, k, "runs like "+string(id),
		func(ctx context.Context) (api.JobRuns, error) { return k.backend.JobRuns(ctx, id, runsRows) })
}

// runsPage lists the ended runs that are like a job.
type runsPage struct {
	id     topology.JobID
	runs   load[api.JobRuns]
	sort   sorting
	cursor int
}

func newRunsPage(id, sort string) *runsPage {
	p := &runsPage{id: topology.JobID(id), sort: sorting{column: "started"}}
	parseSort(&p.sort, runColumns, sort)
	return p
}

// numbered makes a column of runs that sorts by a number.
func numbered(name, title string, width int, text func(s *State, r *api.RunRow) string,
	v func(*api.RunRow) *float64) column[api.RunRow] {
	return column[api.RunRow]{name: name, title: title, width: width, text: text, number: v}
}

func pointer(v float64) *float64 { return &v }

var runColumns = []column[api.RunRow]{
	{name: "job", title: "JOB", width: 10, text: func(_ *State, r *api.RunRow) string { return clean(string(r.Job)) }},
	numbered("started", "STARTED", 14, func(s *State, r *api.RunRow) string { return moment(r.Start, s.Now) },
		func(r *api.RunRow) *float64 { return pointer(float64(r.Start.Unix())) }),
	numbered("ran", "RAN", 8, func(_ *State, r *api.RunRow) string { return age(r.End.Sub(r.Start)) },
		func(r *api.RunRow) *float64 { return pointer(r.End.Sub(r.Start).Seconds()) }),
	numbered("read", "READ", 9, func(_ *State, r *api.RunRow) string { return volume(r.ReadBytes) },
		func(r *api.RunRow) *float64 { return &r.ReadBytes }),
	numbered("written", "WRITTEN", 9, func(_ *State, r *api.RunRow) string { return volume(r.WriteBytes) },
		func(r *api.RunRow) *float64 { return &r.WriteBytes }),
	numbered("io", "I/O TIME", 10, func(_ *State, r *api.RunRow) string { return seconds(r.IOSeconds) },
		func(r *api.RunRow) *float64 { return &r.IOSeconds }),
	numbered("bw", "MB/s", 8, func(_ *State, r *api.RunRow) string { return mega(r.BytesPerSec) },
		func(r *api.RunRow) *float64 { return r.BytesPerSec }),
	numbered("md", "MD/s", 8, func(_ *State, r *api.RunRow) string { return count(r.MetaOpsPerSec) },
		func(r *api.RunRow) *float64 { return r.MetaOpsPerSec }),
	numbered("waited", "WAITED", 13, func(_ *State, r *api.RunRow) string { return longestWait(r.Waits) },
		func(r *api.RunRow) *float64 {
			if len(r.Waits) == 0 {
				return nil
			}
			return &r.Waits[0].Share
		}),
	{name: "mode", title: " MODE", width: 7,
		text: func(_ *State, r *api.RunRow) string { return " " + orMissing(string(r.Mode)) }},
	{name: "remapped", title: "MOVED BY", width: 10, text: func(_ *State, r *api.RunRow) string { return moved(r) }},
	{name: "forwarders", title: "FORWARDERS", width: 80,
		text: func(_ *State, r *api.RunRow) string { return forwardersText(r.Forwarders) }},
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
func runColumnsOf(w int, metaOnly bool) []column[api.RunRow] {
	rate, other := "bw", "md"
	if metaOnly {
		rate, other = other, rate
	}
	switch {
	case w >= 118:
		return slices.DeleteFunc(slices.Clone(runColumns), func(c column[api.RunRow]) bool { return c.name == other })
	case w >= 78:
		return pickOf(runColumns, []string{"job", "started", "read", "written", "io", rate, "mode", "remapped"})
	}
	return pickOf(runColumns, []string{"job", "started", "written", "io", rate, "remapped"})
}

func (p *runsPage) name() string { return onRuns }

func (p *runsPage) address(*State) Address {
	return Address{Page: "jobs", ID: string(p.id), Part: partRuns, Sort: p.sort.String()}
}

func (p *runsPage) refresh(s *State, k *asker) tea.Cmd { return askRuns(&p.runs, s, k, p.id) }

func (p *runsPage) answer(_ *State, _ *asker, msg tea.Msg) tea.Cmd {
	p.runs.take(msg)
	return nil
}

func (p *runsPage) rows(s *State) []*api.RunRow {
	rows := make([]*api.RunRow, len(p.runs.value.Runs))
	for i := range rows {
		rows[i] = &p.runs.value.Runs[i]
	}
	sortRows(s, rows, runColumns, p.sort)
	return rows
}

func (p *runsPage) table(s *State) [][]string { return texts(s, runColumns, p.rows(s)) }

func (p *runsPage) act(s *State, ask *asker, a action) tea.Cmd {
	rows := p.rows(s)
	switch a {
	case actSortPrev:
		stepSort(&p.sort, runColumnsOf(200, p.runs.value.MetaOnly), -1)
	case actSortNext:
		stepSort(&p.sort, runColumnsOf(200, p.runs.value.MetaOnly), 1)
	case actReverse:
		p.sort.reverse = !p.sort.reverse
	case actOpen:
		if p.cursor >= len(rows) {
			s.Note = "there is no run to open"
			return nil
		}
		return s.open(ask, newJobPage(string(rows[p.cursor].Job)))
	default:
		p.cursor = max(0, min(p.cursor+steps[a], len(rows)-1))
	}
	return nil
}

func (p *runsPage) title(*State, int) string { return " runs like job " + clean(string(p.id)) }

func (p *runsPage) body(s *State, w, h int) []string {
	if !p.runs.have {
		return p.runs.missing(s, "the runs like job "+clean(string(p.id)), w)
	}
	v, rows := &p.runs.value, p.rows(s)
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	if len(rows) == 0 {
		return append([]string{""}, indent(wrap(noRunsLike(v), max(1, w-2)), w)...)
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
	if p.runs.err != nil {
		lines = append(lines, s.Palette.paint(s.Palette.bold, clip(" as they were: "+clean(p.runs.err.Error()), w)))
	}
	lines = append(lines, comparison(v, w)...)
	cols := runColumnsOf(w, v.MetaOnly)
	lines = append(lines, s.Palette.paint(s.Palette.bold, clip(heading(cols, p.sort), w)))
	return append(lines, s.scrolled(len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return " " + cells(s, rows[i], cols) })...)
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

// boxPlot draws |--[==|==]--| from the least to the most value in w cells, with o where the job stands.
func boxPlot(s *api.Spread, w int) string {
	from, to := s.Min, s.Max
	if s.This != nil {
		from, to = min(from, *s.This), max(to, *s.This)
	}
	at := func(v float64) int {
		if to <= from {
			return w / 2
		}
		return max(0, min(w-1, int((v-from)/(to-from)*float64(w-1)+0.5)))
	}
	line := []byte(strings.Repeat(" ", w))
	fill := func(a, b float64, c byte) {
		for i := at(a); i <= at(b); i++ {
			line[i] = c
		}
	}
	fill(s.Min, s.Max, '-')
	line[at(s.Min)], line[at(s.Max)] = '|', '|'
	fill(s.Q1, s.Q3, '=')
	line[at(s.Q1)], line[at(s.Q3)] = '[', ']'
	line[at(s.Median)] = '|'
	if s.This != nil {
		line[at(*s.This)] = 'o'
	}
	return string(line)
}
