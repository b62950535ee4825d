package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
)

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	full := strings.Repeat("x", 10)
	first := string(frame([]string{"a", full}, nil, 10))
	if first != "\x1b[2J\x1b[1;1Ha\x1b[K\x1b[2;1H"+full {
		t.Errorf("the first frame is %q", first)
	}
	if next := string(frame([]string{"b", full}, []string{"a", full}, 10)); next != "\x1b[1;1Hb" {
		t.Errorf("one changed line is %q", next)
	}
	if higher := string(frame([]string{"a", full, ""}, []string{"a", full}, 10)); !strings.HasPrefix(higher,
		"\x1b[2J") || !strings.Contains(higher, full) {
		t.Errorf("another height is %q", higher)
	}
}

// Frames come when something changed, at most thirty a second, and the last change is always drawn.
func TestFramesComeWhenSomethingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drawn []string
		frames, asked := 0, 0
		m := NewModel(t.Context(), nil, screen.Address{Page: "overview"}, chart.NewPalette(chart.NoAttributes, false),
			time.Now, func(string) {})
		c := &canvas{Model: m, paint: func(lines, _ []string, _ int) { drawn, frames = lines, frames+1 }}
		send := func(msg tea.Msg) { c.Update(msg); c.View() }
		var wait time.Duration
		c.later = func(d time.Duration) { wait, asked = d, asked+1 }
		send(tickMsg{time.Now()})
		if frames != 0 {
			t.Fatal("drawn before the size is known")
		}
		send(tea.WindowSizeMsg{Width: 80, Height: 24})
		for i := range 10 {
			m.state.Note = strings.Repeat("n", i+1)
			m.same = false
			send(tickMsg{time.Now()})
		}
		if asked != 1 || wait > frameTime {
			t.Errorf("asked %d times for a frame, the last in %s", asked, wait)
		}
		time.Sleep(wait)
		send(paintMsg{})
		if last := drawn[len(drawn)-1]; frames != 2 || strings.TrimSpace(last) != strings.Repeat("n", 10) {
			t.Errorf("%d frames for ten changes at once, the last line is %q", frames, last)
		}
		time.Sleep(time.Second)
		if send(tickMsg{time.Now()}); frames != 2 {
			t.Errorf("%d frames, the last without a change", frames)
		}
		time.Sleep(time.Second)
		send(tea.WindowSizeMsg{Width: 80, Height: 24})
		if frames != 3 || c.shown == nil {
			t.Errorf("after a change of size %d frames", frames)
		}
	})
}
