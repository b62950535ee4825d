package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// Proposal makes a manual remap: choose where the clients shall go, say why.
type Proposal struct {
	from   topology.ForwarderID
	nodes  []topology.NodeID // empty: all clients of from, once they are known
	all    bool
	job    topology.JobID // whose nodes are meant; "" is anybody's
	only   []topology.NodeID
	on     screen.Load[api.ForwarderDetail]
	cursor topology.ForwarderID
	order  []topology.ForwarderID // of the list, as it was first shown
	force  bool
	reason *screen.Input // while it is typed
	sent   bool
}

// NewProposal proposes for clients of a forwarder: those nodes, or those of a job, or all.
func NewProposal(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) *Proposal {
	p := &Proposal{from: from, job: job, all: job != "" || len(nodes) == 0}
	if job != "" {
		p.only = nodes
	} else {
		p.nodes = nodes
	}
	return p
}

func (p *Proposal) Name() string { return screen.OnPropose }
func (p *Proposal) Address(*screen.State) screen.Address {
	return screen.Address{Page: "forwarders", ID: string(p.from)}
}
func (p *Proposal) Field() *screen.Input { return p.reason }

// Refresh asks once for the clients; the proposal is about those on screen, even if more come.
func (p *Proposal) Refresh(s *screen.State) tea.Cmd {
	if !p.all || len(p.nodes) > 0 || p.on.Asking() {
		return nil
	}
	p.on.Expire()
	return p.on.Refresh(s, "forwarder "+string(p.from),
		func(ctx context.Context) (api.ForwarderDetail, error) { return s.Server.Forwarder(ctx, p.from) })
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
	return decide(s, "propose remap to "+string(m.To),
		func(ctx context.Context) (api.PlanView, error) { return s.Server.Propose(ctx, m) })
}

// targetStates are the standings of forwarders that a person may send clients to.
var targetStates = []remap.ForwarderState{remap.ForwarderOK, remap.ForwarderIdle, remap.ForwarderUnknown}

// targets are the forwarders that clients can go to, in the order of their load when the list was
// first shown, those that a waiting plan is about last: a row must never change under a key that is already on its way.
func (p *Proposal) targets(s *screen.State) []*api.ForwarderRow {
	var out []*api.ForwarderRow
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		if r.ID != p.from && slices.Contains(targetStates, r.State) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *api.ForwarderRow) int {
		return cmp.Or(cmp.Compare(p.place(a.ID), p.place(b.ID)), cmp.Compare(planned(a), planned(b)),
			cmp.Compare(shareOfPeak(a), shareOfPeak(b)), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range out {
		if !slices.Contains(p.order, r.ID) {
			p.order = append(p.order, r.ID)
		}
	}
	return out
}

// planned is 1 for a forwarder that a waiting plan sends nodes to or takes them from: what it moves will not stay.
func planned(r *api.ForwarderRow) int {
	if r.Plan != "" {
		return 1
	}
	return 0
}

// place is a forwarder's place in the list as first shown; newcomers stand behind it.
func (p *Proposal) place(id topology.ForwarderID) int {
	if i := slices.Index(p.order, id); i >= 0 {
		return i
	}
	return len(p.order)
}

// shareOfPeak is how much of its peak a forwarder moves now, or bytes/s where its peak is not known.
func shareOfPeak(r *api.ForwarderRow) float64 {
	v := screen.Sum(r.Value(collector.ReadBytes), r.Value(collector.WriteBytes), r.Value(collector.RoutedBytes))
	switch {
	case v == nil:
		return math.Inf(1)
	case r.PeakBytesPerSec > 0:
		return *v / r.PeakBytesPerSec
	}
	return *v
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
	lines := []string{chart.Clip(what+"; "+mode+" (f).", w),
		chart.Clip(" Choose where to. Nothing moves before the plan is approved.", w), ""}
	targets := p.targets(s)
	if len(targets) == 0 {
		return append(lines, chart.Clip(" No healthy forwarder is left to go to.", w))
	}
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
	at := max(0, slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor }))
	return append(lines, table.Lines(s.Palette, len(targets), at, w, h-len(lines), "",
		func(i int) string { return screen.ForwarderLine(s, targets[i], cols) })...)
}
