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
	"fairway/remap"
	"fairway/webui/api"
)

// sparkSpan is the time a sparkline covers.
const sparkSpan = 5 * time.Minute

// forwarderPage is one forwarder: its load against its peers, its clients, its findings.
type forwarderPage struct {
	judging
	id     topology.ForwarderID
	detail Load[api.ForwarderDetail]
	cursor topology.NodeID
	asked  question
	probe  bool  // a canary is under way
	panel  panel // which list has the cursor
	job    topology.JobID
	// chose says that job was moved to: "" is then the row of the nodes without a job.
	chose  bool
	target int
}

// panel is a list of the page that can have the cursor.
type panel int

const (
	panelClients panel = iota
	panelJobs
	panelStorage
)

func newForwarderPage(id string) *forwarderPage {
	return &forwarderPage{id: topology.ForwarderID(id), detail: Load[api.ForwarderDetail]{Again: EverySecond}}
}

func (p *forwarderPage) Name() string           { return onForwarder }
func (p *forwarderPage) Address(*State) Address { return Address{Page: "forwarders", ID: string(p.id)} }

func (p *forwarderPage) Refresh(s *State) tea.Cmd {
	id, at := p.id, s.Past
	if p.detail.Asking() {
		return nil
	}
	if !s.Replays() {
		return p.detail.Refresh(s, "forwarder "+string(id),
			func(ctx context.Context) (api.ForwarderDetail, error) { return s.Server.Forwarder(ctx, id) })
	}
	p.detail.Expire()
	return p.detail.Refresh(s, "forwarder "+string(id)+" at "+at.UTC().Format(time.RFC3339),
		func(ctx context.Context) (api.ForwarderDetail, error) { return s.Server.ForwarderAt(ctx, id, at) })
}

func (p *forwarderPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	if c, ok := msg.(Answer[anomaly.Canary]); ok {
		p.probed(s, c)
		return nil
	}
	p.detail.Take(msg)
	p.judging.Answer(s, msg)
	return nil
}

func (p *forwarderPage) Act(s *State, a Action) tea.Cmd {
	switch a {
	case actCanary:
		return p.askCanary(s)
	case actApprove:
		return p.approve(s)
	case actExclude:
		if why := p.Refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		row := s.Forwarder(p.id)
		if row == nil {
			s.Note = "refused: " + clean(string(p.id)) + " is not in the snapshot"
			return nil
		}
		p.withhold(s, row)
	case actPropose:
		if p.client() < 0 {
			return s.Host.Propose(p.id, "", nil)
		}
		return s.Host.Propose(p.id, "", []topology.NodeID{p.cursor})
	case actJobsHere, actStorage:
		want := map[Action]panel{actJobsHere: panelJobs, actStorage: panelStorage}[a]
		if p.panel == want {
			want = panelClients
		}
		p.panel = want
	case actOpen, actWhy:
		return p.openChosen(s, a)
	default:
		p.move(a)
	}
	return nil
}

// unask takes a question back when another key comes.
func (p *forwarderPage) Unask(a Action) {
	p.judging.Unask(a)
	p.asked.Unask(a)
}

// client is the place of the chosen compute node; -1 while none is.
func (p *forwarderPage) client() int {
	return slices.IndexFunc(p.detail.Value.ClientNodes, func(c api.ClientRow) bool { return c.ID == p.cursor })
}

// move moves the cursor of the list that has it.
func (p *forwarderPage) move(a Action) {
	if a.Step() == 0 {
		return
	}
	switch p.panel {
	case panelJobs:
		rows, _ := p.jobsHere()
		if at := p.jobAt(rows); len(rows) > 0 {
			p.job, p.chose = rows[max(0, min(at+a.Step(), len(rows)-1))].job, true
		}
	case panelStorage:
		p.target = max(0, min(p.target+a.Step(), len(p.detail.Value.Storage.Rows)-1))
	default:
		// Above the first client nobody is selected: p then moves all of them.
		clients := p.detail.Value.ClientNodes
		if next := min(p.client()+a.Step(), len(clients)-1); next < 0 {
			p.cursor = ""
		} else {
			p.cursor = clients[next].ID
		}
	}
}

// openChosen opens the job that is chosen, or says why: of a job its logs, else the open finding's
// evidence.
func (p *forwarderPage) openChosen(s *State, a Action) tea.Cmd {
	job := topology.JobID("")
	if rows, _ := p.jobsHere(); p.panel == panelJobs && len(rows) > 0 {
		job = rows[p.jobAt(rows)].job
	} else if at := p.client(); p.panel == panelClients && at >= 0 {
		job = p.detail.Value.ClientNodes[at].Job
	}
	switch {
	case job != "" && a == actWhy:
		return s.Host.Open(AtJob(job, partWhy))
	case job != "":
		return s.Host.Open(AtJob(job, ""))
	case a == actOpen && p.panel == panelJobs && p.chose:
		s.Note = "what these nodes run is not known"
		return nil
	case a == actOpen:
		s.Note = "no job is chosen: " + s.Key(actJobsHere) + " goes to the jobs here"
		return nil
	}
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Node == p.id.Node() {
			return s.Host.Open(AtFinding(f.ID))
		}
	}
	s.Note = "no finding is open here: nothing is known to be wrong; with a job chosen (" + s.Key(actJobsHere) +
		") it is asked of the job"
	return nil
}

func (p *forwarderPage) Title(s *State, _ int) string {
	title := " " + clean(string(p.id))
	r := s.Forwarder(p.id)
	if r == nil {
		return title
	}
	title += "   " + strings.ToUpper(string(s.Standing(r)))
	switch {
	case r.State == remap.ForwarderStale && r.LastSeen.IsZero():
		title += ", never seen"
	case r.State == remap.ForwarderStale:
		title += " since " + clock(r.LastSeen)
	}
	if r.Rack != "" {
		title += "   rack " + clean(r.Rack)
	}
	title += fmt.Sprintf("   serves %s", api.Counted(r.Clients, "compute node"))
	if nodes := p.detail.Value.ClientNodes; len(nodes) > 0 {
		ids := make([]topology.NodeID, len(nodes))
		for i := range nodes {
			ids[i] = nodes[i].ID
		}
		title += ": " + clean(topology.FoldHostList(ids))
	}
	return title
}

func (p *forwarderPage) Body(s *State, w, h int) []string {
	if !p.detail.Have {
		return p.detail.Missing(s, clean(string(p.id)), w)
	}
	lines := p.load(s, w)
	lines = append(lines, p.findings(s, w)...)
	lines = append(lines, p.life(s, w)...)
	lines = append(lines, p.canary(s, w)...)
	lines = append(lines, rule(w))
	room := h - len(lines)
	switch p.panel {
	case panelJobs:
		return append(lines, p.jobs(s, w, room, true)...)
	case panelStorage:
		return append(lines, p.storage(s, w, room, true)...)
	}
	lines = append(lines, p.behind(s, w, room)...)
	return append(lines, p.clients(s, w, h-len(lines))...)
}
