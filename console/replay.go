package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/webui/api"
)

// replay shows the past: a time, how fast it runs, and what was asked for.
type replay struct {
	at      time.Time
	speed   int // seconds of the past in a second; 0 stands still
	asking  bool
	wanted  time.Time // asked for next, once the answer under way is here
	missing error
	strip   strip
}

// replayBack is how long ago a replay begins, replaySpeeds how fast it may run.
const replayBack = time.Minute

var replaySpeeds = []int{0, 1, 2, 5, 10, 30, 60}

// replaySpeedOf reads an address's speed; one that there is not stands still.
func replaySpeedOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && slices.Contains(replaySpeeds, n) {
		return n
	}
	return 0
}

// replayTable are the keys of a replay; they come before every page's own.
var replayTable = []binding{
	{act: actStepBack, keys: []string{"left"}, show: "left", does: "a second back", hint: "1 s"},
	{act: actStepOn, keys: []string{"right"}, show: "right", does: "a second on", hint: ""},
	{act: actMinuteBack, keys: []string{"shift+left", "{"}, show: "shift-left {", does: "a minute back", hint: "1 min"},
	{act: actMinuteOn, keys: []string{"shift+right", "}"}, show: "shift-right }", does: "a minute on", hint: ""},
	{act: actMarkBack, keys: []string{"["}, show: "[",
		does: "to the mark before: a finding, plan or exclusion that changed", hint: "marks"},
	{act: actMarkOn, keys: []string{"]"}, show: "]", does: "to the next mark", hint: ""},
	{act: actFaster, keys: []string{"+", "="}, show: "+", does: "run faster", hint: "speed"},
	{act: actSlower, keys: []string{"-"}, show: "-", does: "run slower", hint: ""},
	{act: actPause, keys: []string{" "}, show: "space", does: "run or stand still", hint: "run/stop"},
	{act: actLive, keys: []string{"L", "H"}, show: "L", does: "live again", hint: "live"},
}

// The actions of a replay.
const (
	actHistory    action = "history"
	actStepBack   action = "step-back"
	actStepOn     action = "step-on"
	actMinuteBack action = "minute-back"
	actMinuteOn   action = "minute-on"
	actMarkBack   action = "mark-back"
	actMarkOn     action = "mark-on"
	actFaster     action = "faster"
	actSlower     action = "slower"
)

// acts are the actions that a replay refuses: what is shown is not what would be changed.
var acts = map[action]bool{actPropose: true, actForce: true, actApprove: true, actReject: true, actRollBack: true,
	actStop: true, actAck: true, actDismiss: true, actExclude: true, actSilence: true, actCanary: true}

// pastMsg is an answer about the past.
type pastMsg struct {
	answer[api.Overview]
	at time.Time
}

// startReplay leaves the live picture.
func (s *State) startReplay(ask *asker) tea.Cmd {
	if s.newest.At.IsZero() {
		s.Note = "there is no past yet: nothing has been reported"
		return nil
	}
	return s.replayAt(ask, s.newest.At.Add(-replayBack))
}

// replayAt leaves the live picture for a second of the past.
func (s *State) replayAt(ask *asker, at time.Time) tea.Cmd {
	s.Paused = true
	s.replay = &replay{}
	return s.goTo(ask, at)
}

// goTo shows another second of the past; a second that is still to come is live.
func (s *State) goTo(ask *asker, at time.Time) tea.Cmd {
	r := s.replay
	if at.After(s.newest.At.Add(-time.Second)) {
		s.live()
		s.Note = "this is live again"
		return s.page().refresh(s, ask)
	}
	r.at = at.Truncate(time.Second)
	if r.asking {
		r.wanted = r.at
		return nil
	}
	r.asking = true
	return ask.past(r.at)
}

// takePast shows what came, and asks for what was wanted meanwhile.
func (s *State) takePast(ask *asker, m pastMsg) tea.Cmd {
	r := s.replay
	if r == nil {
		return nil // live again before the answer came
	}
	r.asking = false
	if r.missing = m.req.Err; r.missing == nil {
		user, role := s.Shown.User, s.Shown.Role
		s.Shown, s.Received = m.value, s.Now
		s.Shown.User, s.Shown.Role = user, role
	}
	if next := r.wanted; !next.IsZero() {
		r.wanted = time.Time{}
		return tea.Batch(s.readMarks(ask), s.goTo(ask, next))
	}
	return tea.Batch(s.readMarks(ask), s.page().refresh(s, ask))
}

// replayTick runs the replay on.
func (s *State) replayTick(ask *asker) tea.Cmd {
	if s.replay == nil || s.replay.speed == 0 {
		return nil
	}
	return s.goTo(ask, s.replay.at.Add(time.Duration(s.replay.speed)*time.Second))
}

// replayKey does a replay's own keys; done is false for a key that is the page's.
func (s *State) replayKey(ask *asker, key string) (cmd tea.Cmd, done bool) {
	act, r := s.keys.inReplay(key), s.replay
	switch act {
	case actStepBack:
		return s.goTo(ask, r.at.Add(-time.Second)), true
	case actStepOn:
		return s.goTo(ask, r.at.Add(time.Second)), true
	case actMinuteBack:
		return s.goTo(ask, r.at.Add(-time.Minute)), true
	case actMinuteOn:
		return s.goTo(ask, r.at.Add(time.Minute)), true
	case actMarkBack, actMarkOn:
		return s.goToMark(ask, act == actMarkOn), true
	case actFaster:
		r.change(1)
		return nil, true
	case actSlower:
		r.change(-1)
		return nil, true
	case actPause:
		if r.speed == 0 {
			r.speed = 1
		} else {
			r.speed = 0
		}
		return nil, true
	case actLive:
		s.live()
		return s.page().refresh(s, ask), true
	}
	return nil, false
}

func (r *replay) change(by int) {
	for i, v := range replaySpeeds {
		if v == r.speed {
			r.speed = replaySpeeds[max(0, min(len(replaySpeeds)-1, i+by))]
			return
		}
	}
}

// status is what the first line says instead of an age.
func (r *replay) status(live time.Time) string {
	if r.missing != nil {
		return "REPLAY " + moment(r.at, live) + " could not be read"
	}
	return "REPLAY " + moment(r.at, live)
}

// replayHints is the bottom line of a replay.
func (s *State) replayHints(w int) string {
	key := func(a action) string { return s.keys.replayName(a) }
	if w < 88 {
		return clip(fmt.Sprintf(" %s 1s  %s 1min  %s marks  %s speed  %s run/stop  %s live  actions off",
			key(actStepBack), key(actMinuteBack),
			key(actMarkBack), key(actFaster), key(actPause), key(actLive)), w)
	}
	var items []string
	for i := range s.keys.replay {
		if b := &s.keys.replay[i]; b.hint != "" && b.show != "" {
			items = append(items, b.show+" "+b.hint)
		}
	}
	return clip(" "+strings.Join(items, "  ")+"   actions are off", w)
}
