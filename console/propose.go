package console

import (
	"cmp"
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
	err    error
	asking bool
	cursor topology.ForwarderID
	order  []topology.ForwarderID // of the list, as it was first shown
	force  bool
	reason *input // while it is typed
	sent   bool
}

// newProposePage proposes for some clients of a forwarder; no nodes means all of them.
func newProposePage(from topology.ForwarderID, nodes []topology.NodeID) *proposePage {
	return &proposePage{from: from, nodes: nodes, all: len(nodes) == 0}
}

// newProposeJobPage proposes for those nodes of a job that use a forwarder.
func newProposeJobPage(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) *proposePage {
	return &proposePage{from: from, all: true, job: job, only: nodes}
}

func (p *proposePage) name() string           { return onPropose }
func (p *proposePage) address(*State) Address { return Address{Page: "forwarders", ID: string(p.from)} }
func (p *proposePage) field() *input          { return p.reason }

// refresh asks once for the clients; the proposal is about those on screen, even if more come.
func (p *proposePage) refresh(_ *State, ask *asker) tea.Cmd {
	if !p.all || len(p.nodes) > 0 || p.asking {
		return nil
	}
	p.asking = true
	return ask.forwarder(p.from)
}

func (p *proposePage) answer(s *State, ask *asker, msg tea.Msg) tea.Cmd {
	switch a := msg.(type) {
	case answer[api.ForwarderDetail]:
		p.asking = false
		if p.err = a.req.Err; p.err == nil && a.value.ID == p.from && len(p.nodes) == 0 {
			for _, c := range a.value.ClientNodes {
				if p.job == "" || slices.Contains(p.only, c.ID) {
					p.nodes = append(p.nodes, c.ID)
				}
			}
		}
	case answer[decided]:
		p.sent = false
		if a.req.Err != nil {
			s.Note = "refused: " + a.req.Err.Error()
			return nil
		}
		s.back(ask)
		return s.open(ask, newPlanPage(a.value.ID))
	}
	return nil
}

func (p *proposePage) act(s *State, _ *asker, a action) tea.Cmd {
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
		p.reason = &input{label: fmt.Sprintf("Why to %s (%d letters or more):", p.cursor, reasonLetters)}
	case steps[a] != 0 && len(targets) > 0:
		p.cursor = targets[max(0, min(max(at, 0)+steps[a], len(targets)-1))].ID
	}
	return nil
}

// typed sends the proposal. A proposal changes nothing: it waits for an approval.
func (p *proposePage) typed(s *State, ask *asker, ok bool) tea.Cmd {
	if !ok {
		p.reason = nil
		return nil
	}
	reason := strings.TrimSpace(p.reason.text)
	if n := len([]rune(reason)); n < reasonLetters {
		p.reason.label = fmt.Sprintf("Why to %s (%d of %d letters):", p.cursor, n, reasonLetters)
		return nil
	}
	p.reason, p.sent = nil, true
	return ask.propose(api.ManualRemap{Nodes: p.nodes, To: p.cursor, Reason: reason, Force: p.force})
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
	v := sum(r.ReadBytesPerSec, r.WriteBytesPerSec)
	switch {
	case v == nil:
		return 0
	case r.PeakBytesPerSec > 0:
		return *v / r.PeakBytesPerSec
	}
	return *v
}

func (p *proposePage) title(*State, int) string {
	return " propose a remap from " + clean(string(p.from))
}

func (p *proposePage) body(s *State, w, h int) []string {
	what := fmt.Sprintf(" %d compute nodes leave %s", len(p.nodes), clean(string(p.from))) // one is named below
	if p.job != "" {
		what = fmt.Sprintf(" %d compute nodes of job %s leave %s", len(p.nodes), clean(string(p.job)),
			clean(string(p.from)))
	}
	switch {
	case p.err != nil:
		return s.failed(p.err, w)
	case p.asking:
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
	cols := pick([]string{"node", "state", "occ", "read", "write", "queue", "mdwait", "clients"})
	if w < 66 {
		cols = pick(tinyColumns)
	}
	lines = append(lines, s.Palette.paint(s.Palette.bold, clip(heading(cols, sorting{}), w)))
	at := max(0, slices.IndexFunc(targets, func(r *api.ForwarderRow) bool { return r.ID == p.cursor }))
	return append(lines, s.scrolled(len(targets), at, w, h-len(lines), "",
		func(i int) string { return s.row(targets[i], cols) })...)
}
