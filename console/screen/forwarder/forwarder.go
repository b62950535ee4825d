// Package forwarder shows one forwarder: its load against its peers, its clients, jobs and storage, its findings.
package forwarder

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// sparkSpan is the time a sparkline covers.
const sparkSpan = 5 * time.Minute

// Screen is one forwarder: its load against its peers, its clients, its findings.
type Screen struct {
	screen.Place
	screen.Judging
	id        topology.ForwarderID
	detail    screen.Load[api.ForwarderDetail]
	cursor    topology.NodeID
	asked     screen.Question
	canaryOut bool  // a canary is under way
	panel     panel // which list has the cursor
	job       topology.JobID
	// chose says that job was moved to: "" is then the row of the nodes without a job.
	chose  bool
	target int
	marked map[topology.NodeID]bool
}

// panel is a list of the page that can have the cursor.
type panel int

const (
	panelClients panel = iota
	panelJobs
	panelStorage
)

func New(a screen.Address) *Screen {
	id := topology.ForwarderID(a.ID)
	return &Screen{Place: screen.Place{On: screen.OnForwarder, At: screen.AtForwarder(id)}, id: id,
		marked: map[topology.NodeID]bool{}, detail: screen.Load[api.ForwarderDetail]{Again: screen.EverySecond}}
}

func (p *Screen) Refresh(s *screen.State) tea.Cmd {
	id, at := p.id, s.Past
	if p.detail.Asking() {
		return nil
	}
	call := "forwarder " + string(id)
	if s.Replays() {
		call += " at " + at.UTC().Format(time.RFC3339)
		p.detail.Expire()
	}
	return p.detail.Refresh(s, call,
		func(ctx context.Context) (api.ForwarderDetail, error) { return s.Server.ForwarderAt(ctx, id, at) })
}

func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	if c, ok := msg.(screen.Answer[anomaly.Canary]); ok {
		p.sent(s, c)
		return nil
	}
	p.detail.Take(msg)
	p.Judging.Answer(s, msg)
	return nil
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActCanary:
		return p.askCanary(s)
	case screen.ActApprove:
		return p.Approve(s, string(p.id))
	case screen.ActExclude:
		if why := p.Refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		row := s.Forwarder(p.id)
		if row == nil {
			s.Note = "refused: " + chart.Clean(string(p.id)) + " is not in the snapshot"
			return nil
		}
		p.Exclude(s, row)
	case screen.ActPropose:
		return s.Host.Propose(p.id, "", chosen(p))
	case screen.ActMark:
		if p.client() < 0 {
			s.Note = "no client is selected: the arrows select one"
			return nil
		}
		p.marked[p.cursor] = !p.marked[p.cursor]
		p.move(screen.ActDown)
	case screen.ActJobsHere, screen.ActStorage:
		want := map[screen.Action]panel{screen.ActJobsHere: panelJobs, screen.ActStorage: panelStorage}[a]
		if p.panel == want {
			want = panelClients
		}
		p.panel = want
	case screen.ActOpen, screen.ActWhy:
		return p.openChosen(s, a)
	default:
		p.move(a)
	}
	return nil
}

// Unask takes a question back when another key comes.
func (p *Screen) Unask(a screen.Action) {
	p.Judging.Unask(a)
	p.asked.Unask(a)
}

// chosen are the clients that are marked, else the selected one; none of them means all.
func chosen(p *Screen) (nodes []topology.NodeID) {
	for _, c := range p.detail.Value.ClientNodes {
		if p.marked[c.ID] {
			nodes = append(nodes, c.ID)
		}
	}
	if len(nodes) == 0 && p.client() >= 0 {
		nodes = []topology.NodeID{p.cursor}
	}
	return nodes
}

// client is the place of the chosen compute node; -1 while none is.
func (p *Screen) client() int {
	return slices.IndexFunc(p.detail.Value.ClientNodes, func(c api.ClientRow) bool { return c.ID == p.cursor })
}

// move moves the cursor of the list that has it.
func (p *Screen) move(a screen.Action) {
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

// openChosen opens the job that is chosen, or says why: of a job its logs, else the open finding's evidence.
func (p *Screen) openChosen(s *screen.State, a screen.Action) tea.Cmd {
	job := topology.JobID("")
	if rows, _ := p.jobsHere(); p.panel == panelJobs && len(rows) > 0 {
		job = rows[p.jobAt(rows)].job
	} else if at := p.client(); p.panel == panelClients && at >= 0 {
		job = p.detail.Value.ClientNodes[at].Job
	}
	switch {
	case job != "" && a == screen.ActWhy:
		return s.Host.Open(screen.AtJob(job, screen.PartWhy))
	case job != "":
		return s.Host.Open(screen.AtJob(job, ""))
	case a == screen.ActOpen && p.panel == panelJobs && p.chose:
		s.Note = "what these nodes run is not known"
		return nil
	case a == screen.ActOpen:
		s.Note = "no job is chosen: " + s.Key(screen.ActJobsHere) + " goes to the jobs here"
		return nil
	}
	for _, f := range screen.OpenFindings(s.Shown.Findings) {
		if f.Node == p.id.Node() {
			return s.Host.Open(screen.AtFinding(f.ID))
		}
	}
	s.Note = "no finding is open here: nothing is known to be wrong; with a job chosen (" + s.Key(screen.ActJobsHere) +
		") it is asked of the job"
	return nil
}

func (p *Screen) Title(s *screen.State, _ int) string {
	title := " " + chart.Clean(string(p.id))
	r := s.Forwarder(p.id)
	if r == nil {
		return title
	}
	title += "   " + strings.ToUpper(s.StandingText(r))
	switch {
	case r.State == remap.ForwarderStale && r.LastSeen.IsZero():
		title += ", never seen"
	case r.State == remap.ForwarderStale:
		title += " since " + chart.Clock(r.LastSeen)
	}
	if r.Rack != "" {
		title += "   rack " + chart.Clean(r.Rack)
	}
	title += "   serves " + screen.Serves(r)
	if nodes := p.detail.Value.ClientNodes; len(nodes) > 0 {
		ids := make([]topology.NodeID, len(nodes))
		for i := range nodes {
			ids[i] = nodes[i].ID
		}
		title += ": " + chart.Clean(topology.FoldHostList(ids))
	}
	return title
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	if !p.detail.Have {
		return p.detail.Missing(s, chart.Clean(string(p.id)), w)
	}
	lines := p.load(s, w)
	lines = append(lines, findings(s, p.id, w)...)
	if why := p.detail.Value.Drained; why != "" {
		lines = append(lines, chart.Paragraphs(w, "drained: "+chart.Clean(why))...)
	}
	lines = append(lines, life(s, p.detail.Value.Life, w)...)
	lines = append(lines, canary(s, p.detail.Value.Canary, w)...)
	lines = append(lines, s.Palette.Rule(w))
	room := h - len(lines)
	switch p.panel {
	case panelJobs:
		return append(lines, p.jobs(s, w, room, true)...)
	case panelStorage:
		return append(lines, p.storage(s, w, room, true)...)
	}
	lines = append(lines, p.behind(s, w, room)...)
	lines = append(lines, p.clients(s, w, h-len(lines))...)
	return append(lines, p.others(s, w, h-len(lines))...)
}
