package plan

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// Proposal makes a manual remap: choose where the clients shall go, say why.
type Proposal struct {
	screen.Place
	from   topology.ForwarderID
	nodes  []topology.NodeID // empty: all clients of from, once they are known
	all    bool
	job    topology.JobID // whose nodes are meant; "" is anybody's
	only   []topology.NodeID
	on     screen.Load[api.ForwarderDetail]
	cursor topology.ForwarderID
	force  bool
	reason *screen.Input // while it is typed
	sent   bool
}

// NewProposal proposes for clients of a forwarder: those nodes, or those of a job, or all.
func NewProposal(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) *Proposal {
	p := &Proposal{Place: screen.Place{On: screen.OnPropose, At: screen.AtForwarder(from)}, from: from, job: job,
		all: job != "" || len(nodes) == 0}
	if job != "" {
		p.only = nodes
	} else {
		p.nodes = nodes
	}
	return p
}

func (p *Proposal) Field() *screen.Input { return p.reason }

// Refresh asks for the clients and for where they can go until there are some: the proposal is about those on screen,
// even if more come, and a row must never change under a key that is already on its way.
func (p *Proposal) Refresh(s *screen.State) tea.Cmd {
	known := len(p.on.Value.Targets) > 0 || !remap.Role(s.Shown.Role).Includes(remap.Operator)
	if p.on.Have && known && (!p.all || len(p.nodes) > 0) || p.on.Asking() {
		return nil
	}
	p.on.Expire()
	return p.on.Refresh(s, "forwarder "+string(p.from), screen.With(s.Server.Forwarder, p.from))
}

func (p *Proposal) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	if p.on.Take(msg) && len(p.nodes) == 0 {
		for _, c := range p.on.Value.ClientNodes {
			if p.job == "" || slices.Contains(p.only, c.ID) {
				p.nodes = append(p.nodes, c.ID)
			}
		}
	}
	if a, ok := msg.(screen.Answer[decided]); ok {
		p.sent = false
		if a.Err != nil {
			s.Note = "refused: " + a.Err.Error()
			return nil
		}
		return s.Host.Replace(screen.AtPlan(a.Value.ID))
	}
	return nil
}

func (p *Proposal) Act(s *screen.State, a screen.Action) tea.Cmd {
	targets := p.targets(s)
	at := slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor })
	switch {
	case a == screen.ActForce:
		p.force = !p.force
	case a == screen.ActOpen && !remap.Role(s.Shown.Role).Includes(remap.Operator):
		s.Note = fmt.Sprintf("refused: it needs the role operator; you are %s", chart.OrMissing(s.Shown.Role))
	case a == screen.ActOpen && len(targets) == 0:
		s.Note = "refused: no healthy forwarder to go to"
	case a == screen.ActOpen && len(p.nodes) == 0:
		s.Note = "refused: no compute node is seen to use " + string(p.from)
	case a == screen.ActOpen && p.sent:
		s.Note = "the proposal is under way"
	case a == screen.ActOpen:
		p.cursor = targets[max(at, 0)].ID
		p.reason = &screen.Input{Label: fmt.Sprintf("Why to %s (%d letters or more):", p.cursor, remap.ReasonLetters)}
		if c := screen.NeedOf(s, string(p.from)); c != nil && c.Finding != "" {
			p.reason.Text = advise.ReasonFor(c, nil)
		}
	case a.Step() != 0 && len(targets) > 0:
		p.cursor = targets[max(0, min(max(at, 0)+a.Step(), len(targets)-1))].ID
	}
	return nil
}

// Typed sends the proposal. A proposal changes nothing: it waits for an approval.
func (p *Proposal) Typed(s *screen.State, ok bool) tea.Cmd {
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
	return decide(s, "propose remap to "+string(m.To), screen.With(s.Server.Propose, m))
}

// targets are the rows of the forwarders that clients can go to, in the server's order, the best first.
func (p *Proposal) targets(s *screen.State) []*api.ForwarderRow {
	var out []*api.ForwarderRow
	for _, t := range p.on.Value.Targets {
		for i := range s.Shown.Forwarders {
			if r := &s.Shown.Forwarders[i]; r.ID == t.Forwarder {
				out = append(out, r)
			}
		}
	}
	return out
}

// why is why the chosen target stands where it does.
func (p *Proposal) why(chosen topology.ForwarderID) string {
	for _, t := range p.on.Value.Targets {
		if t.Forwarder == chosen {
			return fmt.Sprintf(" %s: %s.", chart.Clean(string(chosen)), chart.Clean(t.Why))
		}
	}
	return ""
}

func (p *Proposal) Title(*screen.State, int) string {
	return " propose a remap from " + chart.Clean(string(p.from))
}

func (p *Proposal) Body(s *screen.State, w, h int) []string {
	what := fmt.Sprintf(" %d compute nodes leave %s", len(p.nodes), chart.Clean(string(p.from))) // one is named below
	if p.job != "" {
		what = fmt.Sprintf(" %d compute nodes of job %s leave %s", len(p.nodes), chart.Clean(string(p.job)),
			chart.Clean(string(p.from)))
	}
	switch {
	case p.on.Err != nil:
		return s.Failed(p.on.Err, w)
	case p.on.Asking() && len(p.nodes) == 0:
		what = " Asking which compute nodes use " + chart.Clean(string(p.from)) + "."
	case len(p.nodes) == 1:
		what = " " + chart.Clean(string(p.nodes[0])) + " leaves " + chart.Clean(string(p.from))
	}
	mode := "drained: operations under way end first"
	if p.force {
		mode = "FORCED: operations under way are cut off and repeated; for a dead or hung forwarder"
	}
	lines := []string{chart.Clip(what+"; "+mode+" (f).", w)}
	if c := screen.NeedOf(s, string(p.from)); c != nil && c.Action != nil && c.Action.Name == remap.ActApprove {
		lines = append(lines, s.Bold(chart.Clip(fmt.Sprintf(" %s waits already: %s.", chart.Clean(c.Plan),
			chart.Clean(c.Action.Text)), w)))
	}
	targets := p.targets(s)
	switch {
	case len(targets) == 0 && !p.on.Have:
		return append(lines, chart.Clip(" Asking where they can go.", w))
	case len(targets) == 0:
		return append(lines, chart.Clip(" No healthy forwarder is left to go to.", w))
	}
	at := max(0, slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor }))
	lines = append(lines, chart.Clip(p.why(targets[at].ID)+" Nothing moves yet.", w), "")
	cols := table.Pick(screen.ForwarderColumns(s), "node", "state", "occ", "read", "write", "queue", "mdwait",
		"clients")
	if w < 66 {
		cols = table.Pick(cols, screen.TinyForwarders...)
	}
	if slices.ContainsFunc(targets, func(r *api.ForwarderRow) bool { return r.Plan != "" }) {
		cols = append(cols, table.Column[api.ForwarderRow]{Name: "plan", Title: "  PLAN", Width: 12,
			Text: func(r *api.ForwarderRow) string { return "  " + chart.Clean(r.Plan) }})
	}
	lines = append(lines, s.Bold(chart.Clip("  "+table.Heading(cols, table.Sorting{}), w)))
	return append(lines, table.Lines(s.Palette, len(targets), at, w, h-len(lines), "",
		func(i int) string { return screen.ForwarderLine(s, targets[i], cols) })...)
}
