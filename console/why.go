package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// whyPage explains a job from its logs: the verdict with its numbers, and the critical files.
type whyPage struct {
	id    topology.JobID
	cause Load[api.JobCause]
	top   int
}

func newWhyPage(id string) *whyPage { return &whyPage{id: topology.JobID(id)} }

func (p *whyPage) Name() string { return onWhy }
func (p *whyPage) Address(*State) Address {
	return Address{Page: "jobs", ID: string(p.id), Part: partWhy}
}

func (p *whyPage) Refresh(s *State) tea.Cmd {
	return p.cause.Refresh(s, "why "+string(p.id),
		func(ctx context.Context) (api.JobCause, error) { return s.Server.Cause(ctx, p.id) })
}

func (p *whyPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.cause.Take(msg)
	return nil
}

func (p *whyPage) Act(s *State, a Action) tea.Cmd {
	switch a {
	case actOpen:
		return s.Host.Open(AtJob(p.id, ""))
	case actDomains:
		return s.Host.Open(AtJob(p.id, partDomains))
	}
	p.top += a.Step() // kept in range where it is drawn
	return nil
}

func (p *whyPage) Title(*State, int) string {
	return " why job " + clean(string(p.id)) + "'s I/O took as long as it did"
}

func (p *whyPage) Body(s *State, w, h int) []string {
	if !p.cause.Have && errors.Is(p.cause.Err, api.ErrNotFound) {
		text := "No log of this job is in the archive, so what its I/O waited for is not known. 'fairway import " +
			"PATH' on the daemon's host takes its Darshan logs in; " + s.Key(actOpen) + " opens the job."
		return append([]string{""}, paragraphs(w, text)...)
	}
	if !p.cause.Have {
		return p.cause.Missing(s, "the logs of job "+clean(string(p.id)), w)
	}
	v := &p.cause.Value
	var lines []string
	if len(v.Forwarders) > 0 {
		names := make([]string, len(v.Forwarders))
		for i, f := range v.Forwarders {
			names[i] = clean(string(f))
		}
		lines = append(lines, labelled("FORWARDER", strings.Join(names, " "), w)...)
	}
	for i := range v.Logs {
		l := &v.Logs[i]
		head := fmt.Sprintf(" %s  %s  %s, %s long", orMissing(l.App), api.Counted(l.Procs, "process"),
			moment(l.Start, s.Now), age(l.End.Sub(l.Start)))
		lines = append(lines, s.Bold(clip(head, w)))
		lines = append(lines, direction(s, "reads", l.Read, w)...)
		lines = append(lines, direction(s, "writes", l.Write, w)...)
	}
	return Scroll(lines, &p.top, h)
}

// criticalRows is how many critical files are listed, the longest first.
const criticalRows = 20

// direction is the reads or the writes of one program run.
func direction(s *State, op string, a *rootcause.Answer, w int) []string {
	if a == nil {
		return []string{clip(" no "+op, w), ""}
	}
	rate := missing
	if v := float64(a.Bandwidth); v == v {
		rate = volume(v) + "/s"
	}
	lines := []string{clip(fmt.Sprintf(" %s: %s in %s s of I/O, %s", op, volume(a.Bytes), number(a.IOTime), rate), w)}
	if strip := CriticalStrip(a.Critical, max(10, min(80, w-24))); strip != "" {
		lines = append(lines, clip(" "+strip, w))
	}
	for _, r := range a.Reasons {
		mark, look := "  ", ""
		if r.Cause {
			mark, look = "!!", s.Palette.bold
		}
		for i, l := range wrap(clean(r.Text), max(1, w-5)) {
			if i > 0 {
				mark = "  "
			}
			lines = append(lines, s.Palette.paint(look, clip(" "+mark+" "+l, w)))
		}
	}
	if len(a.Critical) == 0 {
		return append(lines, "")
	}
	wide := max(20, w-42)
	lines = append(lines, s.Palette.paint(s.Palette.bold,
		clip(" "+left("CRITICAL FILE", wide)+right("FROM s", 10)+right("EXCLUSIVE s", 13)+right("OF I/O TIME", 13), w)))
	longest := LongestCritical(a.Critical, criticalRows)
	for _, c := range longest {
		share := c.Exclusive / a.IOTime
		lines = append(lines, clip(" "+left(clean(c.Name), wide)+right(number(c.Start), 10)+right(number(c.Exclusive),
			13)+right(ratio(&share)+" %", 13), w))
	}
	if len(longest) < a.CriticalFiles {
		lines = append(lines, clip(fmt.Sprintf(" : the longest %d of %d critical files", len(longest), a.CriticalFiles),
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
	from, to := path[0].Start, path[len(path)-1].End
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
