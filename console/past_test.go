package console_test

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console"
)

// A replay shows the past, refuses every action, and goes back to the newest second.
// newScriptAt is an operator who opens an address.
func newScriptAt(t *testing.T, a console.Address) *script {
	s := newScript(t, 240, 120, 36)
	s.model = console.NewModel(t.Context(), s.fake, a, console.NewPalette(console.NoAttributes), func() time.Time { return s.now }, func(text string) { s.copied = text })
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
	s.sees("of the second shown, jobs: not kept")
	s.press("q")
	s.press("left", "{", "[")
	s.sees("REPLAY 12:00:31") // the finding began there
	s.press("p")
	s.sees("refused: actions are off in a replay")
	s.press("4", "enter", "A", "x")
	if len(s.fake.Calls) > 0 {
		t.Errorf("a replay sent %v", s.fake.Calls)
	}
	s.press("+", "+")
	s.sees("x2")
	s.press("L")
	s.sees("LIVE 12:04:30")
}

// An address with a time opens the past as soon as there is a picture.
func TestAnAddressOfThePast(t *testing.T) {
	a, err := console.ParseAddress("https://fairway.site/forwarders/fwd113?at=2026-11-21T11:42:00Z")
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
