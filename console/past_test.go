package console_test

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// A replay shows the past, refuses every action, and goes back to the newest second.
// newScriptAt is an operator who opens an address.
func newScriptAt(t *testing.T, a screen.Address) *script {
	s := newScript(t, 240, 120, 36)
	s.model = console.NewModel(t.Context(), s.fake, a, chart.NewPalette(chart.NoAttributes),
		func() time.Time { return s.now }, func(text string) { s.copied = text })
	s.send(tea.WindowSizeMsg{Width: 120, Height: 36})
	return s
}

func (s *script) lacks(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen says %q:\n%s", text, s.screen())
		}
	}
}

func TestReplayShowsThePastAndActsOnNothing(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("H")
	s.sees("REPLAY 12:03:30", "live is 1m ahead")
	if strings.Contains(s.screen(), "F-0091") {
		t.Error("the past shows a finding of now")
	}
	s.press("?", "/", "mark", "enter")
	s.sees("of the second shown, clients: those of now")
	s.press("q")
	s.press("left", "{", "[")
	s.sees("REPLAY 12:00:31", "F-0091 suspect: write service time") // the finding began there
	s.sees("11:49:31 |", "| 12:04:31", "x", "! finding  P plan  x excluded  > here")
	s.press("[")
	s.sees("REPLAY 11:54:30", "fwd059 excluded: disk errors")
	s.press("[")
	s.sees("nothing is marked before this on the line; { goes back further than 11:49:31")
	s.press("]")
	s.sees("REPLAY 12:00:31")
	s.press("3")
	s.lacks("This page is of now")
	s.press("2")
	s.sees("This page is of now, not of 12:00:31: it is not kept.", "88231")
	s.press("1")
	s.lacks("This page is of now")
	s.press("p")
	s.sees("refused: actions are off in a replay")
	s.press("4", "enter", "A", "x")
	if len(s.fake.Calls) > 0 {
		t.Errorf("a replay sent %v", s.fake.Calls)
	}
	s.press("+", "+", "y")
	s.sees("x2")
	if s.copied != "/plans?at=2026-11-21T12%3A00%3A31Z&speed=2" {
		t.Errorf("copied %q", s.copied)
	}
	s.press("L")
	s.sees("LIVE 12:04:30")
}

// An address with a time opens the past as soon as there is a newest second.
func TestAnAddressOfThePast(t *testing.T) {
	a, err := screen.ParseAddress("https://fairway.site/forwarders/fwd113?at=2026-11-21T11:42:00Z")
	if err != nil {
		t.Fatal(err)
	}
	s := newScriptAt(t, a)
	s.second()
	s.sees(" fwd113", "REPLAY 11:42:00", "live is 22m ahead")
	s.press("y")
	if s.copied != "/forwarders/fwd113?at=2026-11-21T11%3A42%3A00Z" {
		t.Errorf("copied %q", s.copied)
	}
	s.press("L")
	s.sees("LIVE 12:04:30")
}

func TestAnAddressOfHistory(t *testing.T) {
	for text, want := range map[string][]string{
		"/history":                                   {"REPLAY 12:03:31", "x0  live is 59s ahead"},
		"/history?at=-2m&speed=10":                   {"REPLAY 12:02:31", "x10  live is 1m ahead"},
		"/overview?at=-26h&speed=7":                  {"REPLAY Nov 20 10:04", "x0  live is 1d ahead", "Nov 14 12:04 |"},
		"/findings?at=2027-01-01T00:00:00Z&speed=10": {"LIVE 12:04:30", "this is live again"},
	} {
		a, err := screen.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		s := newScriptAt(t, a)
		s.second()
		s.sees(want...)
	}
}

// A forwarder that has not reported yet has no time of its last report.
func TestForwarderThatWasNeverHeardOfSaysSo(t *testing.T) {
	s := newScript(t, 60, 120, 36)
	s.fake.Do(func(o *api.Overview) {
		o.Forwarders[0].State, o.Forwarders[0].LastSeen = api.StateStale, time.Time{}
	})
	s.second()
	s.press("enter")
	s.sees(" fwd000   STALE, never seen")
}
