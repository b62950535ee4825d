package replay

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/screen"
	"fairway/webui/api"
)

// host is a console without screens.
type host struct{ screen.Host }

func (host) Refresh() tea.Cmd { return nil }

func TestReplayRunsAtItsSpeedAndNeverAheadOfTheAnswers(t *testing.T) {
	start := time.Unix(1000, 0)
	s := &screen.State{Newest: api.Overview{At: start.Add(time.Hour)}, Past: start, Host: host{},
		Server: screen.Server{Clock: time.Now}}
	r := &Replay{speed: 10}
	if r.Tick(s) == nil || s.Past != start.Add(10*time.Second) {
		t.Fatalf("after a second it shows %s", s.Past)
	}
	if r.Tick(s) != nil { // the answer is under way
		t.Error("a second question before the first was answered")
	}
	if r.Take(s, PastMsg{}) == nil || s.Past != start.Add(20*time.Second) {
		t.Errorf("what was wanted meanwhile is not asked for: %s", s.Past)
	}
	r.GoTo(s, s.Newest.At)
	if s.Replays() || s.Paused {
		t.Error("the newest second is not live")
	}
}
