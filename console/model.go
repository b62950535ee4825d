// Package console is the terminal face: a bubbletea model over screens, which show the values of webui/api and
// ask webui/client.
package console

import (
	"context"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/screen/audit"
	"fairway/console/screen/finding"
	"fairway/console/screen/forwarder"
	"fairway/console/screen/job"
	"fairway/console/screen/overview"
	"fairway/console/screen/plan"
	"fairway/console/screen/replay"
	"fairway/console/screen/whatif"
	"fairway/webui/api"
	"fairway/webui/client"
)

// Messages of the watch and of the clock.
type (
	overviewMsg struct {
		overview api.Overview
		err      error
		at       time.Time
	}
	tickMsg struct{ at time.Time }
)

// OverviewMsg gives the model a new overview, or the reason why none came, at a time of its own clock.
func OverviewMsg(o api.Overview, err error, at time.Time) tea.Msg { return overviewMsg{o, err, at} }

// maxRequests is how many requests the log keeps.
const maxRequests = 200

// Model is the root: it routes messages to the top screen and keeps what all screens share.
type Model struct {
	state    *screen.State
	overview *overview.Screen
	screens  []screen.Screen // the last one is shown
	keys     *Keys
	replay   replay.Replay
	// first is the second of the past that the address named, to be shown once there is a newest one.
	first      time.Time
	firstSpeed int
	requests   []screen.Request // oldest first, at most maxRequests
	copy       func(string)
	w, h       int
	// drawn is the newest view; it is drawn again only after something that it shows has changed.
	drawn string
	same  bool
	visit visit
	lists lists
}

// visit is how this console came to be: with a guide, or as a demo's, whose end it is.
type visit struct {
	tour tour
	// demo is what a demo says of its browser; empty: no demo.
	demo    string
	leaving screen.Question
	undo    undoing
}

// NewModel makes the console's model on a first screen. Requests end with ctx; now is the clock, clip puts text on
// the operator's clipboard.
func NewModel(ctx context.Context, c *client.Client, first screen.Address, p *chart.Palette, now func() time.Time,
	clip func(string)) *Model {
	m := &Model{keys: DefaultKeys(), copy: clip, overview: overview.New(first)}
	m.state = &screen.State{Palette: p, Now: now(), Host: m, Server: screen.Server{Client: c, Ctx: ctx, Clock: now}}
	m.screens = []screen.Screen{m.overview}
	if at, ok := api.ParseTime(first.At, now()); ok {
		m.first, m.firstSpeed = at, replay.SpeedOf(first.Speed)
	}
	if p := screenOf(first); p != nil {
		m.screens = append(m.screens, p)
	}
	return m
}

// screenOf makes the screen of an address; nil for the overview, which is always there.
func screenOf(a screen.Address) screen.Screen {
	switch {
	case a.Page == "forwarders":
		return forwarder.New(a)
	case a.Page == "plans" && a.ID != "":
		return plan.New(a)
	case a.Page == "plans":
		return screen.NewList(plan.List).Filtered(a.Filter)
	case a.Page == "findings" && a.ID != "":
		return finding.New(a)
	case a.Page == "findings":
		return finding.NewList(a.Filter)
	case a.Page == "jobs" && a.Part == screen.PartWhy:
		return job.NewWhy(a)
	case a.Page == "jobs" && a.Part == screen.PartDomains:
		return job.NewDomains(a)
	case a.Page == "jobs" && a.Part == screen.PartRuns:
		return job.NewRuns(a.ID, a.Sort)
	case a.Page == "jobs" && a.ID != "":
		return job.New(a)
	case a.Page == "jobs":
		return screen.NewList(job.List).Filtered(a.Filter)
	case a.Page == "audit":
		return audit.New(a)
	case a.Page == "occupancy":
		return replay.NewCalendar(a.Span)
	case a.Page == "logs":
		return job.NewLogs(a)
	case a.Page == "whatif" && a.Set != "":
		return whatif.NewPattern(a)
	case a.Page == "whatif":
		return whatif.NewShares(a)
	}
	return nil
}

// beside is the place of a screen that has no address of its own.
func beside(on string) screen.Place {
	return screen.Place{On: on, At: screen.Address{Page: "overview"}}
}

// Use gives the console other keys than the default ones.
func (m *Model) Use(k *Keys) { m.keys = k }

// Init starts the clock and loads the first screen.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.tick(), m.Refresh()) }

// tick comes once a second so that ages grow when no data comes.
func (m *Model) tick() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return tickMsg{at} })
}

// Update routes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	s := m.state
	m.same = false
	if sent, ok := msg.(screen.Logged); ok {
		m.log(sent.Sent())
		s.Now = s.Server.Clock()
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case overviewMsg:
		return m, m.take(msg)
	case tickMsg:
		// While data comes every second, it brings the time with it.
		if m.same = s.Fresh(msg.at); !m.same {
			s.Now = msg.at
		}
		return m, tea.Batch(m.tick(), m.replay.Tick(s))
	case screen.Answer[api.SignInLink]:
		if msg.Err != nil {
			s.Note = "no link to the browser: " + chart.Clean(msg.Err.Error())
			return m, nil
		}
		return m, copyText(m, msg.Value.Address)
	case screen.Answer[api.LastAct]:
		cmd := m.top().Answer(s, screen.Answer[screen.Judged]{}) // what it shows may be another now
		m.visit.undo.answered(s, msg)
		return m, cmd
	case exportedMsg:
		s.Note = msg.words()
	case replay.MarksMsg:
		return m, m.replay.TakeMarks(s, msg)
	case replay.PastMsg:
		return m, m.replay.Take(s, msg)
	case tea.MouseMsg:
		s.Now = s.Server.Clock()
		return m, pointed(m, msg)
	case tea.KeyMsg:
		s.Now = s.Server.Clock()
		return m, m.typed(msg)
	default:
		return m, m.top().Answer(s, msg)
	}
	return m, nil
}

// wheelLines is how far the wheel goes.
const wheelLines = 3

// pointed takes the mouse: the wheel moves as the arrows do, a click goes to the screen on top.
func pointed(m *Model, msg tea.MouseMsg) tea.Cmd {
	if msg.Action != tea.MouseActionPress {
		return nil
	}
	if t, ok := m.top().(screen.Typist); ok && t.Field() != nil {
		return nil // what is being typed stays
	}
	if q, ok := m.top().(screen.Questioner); ok {
		q.Unask(screen.ActNone)
	}
	m.visit.undo.Unask(screen.ActNone)
	m.state.Note = ""
	switch msg.Button {
	case tea.MouseButtonWheelUp, tea.MouseButtonWheelDown:
		act := map[tea.MouseButton]screen.Action{tea.MouseButtonWheelUp: screen.ActUp,
			tea.MouseButtonWheelDown: screen.ActDown}[msg.Button]
		var all []tea.Cmd
		for range wheelLines {
			all = append(all, m.top().Act(m.state, act))
		}
		return tea.Batch(all...)
	case tea.MouseButtonLeft:
		c, ok := m.top().(screen.Clicker)
		if y := msg.Y - 1 - len(m.banners()); ok && y >= 0 && msg.Y < m.h-1 {
			return c.Click(m.state, msg.X, y)
		}
	}
	return nil
}

// take shows a new overview, or the past that the first address named.
func (m *Model) take(msg overviewMsg) tea.Cmd {
	s := m.state
	s.Take(msg.overview, msg.err, msg.at)
	if msg.err != nil || s.Paused {
		return nil
	}
	if at := m.first; !at.IsZero() && !s.Newest.At.IsZero() {
		m.first = time.Time{}
		cmd := m.replay.Start(s, at)
		m.replay.SetSpeed(m.firstSpeed)
		return cmd
	}
	return m.Refresh()
}

// log keeps the newest requests.
func (m *Model) log(r screen.Request) {
	m.requests = append(m.requests, r)
	if over := len(m.requests) - maxRequests; over > 0 {
		m.requests = append(m.requests[:0], m.requests[over:]...)
	}
}

// View draws the top screen.
func (m *Model) View() string {
	if !m.same {
		m.drawn, m.same = m.draw(), true
	}
	return m.drawn
}

func (m *Model) top() screen.Screen { return m.screens[len(m.screens)-1] }

// put puts a screen on top; nil is the overview, which is the first.
func (m *Model) put(p screen.Screen) tea.Cmd {
	if p == nil {
		m.screens = m.screens[:1]
		return nil
	}
	m.screens = append(m.screens, p)
	return m.Refresh()
}

// Open puts the screen of an address on top.
func (m *Model) Open(a screen.Address) tea.Cmd {
	p := screenOf(a)
	if p != nil {
		m.lists.restore(p, a)
	}
	return m.put(p)
}

// Replace does it in place of the screen on top.
func (m *Model) Replace(a screen.Address) tea.Cmd {
	m.screens = m.screens[:max(1, len(m.screens)-1)]
	return m.Open(a)
}

// Propose opens a proposal for clients of a forwarder.
func (m *Model) Propose(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) tea.Cmd {
	return m.put(plan.NewProposal(from, job, nodes))
}

// Back leaves the top screen, unless it is the first.
func (m *Model) Back() tea.Cmd {
	m.screens = m.screens[:max(1, len(m.screens)-1)]
	return m.Refresh()
}

// Refresh asks again for what the top screen shows.
func (m *Model) Refresh() tea.Cmd { return m.top().Refresh(m.state) }

// ReplayAt shows a second of the past on the overview.
func (m *Model) ReplayAt(at time.Time) tea.Cmd {
	m.screens = m.screens[:1]
	return m.replay.Start(m.state, at)
}

// Height is how many lines the terminal has.
func (m *Model) Height() int { return m.h }

// Key is what the key of an action is called on the screen shown.
func (m *Model) Key(a screen.Action) string { return m.keys.name(m.top().Name(), a) }

// typed takes apart what a slow line or a fast hand delivered as one: each letter is a key of its own. Pasted text
// is only for fields; on a screen it would press every key in it.
func (m *Model) typed(k tea.KeyMsg) tea.Cmd {
	t, ok := m.top().(screen.Typist)
	if ok && t.Field() != nil {
		return m.key(k)
	}
	if k.Paste {
		m.state.Note = "pasted text was ignored: no field is open"
		return nil
	}
	if k.Type != tea.KeyRunes || len(k.Runes) < 2 {
		return m.key(k)
	}
	var cmds []tea.Cmd
	for _, r := range k.Runes {
		one := tea.Key{Type: tea.KeyRunes, Runes: []rune{r}, Alt: k.Alt}
		if r == ' ' {
			one.Type = tea.KeySpace
		}
		cmds = append(cmds, m.key(tea.KeyMsg(one)))
	}
	return tea.Batch(cmds...)
}

// key gives a key to who takes it, and keeps how that leaves a list.
func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	top := m.top()
	list, ok := top.(screen.Keeper)
	if !ok {
		return press(m, k)
	}
	before := list.Left()
	cmd := press(m, k)
	m.lists.keep(m.state, top, before)
	return cmd
}

// press gives a key to the field being typed in, or to the replay, or to the shared actions, or to the screen.
func press(m *Model, k tea.KeyMsg) tea.Cmd {
	s := m.state
	if t, ok := m.top().(screen.Typist); ok && k.Type != tea.KeyCtrlC {
		if in := t.Field(); in != nil {
			switch k.Type {
			case tea.KeyEnter, tea.KeyTab:
				return t.Typed(s, true)
			case tea.KeyEsc:
				return t.Typed(s, false)
			}
			in.Key(k)
			return nil
		}
	}
	s.Note = ""
	if s.Replays() {
		if cmd, done := m.replay.Act(s, m.keys.inReplay(k.String())); done {
			return cmd
		}
	}
	if f, ok := m.top().(screen.Filterer); ok && k.Type == tea.KeyEsc && f.Unfilter() {
		return nil
	}
	a := m.keys.actionOf(m.top().Name(), k.String())
	m.visit.leaving.Unask(a)
	m.visit.undo.Unask(a)
	if q, ok := m.top().(screen.Questioner); ok {
		q.Unask(a)
	}
	if s.Replays() && screen.ChangesMachine[a] {
		s.Note = "refused: actions are off in a replay; " + s.Key(screen.ActLive) + " goes back to live"
		return nil
	}
	return m.do(a)
}

// places are the actions that open a screen.
var places = map[screen.Action]screen.Address{screen.ActOverview: {Page: "overview"}, screen.ActPlans: {Page: "plans"},
	screen.ActFindings: {Page: "findings"},
	screen.ActJobs:     {Page: "jobs"}, screen.ActAudit: {Page: "audit"},
	screen.ActCalendar: {Page: "occupancy", Span: replay.CalendarOf},
	screen.ActLogs:     {Page: "logs"}}

// do does an action: one that means the same on every screen, or the screen's own.
func (m *Model) do(a screen.Action) tea.Cmd {
	s := m.state
	if at, ok := places[a]; ok {
		return m.Open(at)
	}
	switch a {
	case screen.ActQuit:
		return tea.Quit
	case screen.ActUpOrQuit:
		switch {
		case len(m.screens) > 1:
			return m.Back()
		case m.visit.demo != "" && !m.visit.leaving.Again(s, a):
			s.Note = m.Key(a) + " again ends the demo and takes its layer away, any other key does not"
			return nil
		}
		return tea.Quit
	case screen.ActBack:
		return m.Back()
	case screen.ActWhatIf:
		at := screen.Address{Page: "whatif"}
		if on := m.top().Address(s); on.Page == "forwarders" {
			at.Forwarder = on.ID
		}
		return m.Open(at)
	case screen.ActHistory:
		return m.replay.Start(s, time.Time{})
	case screen.ActMarkBack:
		return m.replay.StartAtMark(s)
	case screen.ActMarkOn:
		s.Note = "this is live: " + m.Key(screen.ActMarkBack) + " goes to the mark before"
	case screen.ActNext:
		return m.overview.Next(s, len(m.screens) > 1)
	case screen.ActHelp:
		return m.put(&helpPage{Place: beside(screen.OnHelp), of: m.top().Name(), keys: m.keys})
	case screen.ActGo:
		return m.put(newGoPage(m))
	case screen.ActRequests:
		return m.put(&requestsPage{Place: beside(screen.OnRequests), sent: &m.requests})
	case screen.ActPause:
		if s.Paused {
			s.Live()
		} else {
			s.Paused = !s.Received.IsZero()
		}
	case screen.ActLive:
		s.Live()
	case screen.ActUndo:
		return m.visit.undo.ask(s)
	case screen.ActExport:
		return export(s, m.top())
	case screen.ActCopy:
		return m.copyAddress()
	case screen.ActBrowser:
		if s.Note = m.visit.demo; s.Note != "" {
			return nil
		}
		return screen.Ask(s, "sign-in link", s.Server.SignInLink)
	case screen.ActAnswer:
		if one, ok := m.top().(*job.Screen); ok && one.Answered() != "" {
			return copyText(m, one.Answered())
		}
	default:
		return m.top().Act(s, a)
	}
	return nil
}

// copyAddress puts the address of what is shown on the clipboard.
func (m *Model) copyAddress() tea.Cmd {
	a := m.top().Address(m.state)
	if past := m.state.Past; !past.IsZero() {
		a.At = past.UTC().Format(time.RFC3339)
		if n := m.replay.Speed(); n > 0 {
			a.Speed = strconv.Itoa(n)
		}
	}
	return copyText(m, a.String())
}

// copyText puts text on the clipboard and says so.
func copyText(m *Model, text string) tea.Cmd {
	screen.Report(m.state, "copied "+text)
	return func() tea.Msg { m.copy(text); return nil }
}
