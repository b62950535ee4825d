package whatif

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap/policy/periodic"
	"fairway/webui/api"
)

// ExamplePattern is Set 3 of the paper's Table 4 (Aupy et al., Periodic I/O scheduling for
// super-computers), so that the page shows what it is for.
var ExamplePattern = func() string {
	apps := []string{}
	for i := range 6 {
		apps = append(apps, fmt.Sprintf(`{"name":"Turbulence2-%d","w":76.8,"vol":235.8,"beta":64}`, i+1))
	}
	for i := range 2 {
		apps = append(apps, fmt.Sprintf(`{"name":"AstroPhysics-%d","w":15360,"vol":423.4,"beta":128}`, i+1))
	}
	return `{"procs":640,"b":0.01,"B":3,"kprime":2,"eps":0.01,"apps":[` + strings.Join(apps, ",") + `]}`
}()

// maxSet bounds the set that is typed or pasted.
const maxSet = 16 << 10

// Pattern draws when periodic applications should do their I/O: a row for each application under
// the bandwidth they use together.
type Pattern struct {
	screen.Place // with the set, JSON as fairway periodic reads it
	screen.Page[api.PatternView]
	edit *screen.Input
	top  int
}

func NewPattern(a screen.Address) *Pattern {
	return &Pattern{Place: screen.Place{On: screen.OnPattern, At: screen.Address{Page: "whatif",
		WhatIf: screen.WhatIf{Set: a.Set}}}}
}

func (p *Pattern) Field() *screen.Input { return p.edit }

func (p *Pattern) Refresh(s *screen.State) tea.Cmd {
	if p.Load.Have && p.Load.Err == nil && p.Load.Of(p.call()) {
		return nil // it depends on nothing but the question
	}
	return p.Load.Refresh(s, p.call(), screen.With(s.Server.Pattern, p.At.Set))
}

func (p *Pattern) call() string { return "pattern of " + p.At.Set }

func (p *Pattern) Typed(s *screen.State, ok bool) tea.Cmd {
	text := strings.TrimSpace(p.edit.Text)
	p.edit = nil
	if !ok || text == "" {
		return nil
	}
	p.At.Set, p.top = text, 0
	return p.Refresh(s)
}

func (p *Pattern) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActPanel:
		return s.Host.Replace(screen.Address{Page: "whatif"})
	case screen.ActEdit:
		p.edit = &screen.Input{Label: "set:", Text: p.At.Set, Most: maxSet}
	default:
		p.top += a.Step() // kept in range where it is drawn
	}
	return nil
}

func (p *Pattern) Title(*screen.State, int) string { return " what if: staggered I/O" }

func (p *Pattern) Body(s *screen.State, w, h int) []string {
	if p.Load.Err != nil {
		lines := p.Load.Missing(s, "", w)
		return append(lines, chart.Clip(" "+s.Key(screen.ActEdit)+" changes the set, as fairway periodic reads it.", w))
	}
	if !p.Load.Have || !p.Load.Of(p.call()) {
		return p.Load.Missing(s, "a pattern", w)
	}
	v := &p.Load.Value
	var lines []string
	if p.At.Set == ExamplePattern {
		lines = []string{s.Bold(chart.Clip(" AN EXAMPLE, not this machine: "+s.Key(screen.ActEdit)+" changes it", w))}
	}
	widths := []int{-34, 16, 10}
	lines = append(lines,
		chart.Clip(fmt.Sprintf(" a pattern of %.0f s, repeated; nothing is changed anywhere", v.T), w),
		s.Bold(chart.Clip(" "+chart.Row(widths, "", "SYSEFFICIENCY %", "DILATION"), w)),
		chart.Clip(" "+chart.Row(widths, "with the pattern", chart.Ratio(&v.SysEfficiency),
			chart.Number(v.Dilation)), w),
		chart.Clip(" "+chart.Row(widths, "bandwidth shared fairly, no plan", chart.Ratio(&v.Unplanned.SysEfficiency),
			chart.Number(v.Unplanned.Dilation)), w))
	bound := fmt.Sprintf("no schedule computes more than %s %% of the machine here, and %s %% if bandwidth had no end",
		chart.Ratio(&v.KnapsackBound), chart.Ratio(&v.UpperBound))
	lines = append(append(lines, chart.Paragraphs(w, bound)...), "")
	return table.Scroll(append(lines, p.gantt(s, w)...), &p.top, h)
}

// curveRows is the height of the bandwidth curve.
const curveRows = 5

// gantt draws the bandwidth in use and below it each application: a digit is the tenth of the
// bandwidth it can have, - is computation.
func (p *Pattern) gantt(s *screen.State, w int) []string {
	v := &p.Load.Value
	widest := len("B = 0.001 GB/s")
	for _, a := range v.Apps {
		widest = max(widest, min(20, len(chart.Clean(a.Name))))
	}
	columns := max(10, min(200, w-widest-4))
	used := make([]float64, columns)
	rows := make([]string, len(v.Apps))
	for i, a := range v.Apps {
		io := a.Bandwidth(v.T, columns)
		for c, bw := range io {
			used[c] += bw
		}
		app := &v.Set.Apps[i]
		rows[i] = " " + chart.Left(chart.Clean(a.Name), widest) + " |" + chart.Tenths(s.Palette, io,
			min(app.Procs*v.Set.Link, v.Set.Bandwidth),
			computing(a.Instances, app.Work, v.T, columns)) + "|"
	}
	var lines []string
	for r := curveRows; r > 0; r-- {
		label := ""
		if r == curveRows {
			label = fmt.Sprintf("B = %.3g GB/s", v.Set.Bandwidth)
		}
		line := []byte(strings.Repeat(" ", columns))
		for c, bw := range used {
			if bw/v.Set.Bandwidth*curveRows > float64(r)-0.5 {
				line[c] = '#'
			}
		}
		lines = append(lines, chart.Clip(" "+chart.Right(label, widest)+" |"+string(line)+"|", w))
	}
	for _, l := range rows {
		lines = append(lines, chart.Clip(l, w))
	}
	axis := " " + chart.Left("", widest) + "  " + chart.Ends("0 s", fmt.Sprintf("%.0f s", v.T), columns)
	return append(lines, chart.Clip(axis, w), "",
		chart.Clip(" 0-9 tenths of what an application can use   - it computes   # all together", w))
}

// computing are the columns in whose midst an application computes; a computation may run over the
// pattern's end to its beginning.
func computing(instances []periodic.Instance, work, length float64, columns int) []bool {
	out := make([]bool, columns)
	for c := range out {
		t := (float64(c) + 0.5) * length / float64(columns)
		for _, in := range instances {
			if t >= in.InitW && t < in.InitW+work || t+length < in.InitW+work {
				out[c] = true
			}
		}
	}
	return out
}
