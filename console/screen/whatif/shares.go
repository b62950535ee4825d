// Package whatif shows what policies would do: shares of the running jobs, and staggered I/O.
package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// partTitles stand above parts.
var partTitles = []string{"GLOBAL", "REACH", "GETS"}

// sharePolicies are those that a key goes through; an address may hold any other.
var sharePolicies = []string{"size-fair", "job-fair", "user-fair", "user-size-fair", "group-user-size-fair"}

// Shares asks what a sharing policy would give every running job; nothing is changed by it.
type Shares struct {
	screen.Place // its policy, and its forwarder: "" is all of them
	screen.Page[api.SharesView]
	cursor int
}

func NewShares(a screen.Address) *Shares {
	a.WhatIf = screen.WhatIf{Policy: cmp.Or(a.Policy, sharePolicies[0]), Forwarder: a.Forwarder}
	return &Shares{Place: screen.Place{On: screen.OnShares, At: screen.Address{Page: "whatif", WhatIf: a.WhatIf}}}
}

func (p *Shares) Refresh(s *screen.State) tea.Cmd {
	of := p.At.WhatIf
	return p.Load.Refresh(s, strings.TrimSpace("shares "+of.Policy+" "+of.Forwarder),
		func(ctx context.Context) (api.SharesView, error) {
			return s.Server.Shares(ctx, of.Policy, topology.ForwarderID(of.Forwarder))
		})
}

func (p *Shares) Act(s *screen.State, a screen.Action) tea.Cmd {
	jobs := p.Load.Value.Jobs
	switch a {
	case screen.ActMetric:
		p.At.Policy = sharePolicies[(slices.Index(sharePolicies, p.At.Policy)+1)%len(sharePolicies)]
		return p.Refresh(s)
	case screen.ActPanel:
		return s.Host.Replace(screen.Address{Page: "whatif", WhatIf: screen.WhatIf{Set: ExamplePattern}})
	case screen.ActOpen:
		if p.cursor >= len(jobs) {
			s.Note = "no job to open"
			return nil
		}
		return s.Host.Open(screen.AtJob(jobs[p.cursor].Job, ""))
	default:
		p.cursor = a.Moved(p.cursor, len(jobs))
	}
	return nil
}

func (p *Shares) Table(*screen.State) [][]string {
	title, weight := weightOf(&p.Load.Value)
	out := [][]string{{"job", "user", "group", title, "share"}}
	if p.Load.Value.InForce != nil {
		out[0] = append(out[0], "global %", "reach %", "gets %")
	}
	for i := range p.Load.Value.Jobs {
		j := &p.Load.Value.Jobs[i]
		row := []string{chart.Clean(string(j.Job)), chart.Clean(j.User), chart.Clean(j.Group), weight(j),
			strconv.FormatFloat(j.Share, 'g', -1, 64)}
		out = append(out, append(row, partsOf(&p.Load.Value, j)...))
	}
	return out
}

func (p *Shares) Title(*screen.State, int) string {
	title := " what if: shares under " + chart.Clean(p.At.Policy)
	if p.At.Forwarder != "" {
		title += " on " + chart.Clean(p.At.Forwarder)
	}
	return title
}

func (p *Shares) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have {
		return p.Load.Missing(s, "the shares", w)
	}
	v := &p.Load.Value
	p.cursor = max(0, min(p.cursor, len(v.Jobs)-1))
	about := fmt.Sprintf(" %s; %s, nothing is changed anywhere", anomaly.Counted(len(v.Jobs), "running job"),
		chart.Clean(v.Policy))
	lines := []string{chart.Clip(about, w)}
	lines = append(lines, p.Load.Old(s, "as they were", w)...)
	if len(v.Jobs) == 0 {
		return append(lines, chart.Clip(" No job runs here now.", w))
	}
	if v.InForce != nil {
		lines = append(lines, inForce(v.InForce.Says, w, max(2, h/3))...)
	}
	title, weight := weightOf(v)
	head := " JOB         USER      GROUP     " + chart.Right(strings.ToUpper(title), 8) + "  SHARE %"
	column, unit := 9, " %"
	if w < len(head)+len(partTitles)*column {
		column, unit = 7, ""
	}
	if v.InForce != nil {
		for _, t := range partTitles {
			head += chart.Right(t+unit, column)
		}
	}
	bars := max(0, w-len(head)-6)
	lines = append(lines, s.Bold(chart.Clip(head, w)))
	return append(lines, table.Lines(s.Palette, len(v.Jobs), p.cursor, w, h-len(lines), "", func(i int) string {
		j := &v.Jobs[i]
		bar := strings.Repeat("#", int(j.Share/v.Jobs[0].Share*float64(bars)+0.5))
		line := " " + chart.Row([]int{-12, -10, -10, 8, 9}, chart.Clean(string(j.Job)), chart.OrMissing(j.User),
			chart.OrMissing(j.Group), weight(j), chart.Fixed(100*j.Share, 1))
		for _, x := range partsOf(v, j) {
			line += chart.Right(x, column)
		}
		return strings.TrimRight(line+"  "+bar, " ")
	})...)
}

// inForce says how queues share now, in at most so many lines.
func inForce(says []string, w, most int) (lines []string) {
	for _, text := range says {
		for i, line := range chart.Wrap(chart.Clean(text), w-3) {
			indent := " "
			if i > 0 {
				indent = "   "
			}
			lines = append(lines, chart.Clip(indent+line, w))
		}
	}
	return lines[:min(len(lines), most)]
}

// partsOf are a job's parts of what all queues do, in percent: by the policy in force, as far as the placement
// of its work allows, and what it had. Missing where it has no work.
func partsOf(v *api.SharesView, j *api.ShareRow) []string {
	if v.InForce == nil {
		return nil
	}
	g := v.InForce.Of(j.Job)
	if g == nil {
		return []string{chart.Missing, chart.Missing, chart.Missing}
	}
	return []string{chart.Fixed(100*g.Share, 1), chart.Fixed(100*g.Reachable, 1), chart.Fixed(100*g.Got, 1)}
}

// weightOf is what the policy goes by, as a column: the priority where it divides by that, else the nodes.
func weightOf(v *api.SharesView) (title string, of func(*api.ShareRow) string) {
	if len(v.Jobs) > 0 && v.Jobs[0].Priority > 0 {
		return "priority", func(j *api.ShareRow) string { return strconv.FormatFloat(j.Priority, 'g', 6, 64) }
	}
	return "nodes", func(j *api.ShareRow) string { return strconv.Itoa(j.Nodes) }
}
