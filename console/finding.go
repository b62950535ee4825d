package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// findingPage is one finding: its sentence, its life, whom it hits, and the evidence as it was
// when it last changed.
type findingPage struct {
	judging
	id   string
	view Load[api.FindingView]
	top  int // first line shown
}

func newFindingPage(id string) *findingPage { return &findingPage{id: id} }

func (p *findingPage) Name() string           { return onFinding }
func (p *findingPage) Address(*State) Address { return Address{Page: "findings", ID: p.id} }

// refresh asks for the life again when the finding has changed since, and now and then.
func (p *findingPage) Refresh(s *State) tea.Cmd {
	if f := p.shown(s); p.view.Have && !p.view.Asking() && f != nil && !f.Changed.Equal(p.view.Value.Changed) {
		p.view.Expire()
	}
	return p.view.Refresh(s, "finding "+p.id,
		func(ctx context.Context) (api.FindingView, error) { return s.Server.Finding(ctx, p.id) })
}

// shown is the finding in the shown second; nil once it has left the list.
func (p *findingPage) shown(s *State) *anomaly.Finding {
	i := slices.IndexFunc(s.Shown.Findings, func(f anomaly.Finding) bool { return f.ID == p.id })
	if i < 0 {
		return nil
	}
	return &s.Shown.Findings[i]
}

func (p *findingPage) newest(s *State) *anomaly.Finding {
	if f := p.shown(s); f != nil && !f.Changed.Before(p.view.Value.Changed) {
		return f
	}
	return &p.view.Value.Finding
}

func (p *findingPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.view.Take(msg)
	p.judging.Answer(s, msg)
	if _, ok := msg.(Answer[judged]); ok {
		p.view.Expire()
		return p.Refresh(s)
	}
	return nil
}

func (p *findingPage) Act(s *State, a Action) tea.Cmd {
	f := p.newest(s)
	if f.ID == "" {
		s.Note = "the finding is not known yet"
		return nil
	}
	if a.Step() != 0 {
		p.top += a.Step() // kept in range where it is drawn
		return nil
	}
	if a == actOpen {
		if s.Forwarder(topology.ForwarderID(f.Node)) == nil {
			s.Note = subject(f.Node) + " has no page"
			return nil
		}
		return s.Host.Open(AtForwarder(topology.ForwarderID(f.Node)))
	}
	return p.judge(s, a, f)
}

func (p *findingPage) Title(s *State, _ int) string {
	f := p.newest(s)
	if f.ID == "" {
		return " finding " + clean(p.id)
	}
	title := fmt.Sprintf(" %s   %s   %s   ", clean(f.ID), subject(f.Node), findingTitle(f))
	if f.Open() && f.Silent(s.Now) {
		return title + "SILENT for another " + age(f.Silenced.Sub(s.Now))
	}
	return title + fmt.Sprintf("%s for %s", strings.ToUpper(stateWords(f)), age(s.AsOf().Sub(f.Changed)))
}

func (p *findingPage) Body(s *State, w, h int) []string {
	if !p.view.Have {
		return p.view.MissingOf(s, clean(p.id), actFindings, w)
	}
	f := p.newest(s)
	lines := append([]string{""}, paragraphs(w, clean(f.Sentence))...)
	lines = append(lines, "", clip(fmt.Sprintf(" confidence %.2f   score %.2g   model %s   since %s", f.Confidence,
		f.Score, orMissing(f.Model), clock(f.Since)), w))
	for _, i := range f.Impact {
		lines = append(lines, clip(fmt.Sprintf(" job %s waits here for %s of its nodes' time", clean(string(i.Job)),
			estimatedShare(i.Share)), w))
	}
	if f.Open() && f.Silent(s.Now) {
		lines = append(lines,
			paragraphs(w, fmt.Sprintf("silent until %s: it calls nobody, unless it is confirmed or excluded before",
				moment(f.Silenced, s.Now)))...)
	}
	if f.Held != "" {
		lines = append(lines, paragraphs(w, "not excluded: "+clean(f.Held))...)
	}
	if next := NextCommand(f); next != "" {
		for _, l := range paragraphs(w, "next: "+nextKey(s, f)+"   or "+next) {
			lines = append(lines, s.Bold(l))
		}
	}
	lines = append(lines, rule(w))
	lines = append(lines, p.life(s, w)...)
	lines = append(lines, rule(w))
	return Scroll(append(lines, p.evidence(w)...), &p.top, h)
}

// life are the newest changes.
func (p *findingPage) life(_ *State, w int) []string {
	const shown = 8
	changes := p.view.Value.Changes
	var lines []string
	if over := len(changes) - shown; over > 0 {
		lines = append(lines, clip(fmt.Sprintf(" : %s; fairway findings %s shows all", api.Counted(over, "earlier change"),
			clean(p.id)), w))
		changes = changes[over:]
	}
	for i := range changes {
		c := &changes[i]
		by := "tracker"
		if c.By != "" {
			by = clean(c.By)
		}
		lines = append(lines, clip(" "+left(clock(c.At), 10)+left(stateWords(&c.Finding), 12)+left(by, 12)+clean(c.Why),
			w))
	}
	return lines
}

// evidence draws the newest frozen series, with the peers' median beside them.
func (p *findingPage) evidence(w int) []string {
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
		missing = []string{clip(" EVIDENCE missing: the store did not answer in time for "+strings.Join(missing, ", "), w)}
	}
	if frozen == nil {
		return missing
	}
	lines := []string{clip(fmt.Sprintf(" EVIDENCE as it was at %s: the two minutes before, and the peers' median",
		clock(at)), w)}
	names := make([]string, 0, len(frozen.Series))
	for n := range frozen.Series {
		names = append(names, n)
	}
	slices.Sort(names)
	tails, widest := map[string]string{}, 0
	for _, n := range names {
		series := frozen.Series[n]
		tails[n] = "  then " + quantity(n, series[len(series)-1].Value)
		if peer, ok := frozen.Peers[n]; ok {
			tails[n] += ", peers " + quantity(n, peer)
		}
		widest = max(widest, len(tails[n]))
	}
	for _, n := range names {
		points := make([]api.Point, 0, len(frozen.Series[n]))
		for _, v := range frozen.Series[n] {
			points = append(points, api.Point(v))
		}
		top := 0.0
		for _, v := range points {
			top = max(top, v.Value)
		}
		head := " " + left(n, 12)
		lines = append(lines, clip(head+sparkline(points, at, 2*time.Minute, top,
			max(1, min(60, w-1-len(head)-widest)))+tails[n], w))
	}
	return append(lines, missing...)
}

// quantity writes a value in the unit that its metric's name tells.
func quantity(metric string, v float64) string {
	switch {
	case strings.HasSuffix(metric, "_bytes"):
		return mega(&v) + " MB/s"
	case strings.HasSuffix(metric, "_ops"):
		return count(&v) + "/s"
	case strings.HasSuffix(metric, "_exec"), strings.HasSuffix(metric, "_wait"), strings.HasSuffix(metric, "_time"),
		strings.HasPrefix(metric, "probe_"):
		return millis(&v) + " ms"
	}
	return number(v)
}

func (p *findingPage) Twin(s *State, a Action) string { return findingTwin(p.newest(s), a) }

// findingTwin is the command of what both pages of findings do.
func findingTwin(f *anomaly.Finding, a Action) string {
	if verb := map[Action]string{actAck: "ack", actDismiss: "dismiss", actSilence: "silence"}[a]; verb != "" &&
		f != nil {
		return "fairway findings " + verb + " " + clean(f.ID)
	}
	return ""
}
