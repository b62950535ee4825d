package console

import (
	"context"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/webui/api"
)

// refuses says why an action is not possible here and now; the server decides again for itself.
func (p *forwarderPage) Refuses(s *State, a Action) string {
	switch {
	case a != actCanary:
		return p.judging.Refuses(s, a)
	case s.Replays():
		return "actions are off in a replay"
	case s.Stale():
		return s.TooOld()
	case !remap.Role(s.Shown.Role).Includes(remap.Operator):
		return fmt.Sprintf("a canary needs the role operator; you are %s", orMissing(s.Shown.Role))
	case p.probe:
		return "a canary is under way"
	}
	return ""
}

// askCanary sends a canary once the question has been answered.
func (p *forwarderPage) askCanary(s *State) tea.Cmd {
	if why := p.Refuses(s, actCanary); why != "" {
		p.asked = question{}
		s.Note = "refused: " + why
		return nil
	}
	if !p.asked.again(s, actCanary) {
		s.Note = fmt.Sprintf(
			"Send a canary through %s: one small write, read and stat. %s again does it, any other key does not.",
			clean(string(p.id)), s.Key(actCanary))
		return nil
	}
	p.probe = true
	s.Note = "a canary is under way through " + clean(string(p.id))
	id := p.id
	return AskWithin(s, canaryTimeout, "canary through "+string(id),
		func(ctx context.Context) (anomaly.Canary, error) { return s.Server.Canary(ctx, id) })
}

// probed takes what a canary found.
func (p *forwarderPage) probed(s *State, a Answer[anomaly.Canary]) {
	p.probe = false
	switch c := a.Value; {
	case a.Err != nil:
		s.Note = "refused: " + clean(a.Err.Error())
	case c.Forwarder != p.id: // asked for on another forwarder's page
	case c.Error != "":
		p.detail.Value.Canary = &c
		s.Note = "the canary failed; its line says how"
	default:
		p.detail.Value.Canary = &c
		s.Note = "the canary came back"
	}
}

// canary is what the newest one found, beside the middle of the other forwarders'.
func (p *forwarderPage) canary(s *State, w int) []string {
	c := p.detail.Value.Canary
	if c == nil || s.Replays() {
		return nil
	}
	parts := []string{clock(c.At)}
	if c.By != "" {
		parts[0] += " by " + clean(c.By)
	}
	for _, one := range []struct {
		name        string
		took, peers *float64
	}{{"read", c.Took.Read, c.Peers.Read}, {"write", c.Took.Write, c.Peers.Write},
		{"stat", c.Took.Stat, c.Peers.Stat}} {
		parts = append(parts, fmt.Sprintf("%s %s ms%s", one.name, millis(one.took), peers(millis(one.peers))))
	}
	switch {
	case c.Error != "":
		parts = append(parts, "FAILED: "+clean(c.Error))
	case c.PeersOf == 0:
		parts = append(parts, "no other forwarder was probed yet")
	default:
		parts = append(parts, api.Counted(c.PeersOf, "peer"))
	}
	return labelledLines("CANARY", wrapItems(parts, max(1, w-12)), w)
}

func (p *forwarderPage) Twin(s *State, a Action) string {
	id := clean(string(p.id))
	switch r := s.Forwarder(p.id); {
	case a == actCanary:
		return "fairway canary " + id
	case a == actExclude && r != nil && r.State == api.StateExcluded:
		return "fairway return " + id
	case a == actExclude:
		return "fairway exclude " + id
	}
	return ""
}

// Hides leaves out what is refused.
func (p *forwarderPage) Hides(s *State, a Action) bool { return p.Refuses(s, a) != "" }
