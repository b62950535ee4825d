package forwarder

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
)

// Refuses says why an action is not possible here and now; the server decides again for itself.
func (p *Screen) Refuses(s *screen.State, a screen.Action) string {
	if a == screen.ActCanary && p.canaryOut {
		return "a canary is under way"
	}
	return screen.RefusesForwarder(s, a, s.Forwarder(p.id), p.detail.Value.Options)
}

// askCanary sends a canary once the question has been answered.
func (p *Screen) askCanary(s *screen.State) tea.Cmd {
	if why := p.Refuses(s, screen.ActCanary); why != "" {
		p.asked = screen.Question{}
		s.Note = "refused: " + why
		return nil
	}
	if !p.asked.Again(s, screen.ActCanary) {
		s.Note = fmt.Sprintf(
			"Send a canary through %s: one small write, read and stat. %s again does it, any other key does not.",
			chart.Clean(string(p.id)), s.Key(screen.ActCanary))
		return nil
	}
	p.canaryOut = true
	s.Note = "a canary is under way through " + chart.Clean(string(p.id))
	return screen.AskWithin(s, screen.CanaryTimeout, "canary through "+string(p.id), screen.With(s.Server.Canary, p.id))
}

// sent takes what a canary found.
func (p *Screen) sent(s *screen.State, a screen.Answer[anomaly.Canary]) {
	p.canaryOut = false
	switch c := a.Value; {
	case a.Err != nil:
		s.Note = "refused: " + chart.Clean(a.Err.Error())
	case c.Forwarder != p.id: // asked for on another forwarder's page
	case c.Error != "":
		p.detail.Value.Canary = &c
		s.Note = "the canary failed; its line says how"
	default:
		p.detail.Value.Canary = &c
		screen.Report(s, "the canary came back")
	}
}

// canary is what the newest one found, beside the median of the other forwarders.
func canary(s *screen.State, c *anomaly.Canary, w int) []string {
	if c == nil || s.Replays() {
		return nil
	}
	parts := []string{chart.Clock(c.At)}
	if c.By != "" {
		parts[0] += " by " + chart.Clean(c.By)
	}
	for _, one := range []struct {
		name        string
		took, peers *float64
	}{{"read", c.Took.Read, c.Peers.Read}, {"write", c.Took.Write, c.Peers.Write},
		{"stat", c.Took.Stat, c.Peers.Stat}} {
		parts = append(parts, fmt.Sprintf("%s %s ms%s", one.name, chart.Millis(one.took),
			peers(chart.Millis(one.peers))))
	}
	switch {
	case c.Error != "":
		parts = append(parts, "FAILED: "+chart.Clean(c.Error))
	case c.PeersOf == 0:
		parts = append(parts, "no other forwarder has had a canary yet")
	default:
		parts = append(parts, anomaly.Counted(c.PeersOf, "peer"))
	}
	return chart.LabelledItems("CANARY", parts, w)
}

func (p *Screen) Twin(s *screen.State, a screen.Action) string {
	id := chart.Clean(string(p.id))
	switch r := s.Forwarder(p.id); {
	case a == screen.ActCanary:
		return "fairway canary " + id
	case a == screen.ActExclude && r != nil && r.State == remap.ForwarderExcluded:
		return "fairway return " + id
	case a == screen.ActExclude:
		return "fairway drain " + id
	}
	return ""
}

// Hides leaves out what is refused.
func (p *Screen) Hides(s *screen.State, a screen.Action) bool { return p.Refuses(s, a) != "" }
