package console

import (
	"cmp"
	"context"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// page is one screen. The root model owns pages and gives them actions and answers; a page gives
// back commands and lines, never another model.
type page interface {
	name() string // as in the key table
	address(s *State) Address
	// refresh asks for what the page shows; called when it opens and after each new second.
	refresh(s *State, ask *asker) tea.Cmd
	// answer takes what refresh and act asked for.
	answer(s *State, ask *asker, msg tea.Msg) tea.Cmd
	act(s *State, ask *asker, a action) tea.Cmd
	title(s *State, w int) string
	body(s *State, w, h int) []string
}

// typist is a page with a field: while field is not nil keys are text.
type typist interface {
	field() *input
	// typed ends the field: ok is false when it was left by escape.
	typed(s *State, ask *asker, ok bool) tea.Cmd
}

// input is one line being typed, of at most so many bytes; 0 is maxInput.
type input struct {
	label, text string
	most        int
}

// maxInput bounds a typed line; the server takes reasons of this length.
const maxInput = 500

func (in *input) key(k tea.KeyMsg) {
	switch {
	case k.Type == tea.KeyBackspace:
		if r := []rune(in.text); len(r) > 0 {
			in.text = string(r[:len(r)-1])
		}
	case k.Type == tea.KeyCtrlU:
		in.text = ""
	case (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt:
		if text := in.text + clean(string(k.Runes)); len(text) <= cmp.Or(in.most, maxInput) {
			in.text = text
		}
	}
}

// Messages between the pages, the watch and the root model.
type (
	overviewMsg struct {
		overview api.Overview
		err      error
		at       time.Time
	}
	tickMsg struct{ at time.Time }
)

// OverviewMsg tells the model of a new overview, or why there is none, at a time of its own clock.
func OverviewMsg(o api.Overview, err error, at time.Time) tea.Msg { return overviewMsg{o, err, at} }

// open puts a page on top. It happens at once, not by a message: the next key may be there already.
func (s *State) open(ask *asker, p page) tea.Cmd {
	s.pages = append(s.pages, p)
	return p.refresh(s, ask)
}

// back leaves the top page, unless it is the first.
func (s *State) back(ask *asker) tea.Cmd {
	if len(s.pages) > 1 {
		s.pages = s.pages[:len(s.pages)-1]
	}
	return s.page().refresh(s, ask)
}

// home goes back to the overview.
func (s *State) home() { s.pages = s.pages[:1] }

// Model is the root: it routes messages to the top page and keeps what all pages share.
type Model struct {
	state *State
	ask   *asker
	copy  func(string) // puts text on the operator's clipboard
	now   func() time.Time
	w, h  int
	// drawn is the newest view; it is drawn again only after something it shows has changed.
	drawn string
	same  bool
}

// NewModel makes the console's model on a first screen. Requests end with ctx; now is the clock,
// clip puts text on the operator's clipboard.
func NewModel(ctx context.Context, b Backend, first Address, p *Palette, now func() time.Time,
	clip func(string)) *Model {
	s := &State{Palette: p, Now: now(), keys: DefaultKeys(), sort: sorting{column: columnOccupancy}}
	for i, m := range metrics {
		if m.name == first.Metric {
			s.metric = i
		}
	}
	s.filter = first.Filter
	parseSort(&s.sort, columns, first.Sort)
	s.pages = []page{&overviewPage{asTable: first.View == "table", cursor: topology.ForwarderID(first.Sel)}}
	if at, ok := addressTime(first.At, now()); ok {
		s.first = at
		s.firstSpeed = replaySpeedOf(first.Speed)
	}
	if p := pageOf(first); p != nil {
		s.pages = append(s.pages, p)
	}
	return &Model{state: s, ask: &asker{ctx: ctx, backend: b, now: now}, copy: clip, now: now}
}

// pageOf makes the page of an address; nil for the overview, which is always there.
func pageOf(a Address) page {
	switch {
	case a.Page == "forwarders":
		return newForwarderPage(a.ID)
	case a.Page == "plans" && a.ID != "":
		return newPlanPage(a.ID)
	case a.Page == "plans":
		return listOf(plansList)
	case a.Page == "findings" && a.ID != "":
		return newFindingPage(a.ID)
	case a.Page == "findings":
		return &findingsPage{}
	case a.Page == "jobs" && a.Part == partWhy:
		return newWhyPage(a.ID)
	case a.Page == "jobs" && a.Part == partDomains:
		return newDomainsPage(a.ID, a.Domains)
	case a.Page == "jobs" && a.Part == partRuns:
		return newRunsPage(a.ID, a.Sort)
	case a.Page == "jobs" && a.ID != "":
		return newJobPage(a.ID)
	case a.Page == "jobs":
		return listOf(jobsList)
	case a.Page == "audit":
		return newAuditPage(a)
	case a.Page == "occupancy":
		return newCalendarPage(a.Span)
	case a.Page == "logs":
		return newLogsPage(a)
	case a.Page == "whatif" && a.Set != "":
		return newPatternPage(a.Set)
	case a.Page == "whatif":
		return newSharesPage(a.Policy, topology.ForwarderID(a.Forwarder))
	}
	return nil
}

// Init starts the clock and loads the first page.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.tick(), m.state.page().refresh(m.state, m.ask))
}

// tick comes once a second so that ages grow when no data comes.
func (m *Model) tick() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return tickMsg{at} })
}

// Update routes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	s := m.state
	m.same = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		return m, nil
	case overviewMsg:
		s.take(msg.overview, msg.err, msg.at)
		if msg.err != nil || s.Paused {
			return m, nil
		}
		if at := s.first; !at.IsZero() && !s.newest.At.IsZero() {
			s.first = time.Time{}
			cmd := s.replayAt(m.ask, at)
			if s.replay != nil { // the address may be of a second to come
				s.replay.speed = s.firstSpeed
			}
			return m, cmd
		}
		return m, s.page().refresh(s, m.ask)
	case tickMsg:
		// While data comes every second, it brings the time with it.
		if m.same = s.fresh(msg.at); !m.same {
			s.Now = msg.at
		}
		return m, tea.Batch(m.tick(), s.replayTick(m.ask))
	case exportedMsg:
		s.Note = msg.words()
		return m, nil
	case marksMsg:
		s.log(msg.request())
		s.takeMarks(msg)
		return m, nil
	case pastMsg:
		s.log(msg.request())
		s.Now = m.now()
		return m, s.takePast(m.ask, msg)
	case tea.KeyMsg:
		s.Now = m.now()
		return m, m.keys(msg)
	case logged:
		s.log(msg.request())
		s.Now = m.now()
	}
	return m, s.page().answer(s, m.ask, msg)
}

// View draws the top page.
func (m *Model) View() string {
	if !m.same {
		m.drawn, m.same = View(m.state, m.w, m.h), true
	}
	return m.drawn
}

// keys takes apart what a slow line or a fast hand delivered as one: each letter is a key of its
// own. Pasted text is only for fields; on a page it would press every key in it.
func (m *Model) keys(k tea.KeyMsg) tea.Cmd {
	t, ok := m.state.page().(typist)
	if ok && t.field() != nil {
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

// key gives a key to the field being typed in, or to the shared actions, or to the page.
func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	s := m.state
	if t, ok := s.page().(typist); ok && k.Type != tea.KeyCtrlC {
		if in := t.field(); in != nil {
			switch k.Type {
			case tea.KeyEnter, tea.KeyTab:
				return t.typed(s, m.ask, true)
			case tea.KeyEsc:
				return t.typed(s, m.ask, false)
			}
			in.key(k)
			return nil
		}
	}
	s.Note = ""
	if s.replay != nil {
		if cmd, done := s.replayKey(m.ask, k.String()); done {
			return cmd
		}
	}
	a := s.keys.actionOf(s.page().name(), k.String())
	if q, ok := s.page().(questioner); ok {
		q.unask(a)
	}
	if s.replay != nil && acts[a] {
		s.Note = "refused: actions are off in a replay; " + s.key(actLive) + " goes back to live"
		return nil
	}
	if cmd, done := m.shared(a); done {
		return cmd
	}
	return s.page().act(s, m.ask, a)
}

// shared does the actions that mean the same on every page.
func (m *Model) shared(a action) (cmd tea.Cmd, done bool) {
	s := m.state
	switch a {
	case actQuit:
		return tea.Quit, true
	case actUpOrQuit:
		if len(s.pages) == 1 {
			return tea.Quit, true
		}
		return s.back(m.ask), true
	case actBack:
		return s.back(m.ask), true
	case actOverview:
		s.home()
		return nil, true
	case actPlans:
		return s.open(m.ask, listOf(plansList)), true
	case actFindings:
		return s.open(m.ask, &findingsPage{}), true
	case actJobs:
		return s.open(m.ask, listOf(jobsList)), true
	case actAudit:
		return s.open(m.ask, newAuditPage(Address{})), true
	case actCalendar:
		return s.open(m.ask, newCalendarPage(calendarOf)), true
	case actLogs:
		return s.open(m.ask, newLogsPage(Address{})), true
	case actWhatIf:
		on := topology.ForwarderID("")
		if f, ok := s.page().(*forwarderPage); ok {
			on = f.id
		}
		return s.open(m.ask, newSharesPage("", on)), true
	case actHistory:
		return s.startReplay(m.ask), true
	case actNext:
		return s.nextNeed(m.ask), true
	case actHelp:
		return s.open(m.ask, &helpPage{of: s.page().name()}), true
	case actGo:
		return s.open(m.ask, newGoPage()), true
	case actRequests:
		return s.open(m.ask, &requestsPage{}), true
	case actPause:
		if s.Paused {
			s.live()
		} else {
			s.Paused = !s.Received.IsZero()
		}
		return nil, true
	case actLive:
		s.live()
		return nil, true
	case actExport:
		return s.export(), true
	case actCopy:
		a := s.page().address(s)
		if s.replay != nil {
			a.At = s.replay.at.UTC().Format(time.RFC3339)
			if s.replay.speed > 0 {
				a.Speed = strconv.Itoa(s.replay.speed)
			}
		}
		text := a.String()
		s.Note = "copied " + text
		return func() tea.Msg { m.copy(text); return nil }, true
	}
	return nil, false
}
