// Package replay shows the past: a second after the other with what happened around it, and the calendar
// that leads there.
package replay

import (
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// Replay shows the past: how fast it runs, and what was asked for. The second shown is State.Past.
type Replay struct {
	speed   int // seconds of the past in a second; 0 stands still
	asking  bool
	wanted  time.Time // asked for next, once the answer under way is here
	missing error
	toMark  bool // begins with the newest mark, which is not known yet
	strip   strip
}

// replaySpeeds are how fast a replay may run.
var replaySpeeds = []int{0, 1, 2, 5, 10, 30, 60}

// SpeedOf reads an address's speed; an unknown one stands still.
func SpeedOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && slices.Contains(replaySpeeds, n) {
		return n
	}
	return 0
}

// Speed is how many seconds of the past run in a second.
func (r *Replay) Speed() int { return r.speed }

// SetSpeed lets it run; 0 stands still.
func (r *Replay) SetSpeed(n int) { r.speed = n }

// PastMsg is an answer about the past.
type PastMsg struct {
	screen.Answer[api.Overview]
}

// Start leaves the live screen for a second of the past; the zero time is a minute ago.
func (r *Replay) Start(s *screen.State, at time.Time) tea.Cmd {
	if s.Newest.At.IsZero() {
		s.Note = "no past yet: nothing has been reported"
		return nil
	}
	if at.IsZero() {
		at = s.Newest.At.Add(-screen.ReplayBack)
	}
	*r = Replay{}
	s.Paused = true
	return r.GoTo(s, at)
}

// StartAtMark leaves the live screen for the newest mark, once it is known.
func (r *Replay) StartAtMark(s *screen.State) tea.Cmd {
	cmd := r.Start(s, s.Newest.At.Add(-2*time.Second))
	r.toMark = cmd != nil
	return cmd
}

// GoTo shows another second of the past; a second that is still to come is live.
func (r *Replay) GoTo(s *screen.State, at time.Time) tea.Cmd {
	if at.After(s.Newest.At.Add(-time.Second)) {
		s.Live()
		s.Note = "this is live again"
		return s.Host.Refresh()
	}
	s.Past = at.Truncate(time.Second)
	if r.asking {
		r.wanted = s.Past
		return nil
	}
	r.asking = true
	get := screen.Ask(s, "overview at "+s.Past.UTC().Format(time.RFC3339), screen.With(s.Server.OverviewAt, s.Past))
	return func() tea.Msg { return PastMsg{get().(screen.Answer[api.Overview])} }
}

// Take shows what came, and asks for what was wanted meanwhile.
func (r *Replay) Take(s *screen.State, m PastMsg) tea.Cmd {
	if !s.Replays() {
		return nil // live again before the answer came
	}
	r.asking = false
	if r.missing = m.Err; r.missing == nil {
		m.Value.User, m.Value.Role = s.Shown.User, s.Shown.Role
		s.Show(m.Value, s.Now)
	}
	if next := r.wanted; !next.IsZero() {
		r.wanted = time.Time{}
		return tea.Batch(r.readMarks(s), r.GoTo(s, next))
	}
	return tea.Batch(r.readMarks(s), s.Host.Refresh())
}

// Tick runs the replay on.
func (r *Replay) Tick(s *screen.State) tea.Cmd {
	if !s.Replays() || r.speed == 0 {
		return nil
	}
	return r.GoTo(s, s.Past.Add(time.Duration(r.speed)*time.Second))
}

// Act does a replay's own actions; done is false for one that is the screen's.
func (r *Replay) Act(s *screen.State, act screen.Action) (cmd tea.Cmd, done bool) {
	switch act {
	case screen.ActStepBack:
		return r.GoTo(s, s.Past.Add(-time.Second)), true
	case screen.ActStepOn:
		return r.GoTo(s, s.Past.Add(time.Second)), true
	case screen.ActMinuteBack:
		return r.GoTo(s, s.Past.Add(-time.Minute)), true
	case screen.ActMinuteOn:
		return r.GoTo(s, s.Past.Add(time.Minute)), true
	case screen.ActMarkBack, screen.ActMarkOn:
		return r.goToMark(s, act == screen.ActMarkOn), true
	case screen.ActFaster:
		r.change(1)
	case screen.ActSlower:
		r.change(-1)
	case screen.ActPause:
		r.speed = map[bool]int{true: 1}[r.speed == 0]
	case screen.ActLive:
		s.Live()
		return s.Host.Refresh(), true
	default:
		return nil, false
	}
	return nil, true
}

func (r *Replay) change(by int) {
	if i := slices.Index(replaySpeeds, r.speed); i >= 0 {
		r.speed = replaySpeeds[max(0, min(len(replaySpeeds)-1, i+by))]
	}
}

// Status is what the first line says instead of an age.
func (r *Replay) Status(s *screen.State) string {
	if r.missing != nil {
		return "REPLAY " + chart.Moment(s.Past, s.Newest.At) + " could not be read"
	}
	return "REPLAY " + chart.Moment(s.Past, s.Newest.At)
}
