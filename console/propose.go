package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// proposePage makes a manual remap: choose where the clients shall go, say why.
type proposePage struct {
	from   topology.ForwarderID
	nodes  []topology.NodeID // empty: all clients of from, once they are known
	all    bool
	job    topology.JobID // whose nodes are meant; "" is anybody's
	only   []topology.NodeID
	on     Load[api.ForwarderDetail]
	cursor topology.ForwarderID
	order  []topology.ForwarderID // of the list, as it was first shown
	force  bool
	reason *Input // while it is typed
	sent   bool
}

// newProposePage proposes for clients of a forwarder: those nodes, or those of a job, or all.
func newProposePage(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) *proposePage {
	p := &proposePage{from: from, job: job, all: job != "" || len(nodes) == 0}
	if job != "" {
		p.only = nodes
	} else {
		p.nodes = nodes
	}
	return p
}

func (p *proposePage) Name() string           { return onPropose }
func (p *proposePage) Address(*State) Address { return Address{Page: "forwarders", ID: string(p.from)} }
func (p *proposePage) Field() *Input          { return p.reason }

// refresh asks once for the clients; the proposal is about those on screen, even if more come.
func (p *proposePage) Refresh(s *State) tea.Cmd {
	if !p.all || len(p.nodes) > 0 || p.on.Asking() {
		return nil
	}
	p.on.Expire()
	return p.on.Refresh(s, "forwarder "+string(p.from),
		func(ctx context.Context) (api.ForwarderDetail, error) { return s.Server.Forwarder(ctx, p.from) })
}

func (p *proposePage) Answer(s *State, msg tea.Msg) tea.Cmd {
	if p.on.Take(msg) && len(p.nodes) == 0 {
		for _, c := range p.on.Value.ClientNodes {
			if p.job == "" || slices.Contains(p.only, c.ID) {
				p.nodes = append(p.nodes, c.ID)
			}
		}
	}
	if a, ok := msg.(Answer[decided]); ok {
		p.sent = false
		if a.Err != nil {
			s.Note = "refused: " + a.Err.Error()
			return nil
		}
		return s.Host.Replace(AtPlan(a.Value.ID))
	}
	return nil
}

func (p *proposePage) Act(s *State, a Action) tea.Cmd {
	targets := p.targets(s)
	at := slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor })
	switch {
	case a == actForce:
		p.force = !p.force
	case a == actOpen && !remap.Role(s.Shown.Role).Includes(remap.Operator):
		s.Note = fmt.Sprintf("refused: it needs the role operator; you are %s", orMissing(s.Shown.Role))
	case a == actOpen && len(targets) == 0:
		s.Note = "refused: no healthy forwarder to go to"
	case a == actOpen && len(p.nodes) == 0:
		s.Note = "refused: no compute node is seen to use " + string(p.from)
	case a == actOpen && p.sent:
		s.Note = "the proposal is under way"
	case a == actOpen:
		p.cursor = targets[max(at, 0)].ID
		p.reason = &Input{Label: fmt.Sprintf("Why to %s (%d letters or more):", p.cursor, remap.ReasonLetters)}
	case a.Step() != 0 && len(targets) > 0:
		p.cursor = targets[max(0, min(max(at, 0)+a.Step(), len(targets)-1))].ID
	}
	return nil
}

// typed sends the proposal. A proposal changes nothing: it waits for an approval.
func (p *proposePage) Typed(s *State, ok bool) tea.Cmd {
	if !ok {
		p.reason = nil
		return nil
	}
	reason := strings.TrimSpace(p.reason.Text)
	if n := len([]rune(reason)); n < remap.ReasonLetters {
		p.reason.Label = fmt.Sprintf("Why to %s (%d of %d letters):", p.cursor, n, remap.ReasonLetters)
		return nil
	}
	p.reason, p.sent = nil, true
	m := api.ManualRemap{Nodes: p.nodes, To: p.cursor, Reason: reason, Force: p.force}
	return decide(s, "propose remap to "+string(m.To),
		func(ctx context.Context) (api.PlanView, error) { return s.Server.Propose(ctx, m) })
}

// targets are the forwarders that clients can go to, in the order of their load when the list was
// first shown: a row must never change under a key that is already on its way.
func (p *proposePage) targets(s *State) []*api.ForwarderRow {
	var out []*api.ForwarderRow
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		if r.ID != p.from && (r.State == remap.ForwarderOK || r.State == remap.ForwarderIdle) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *api.ForwarderRow) int {
		return cmp.Or(cmp.Compare(p.place(a.ID), p.place(b.ID)), cmp.Compare(shareOfPeak(a), shareOfPeak(b)),
			cmp.Compare(a.ID, b.ID))
	})
	for _, r := range out {
		if !slices.Contains(p.order, r.ID) {
			p.order = append(p.order, r.ID)
		}
	}
	return out
}

// place is a forwarder's place in the list as first shown; newcomers stand behind it.
func (p *proposePage) place(id topology.ForwarderID) int {
	if i := slices.Index(p.order, id); i >= 0 {
		return i
	}
	return len(p.order)
}

// shareOfPeak is how much of its peak a forwarder moves now, or bytes/s where its peak is not known.
func shareOfPeak(r *api.ForwarderRow) float64 {
	v := Sum(r.ReadBytesPerSec, r.WriteBytesPerSec)
	switch {
	case v == nil:
		return 0
	case r.PeakBytesPerSec > 0:
		return *v / r.PeakBytesPerSec
	}
	return *v
}

func (p *proposePage) Title(*State, int) string {
	return " propose a remap from " + clean(string(p.from))
}

func (p *proposePage) Body(s *State, w, h int) []string {
	what := fmt.Sprintf(" %d compute nodes leave %s", len(p.nodes), clean(string(p.from))) // one is named below
	if p.job != "" {
		what = fmt.Sprintf(" %d compute nodes of job %s leave %s", len(p.nodes), clean(string(p.job)),
			clean(string(p.from)))
	}
	switch {
	case p.on.Err != nil:
		return s.Failed(p.on.Err, w)
	case p.on.Asking() && len(p.nodes) == 0:
		what = " Asking which compute nodes use " + clean(string(p.from)) + "."
	case len(p.nodes) == 1:
		what = " " + clean(string(p.nodes[0])) + " leaves " + clean(string(p.from))
	}
	mode := "drained: operations under way end first"
	if p.force {
		mode = "FORCED: operations under way are cut off and repeated; for a dead or hung forwarder"
	}
	lines := []string{clip(what+"; "+mode+" (f).", w),
		clip(" Choose where to. Nothing moves before the plan is approved.", w), ""}
	targets := p.targets(s)
	if len(targets) == 0 {
		return append(lines, clip(" No healthy forwarder is left to go to.", w))
	}
	cols := Pick(ForwarderColumns(s), "node", "state", "occ", "read", "write", "queue", "mdwait", "clients")
	if w < 66 {
		cols = Pick(cols, tinyForwarders...)
	}
	lines = append(lines, s.Bold(clip(Heading(cols, Sorting{}), w)))
	at := max(0, slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor }))
	return append(lines, Lines(s.Palette, len(targets), at, w, h-len(lines), "",
		func(i int) string { return ForwarderLine(s, targets[i], cols) })...)
}
