package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// Why explains a job from its logs: the verdict with its numbers, and the critical files.
type Why struct {
	screen.Place
	screen.Page[api.JobCause]
	id  topology.JobID
	top int
}

func NewWhy(a screen.Address) *Why {
	id := topology.JobID(a.ID)
	return &Why{Place: screen.Place{On: screen.OnWhy, At: screen.AtJob(id, screen.PartWhy)}, id: id}
}

func (p *Why) Refresh(s *screen.State) tea.Cmd {
	return p.Load.Refresh(s, "why "+string(p.id), screen.With(s.Server.Cause, p.id))
}

func (p *Why) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActOpen:
		return s.Host.Open(screen.AtJob(p.id, ""))
	case screen.ActDomains:
		return s.Host.Open(screen.AtJob(p.id, screen.PartDomains))
	}
	p.top += a.Step() // kept in range where it is drawn
	return nil
}

func (p *Why) Title(*screen.State, int) string {
	return " why job " + chart.Clean(string(p.id)) + "'s I/O took as long as it did"
}

func (p *Why) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have && errors.Is(p.Load.Err, api.ErrNotFound) {
		text := "No log of this job is in the archive, so what its I/O waited for is not known. 'fairway import " +
			"PATH' on the daemon's host takes its Darshan logs in; " + s.Key(screen.ActOpen) + " opens the job."
		return append([]string{""}, chart.Paragraphs(w, text)...)
	}
	if !p.Load.Have {
		return p.Load.Missing(s, "the logs of job "+chart.Clean(string(p.id)), w)
	}
	v := &p.Load.Value
	var lines []string
	if len(v.Forwarders) > 0 {
		lines = append(lines, chart.Labelled("FORWARDER", chart.Names(v.Forwarders), w)...)
	}
	for i := range v.Logs {
		l := &v.Logs[i]
		head := fmt.Sprintf(" %s  %s  %s, %s long", chart.OrMissing(l.App), anomaly.Counted(l.Procs, "process"),
			chart.Moment(l.Start, s.Now), chart.Age(l.End.Sub(l.Start)))
		lines = append(lines, s.Bold(chart.Clip(head, w)))
		if l.Main != nil {
			lines = append(lines, chart.Labelled("CAUSE", chart.Clean(l.Main.Text), w)...)
		}
		lines = append(lines, direction(s, "reads", l.Read, w)...)
		lines = append(lines, direction(s, "writes", l.Write, w)...)
	}
	return table.Scroll(lines, &p.top, h)
}

// criticalRows is how many critical files are listed, the longest first.
const criticalRows = 20

// direction is the reads or the writes of one program run.
func direction(s *screen.State, op string, a *rootcause.Answer, w int) []string {
	if a == nil {
		return []string{chart.Clip(" no "+op, w), ""}
	}
	rate := chart.Missing
	if v := float64(a.Bandwidth); v == v {
		rate = anomaly.Size(v) + "/s"
	}
	lines := []string{chart.Clip(fmt.Sprintf(" %s: %s in %s s of I/O, %s", op, anomaly.Size(a.Bytes),
		chart.Number(a.IOTime), rate), w)}
	if strip := CriticalStrip(a.Critical, max(10, min(80, w-24))); strip != "" {
		lines = append(lines, chart.Clip(" "+strip, w))
	}
	for _, r := range a.Reasons {
		mark, look := "  ", ""
		if r.Cause {
			mark, look = "!!", s.Palette.Bold
		}
		for i, l := range chart.Wrap(chart.Clean(r.Text), max(1, w-5)) {
			if i > 0 {
				mark = "  "
			}
			lines = append(lines, s.Palette.Paint(look, chart.Clip(" "+mark+" "+l, w)))
		}
		if help := chart.Clean(r.Advice()); help != "" {
			for _, l := range chart.Wrap(help, max(1, w-8)) {
				lines = append(lines, chart.Clip("       "+l, w))
			}
		}
	}
	if len(a.Critical) == 0 {
		return append(lines, "")
	}
	widths := []int{-max(20, w-42), 10, 13, 13}
	lines = append(lines, s.Bold(chart.Clip(" "+chart.Row(widths, "CRITICAL FILE", "FROM s", "EXCLUSIVE s",
		"OF I/O TIME"), w)))
	longest := LongestCritical(a.Critical, criticalRows)
	for _, c := range longest {
		share := c.Exclusive / a.IOTime
		lines = append(lines, chart.Clip(" "+chart.Row(widths, chart.Clean(c.Name), chart.Number(c.Start),
			chart.Number(c.Exclusive), chart.Ratio(&share)+" %"), w))
	}
	if len(longest) < a.CriticalFiles {
		lines = append(lines, chart.Clip(fmt.Sprintf(" : the longest %d of %d critical files", len(longest),
			a.CriticalFiles),
			w))
	}
	return append(lines, "")
}

// LongestCritical are the n files with the most exclusive time, the longest first.
func LongestCritical(path []rootcause.Critical, n int) []rootcause.Critical {
	longest := slices.Clone(path)
	slices.SortStableFunc(longest, func(x, y rootcause.Critical) int { return cmp.Compare(y.Exclusive, x.Exclusive) })
	return longest[:min(n, len(longest))]
}

// CriticalStrip draws a critical path in so many cells: one letter a critical file, in turn, and a dot
// where nothing was read or written; empty for none.
func CriticalStrip(path []rootcause.Critical, cells int) string {
	if len(path) == 0 {
		return ""
	}
	from, to := path[0].Start, path[0].End
	for _, c := range path {
		from, to = min(from, c.Start), max(to, c.End)
	}
	strip := []byte(strings.Repeat(".", cells))
	for i, c := range path {
		first := int((c.Start - from) / (to - from) * float64(cells))
		last := int((c.End - from) / (to - from) * float64(cells))
		for k := max(first, 0); k < max(last, first+1) && k < cells; k++ {
			strip[k] = 'a' + byte(i%26)
		}
	}
	return fmt.Sprintf("%.1f s [%s] %.1f s", from, strip, to)
}
