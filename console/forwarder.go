package console

import (
	"errors"
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
	detail api.ForwarderDetail
	have   bool
	err    error
	asking bool
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

func newForwarderPage(id string) *forwarderPage { return &forwarderPage{id: topology.ForwarderID(id)} }

func (p *forwarderPage) name() string           { return onForwarder }
func (p *forwarderPage) address(*State) Address { return Address{Page: "forwarders", ID: string(p.id)} }

func (p *forwarderPage) refresh(s *State, ask *asker) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	if s.replay != nil {
		return ask.forwarderAt(p.id, s.replay.at)
	}
	return ask.forwarder(p.id)
}

func (p *forwarderPage) answer(s *State, _ *asker, msg tea.Msg) tea.Cmd {
	if c, ok := msg.(answer[anomaly.Canary]); ok {
		p.probed(s, c)
		return nil
	}
	a, ok := msg.(answer[api.ForwarderDetail])
	if !ok {
		p.judging.answer(s, msg)
		return nil
	}
	p.asking = false
	if p.err = a.req.Err; p.err == nil && a.value.ID == p.id {
		p.detail, p.have = a.value, true
	}
	return nil
}

func (p *forwarderPage) act(s *State, ask *asker, a action) tea.Cmd {
	switch a {
	case actCanary:
		return p.askCanary(s, ask)
	case actApprove:
		return p.approve(s)
	case actExclude:
		if why := p.refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		row := s.forwarder(p.id)
		if row == nil {
			s.Note = "refused: " + clean(string(p.id)) + " is not in the picture"
			return nil
		}
		p.withhold(ask, row)
	case actPropose:
		if p.client() < 0 {
			return s.open(ask, newProposePage(p.id, nil))
		}
		return s.open(ask, newProposePage(p.id, []topology.NodeID{p.cursor}))
	case actJobsHere, actStorage:
		want := map[action]panel{actJobsHere: panelJobs, actStorage: panelStorage}[a]
		if p.panel == want {
			want = panelClients
		}
		p.panel = want
	case actOpen, actWhy:
		return p.openChosen(s, ask, a)
	default:
		p.move(a)
	}
	return nil
}

// unask takes a question back when another key comes.
func (p *forwarderPage) unask(a action) {
	p.judging.unask(a)
	if a != p.asked.act {
		p.asked = question{}
	}
}

// client is the place of the chosen compute node; -1 while none is.
func (p *forwarderPage) client() int {
	return slices.IndexFunc(p.detail.ClientNodes, func(c api.ClientRow) bool { return c.ID == p.cursor })
}

// move moves the cursor of the list that has it.
func (p *forwarderPage) move(a action) {
	if steps[a] == 0 {
		return
	}
	switch p.panel {
	case panelJobs:
		rows, _ := p.jobsHere()
		if at := p.jobAt(rows); len(rows) > 0 {
			p.job, p.chose = rows[max(0, min(at+steps[a], len(rows)-1))].job, true
		}
	case panelStorage:
		p.target = max(0, min(p.target+steps[a], len(p.detail.Storage.Rows)-1))
	default:
		// Above the first client nobody is selected: p then moves all of them.
		clients := p.detail.ClientNodes
		if next := min(p.client()+steps[a], len(clients)-1); next < 0 {
			p.cursor = ""
		} else {
			p.cursor = clients[next].ID
		}
	}
}

// openChosen opens the job that is chosen, or says why: of a job its logs, else the open finding's
// evidence.
func (p *forwarderPage) openChosen(s *State, ask *asker, a action) tea.Cmd {
	job := topology.JobID("")
	if rows, _ := p.jobsHere(); p.panel == panelJobs && len(rows) > 0 {
		job = rows[p.jobAt(rows)].job
	} else if at := p.client(); p.panel == panelClients && at >= 0 {
		job = p.detail.ClientNodes[at].Job
	}
	switch {
	case job != "" && a == actWhy:
		return s.open(ask, newWhyPage(string(job)))
	case job != "":
		return s.open(ask, newJobPage(string(job)))
	case a == actOpen && p.panel == panelJobs && p.chose:
		s.Note = "what these nodes run is not known"
		return nil
	case a == actOpen:
		s.Note = "no job is chosen: " + s.key(actJobsHere) + " goes to the jobs here"
		return nil
	}
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Node == p.id.Node() {
			return s.open(ask, newFindingPage(f.ID))
		}
	}
	s.Note = "no finding is open here: nothing is known to be wrong; with a job chosen (" + s.key(actJobsHere) +
		") it is asked of the job"
	return nil
}

func (p *forwarderPage) title(s *State, _ int) string {
	title := " " + clean(string(p.id))
	r := s.forwarder(p.id)
	if r == nil {
		return title
	}
	title += "   " + strings.ToUpper(string(s.standing(r)))
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
	if nodes := p.detail.ClientNodes; len(nodes) > 0 {
		ids := make([]topology.NodeID, len(nodes))
		for i := range nodes {
			ids[i] = nodes[i].ID
		}
		title += ": " + clean(topology.FoldHostList(ids))
	}
	return title
}

func (p *forwarderPage) body(s *State, w, h int) []string {
	if !p.have {
		if p.err != nil {
			return s.failed(p.err, w)
		}
		return []string{"", " Asking for " + clean(string(p.id)) + "."}
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

// adviceFor says what to do about an error of a read.
func (s *State) adviceFor(err error) string {
	switch {
	case errors.Is(err, api.ErrNotFound):
		return "The server does not know it, or no longer; " + s.key(actGo) + " finds what it knows."
	case errors.Is(err, api.ErrNotAllowed):
		return "Ask an admin of the site for the viewer role, or sign in with --token-file."
	case errors.Is(err, api.ErrUnreachable):
		return "Asking again with the next second."
	}
	return s.key(actRequests) + " shows the requests that were sent."
}
