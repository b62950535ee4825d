// Package finding shows what is wrong: the list of findings, and one with its evidence.
package finding

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/incident"
)

// Screen is one finding: its sentence, its life, whom it hits, and the evidence as it was
// when it last changed.
type Screen struct {
	screen.Place
	screen.Judging
	id   string
	view screen.Load[api.FindingView]
	inc  screen.Load[*incident.Incident]
	top  int // first line shown
}

func New(a screen.Address) *Screen {
	return &Screen{Place: screen.Place{On: screen.OnFinding, At: screen.AtFinding(a.ID)}, id: a.ID}
}

// Refresh asks for the life again when the finding has changed since, and now and then.
func (p *Screen) Refresh(s *screen.State) tea.Cmd {
	if f := p.shown(s); p.view.Have && !p.view.Asking() && f != nil && !f.Changed.Equal(p.view.Value.Changed) {
		p.view.Expire()
	}
	p.inc.Again = again
	return tea.Batch(p.view.Refresh(s, "finding "+p.id, screen.With(s.Server.Finding, p.id)),
		p.inc.Refresh(s, "what belongs to finding "+p.id,
			func(ctx context.Context) (*incident.Incident, error) { return s.Server.Incident(ctx, p.id, false) }))
}

// again is how often the series around the finding are read.
const again = 5 * time.Second

// shown is the finding in the shown second; nil once it has left the list.
func (p *Screen) shown(s *screen.State) *anomaly.Finding {
	i := slices.IndexFunc(s.Shown.Findings, func(f anomaly.Finding) bool { return f.ID == p.id })
	if i < 0 {
		return nil
	}
	return &s.Shown.Findings[i]
}

func (p *Screen) newest(s *screen.State) *anomaly.Finding {
	if f := p.shown(s); f != nil && !f.Changed.Before(p.view.Value.Changed) {
		return f
	}
	return &p.view.Value.Finding
}

func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	p.view.Take(msg)
	p.inc.Take(msg)
	p.Judging.Answer(s, msg)
	if _, ok := msg.(screen.Answer[screen.Judged]); ok {
		p.view.Expire()
		return p.Refresh(s)
	}
	return nil
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	f := p.newest(s)
	if f.ID == "" {
		s.Note = "the finding is not known yet"
		return nil
	}
	if a.Step() != 0 {
		p.top += a.Step() // kept in range where it is drawn
		return nil
	}
	if a == screen.ActOpen {
		if s.Forwarder(topology.ForwarderID(f.Node)) == nil {
			s.Note = screen.Subject(f.Node) + " has no page"
			return nil
		}
		return s.Host.Open(screen.AtForwarder(topology.ForwarderID(f.Node)))
	}
	return p.Judge(s, a, f, p.sent())
}

func (p *Screen) Title(s *screen.State, w int) string {
	f := p.newest(s)
	if f.ID == "" {
		return " finding " + chart.Clean(p.id)
	}
	title := fmt.Sprintf(" %s   %s   %s   ", chart.Clean(f.ID), screen.Subject(f.Node), screen.FindingTitle(f))
	state, long := strings.ToUpper(screen.StateWords(f)), " for "+chart.Age(s.AsOf().Sub(f.Changed))
	if f.Open() && f.Silent(s.Now) {
		state, long = "SILENT", " for another "+chart.Age(f.Silenced.Sub(s.Now))
	}
	if ansi.StringWidth(title+state+long) > s.TitleRoom(w)+len("   ") { // its gaps may get narrow
		return title + state
	}
	return title + state + long
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	if !p.view.Have {
		return p.view.MissingOf(s, chart.Clean(p.id), screen.ActFindings, w)
	}
	f := p.newest(s)
	lines := append([]string{""}, chart.Paragraphs(w, chart.Clean(f.Sentence))...)
	lines = append(lines, "", chart.Clip(fmt.Sprintf(" confidence %.2f   since %s", f.Confidence, chart.Clock(f.Since)),
		w))
	lines = append(lines, p.victims(w)...)
	if t := p.view.Value.Shared; t != nil {
		lines = append(lines, screen.SharedLines([]api.SharedTarget{*t}, w)...)
	}
	if f.Open() && f.Silent(s.Now) {
		lines = append(lines,
			chart.Paragraphs(w,
				fmt.Sprintf("silent until %s: it does not alert, unless it is confirmed or excluded before",
					chart.Moment(f.Silenced, s.Now)))...)
	}
	if f.Held != "" {
		lines = append(lines, chart.Paragraphs(w, "still in use: "+chart.Clean(f.Held))...)
	}
	if n := screen.NeedOf(s, f.ID); n != nil && n.Plan != "" {
		lines = append(lines, s.Bold(chart.Clip(" next: "+screen.Helps(s, n), w)))
	} else if next := screen.NextCommand(f); next != "" {
		lines = append(lines, screen.BoldLines(s, chart.Paragraphs(w, "next: "+screen.NextKey(s, f)+"   or "+next))...)
	}
	lines = append(lines, s.Palette.Rule(w))
	lines = append(lines, p.life(s, w)...)
	lines = append(lines, s.Palette.Rule(w))
	if inc := p.inc.Value; p.inc.Have && len(inc.Series.Charts) > 0 {
		return table.Scroll(append(lines, beside(s, inc, w)...), &p.top, h)
	}
	return table.Scroll(append(lines, p.evidence(s, w)...), &p.top, h)
}

// life are the newest changes.
func (p *Screen) life(_ *screen.State, w int) []string {
	const shown = 8
	changes := p.view.Value.Changes
	var lines []string
	if over := len(changes) - shown; over > 0 {
		lines = append(lines, chart.Clip(fmt.Sprintf(" : %s; fairway findings %s shows all",
			anomaly.Counted(over, "earlier change"),
			chart.Clean(p.id)), w))
		changes = changes[over:]
	}
	for i := range changes {
		c := &changes[i]
		by := "detectors"
		if c.By != "" {
			by = chart.Clean(c.By)
		}
		state, why := screen.StateWords(&c.Finding), chart.Clean(c.Why)
		if !c.Noted.IsZero() {
			state = "note"
		}
		if c.At.Sub(c.Noted) > time.Second && state == "note" {
			why = "of " + chart.Clock(c.Noted) + ", " + why
		}
		lines = append(lines, chart.Clip(" "+chart.Left(chart.Clock(c.At), 10)+chart.Left(state, 12)+chart.Left(by, 12)+
			why, w))
	}
	return lines
}

// evidence draws the newest frozen series, with the peers' median beside them.
func (p *Screen) evidence(s *screen.State, w int) []string {
	var frozen *anomaly.Frozen
	var at time.Time
	var missing []string
	for i := range p.view.Value.Changes {
		c := &p.view.Value.Changes[i]
		missing = nil
		if c.Frozen != nil {
			missing = c.Frozen.Missing
		}
		if c.Frozen != nil && len(c.Frozen.Series) > 0 {
			frozen, at = c.Frozen, c.At
		}
	}
	if len(missing) > 0 {
		missing = []string{chart.Clip(" EVIDENCE missing: the store did not answer in time for "+
			strings.Join(missing, ", "), w)}
	}
	if frozen == nil {
		return missing
	}
	lines := []string{chart.Clip(fmt.Sprintf(" EVIDENCE as it was at %s: the two minutes before, and the peers' median",
		chart.Clock(at)), w)}
	names := slices.Sorted(maps.Keys(frozen.Series))
	labels, tails, labelled, widest := map[string]string{}, map[string]string{}, 12, 0
	for _, n := range names {
		series := frozen.Series[n]
		label, then := quantity(n, series[len(series)-1].Value)
		labels[n], tails[n] = label, "  then "+then
		labelled = max(labelled, len(label)+1)
		if peer, ok := frozen.Peers[n]; ok {
			_, text := quantity(n, peer)
			tails[n] += ", peers " + text
		}
		widest = max(widest, len(tails[n]))
	}
	for _, n := range names {
		top := 0.0
		for _, v := range frozen.Series[n] {
			top = max(top, v.Value)
		}
		head := " " + chart.Left(labels[n], labelled)
		lines = append(lines, chart.Clip(head+s.Palette.Sparkline(frozen.Series[n], at, 2*time.Minute, top,
			max(1, min(60, w-1-len(head)-widest)))+tails[n], w))
	}
	return append(lines, missing...)
}

// quantity writes a value as the catalogue says: its label, and the value in the unit of screens.
func quantity(metric string, v float64) (label, text string) {
	m, ok := collector.ParseMetric(metric)
	if !ok { // of a newer server
		return chart.Clean(metric), chart.Number(v)
	}
	info := m.Info()
	return info.Label, strings.TrimSpace(chart.Metric(m, &v) + " " + info.Unit.Info().Shown)
}

func (p *Screen) Twin(s *screen.State, a screen.Action) string { return findingTwin(p.newest(s), a) }

// findingTwin is the command of what both pages of findings do.
func findingTwin(f *anomaly.Finding, a screen.Action) string {
	if verb := map[screen.Action]string{screen.ActAck: "ack", screen.ActDismiss: "dismiss",
		screen.ActSilence: "silence"}[a]; verb != "" &&
		f != nil {
		return "fairway findings " + verb + " " + chart.Clean(f.ID)
	}
	return ""
}

// Refuses says why something cannot be done with the finding now.
func (p *Screen) Refuses(s *screen.State, a screen.Action) string {
	return p.Judging.Refuses(s, a, p.newest(s), p.sent())
}

// sent is what the server sent as possible with the finding, nil before it came.
func (p *Screen) sent() *remap.Options {
	if o := &p.view.Value.Options; o.Can != nil || o.WhyNot != nil {
		return o
	}
	return nil
}

// Hides leaves out what is refused.
func (p *Screen) Hides(s *screen.State, a screen.Action) bool { return p.Refuses(s, a) != "" }
