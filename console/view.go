package console

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fairway/remap"
)

// The smallest terminal that holds the grid.
const (
	gridWidth  = 80
	gridHeight = 24
)

// View draws the state's top page as exactly h lines of at most w columns.
func View(s *State, w, h int) string {
	if w < 1 || h < 1 {
		return ""
	}
	p := s.page()
	lines := []string{s.titleLine(p.title(s, w), w)}
	room := h - 2
	above := s.banners(w)
	lines = append(lines, above...)
	room -= len(above)
	if room > 0 {
		body := p.body(s, w, room)
		lines = append(lines, body[:min(len(body), room)]...)
	}
	for len(lines) < h-1 {
		lines = append(lines, "")
	}
	below := s.bottomLines(p, w)
	below = below[max(0, len(below)-h):]
	lines = append(lines[:h-len(below)], below...)
	for i, line := range lines {
		line = harmless(line)
		lines[i] = line
		if ansi.StringWidth(line) > w {
			lines[i] = ansi.Truncate(line, w, "") + s.Palette.reset
		}
	}
	return strings.Join(lines, "\n")
}

// titleLine is the first line of every screen: what it is, and how old its data is.
func (s *State) titleLine(title string, w int) string {
	p := s.Palette
	status, look := s.freshness()
	if s.Shown.Simulated {
		title = " SIMULATED" + title
	}
	if room := w - len(status) - 2; ansi.StringWidth(title) > room {
		title = clip(title, max(0, room))
	}
	gap := strings.Repeat(" ", max(0, w-1-ansi.StringWidth(title)-len(status)))
	return p.paint(p.bold, title) + gap + p.paint(look, status)
}

// freshness says how old the data is, and how loudly.
func (s *State) freshness() (text, look string) {
	p := s.Palette
	switch a := s.age(); {
	case s.Received.IsZero() && s.Lost != nil:
		return "NO DATA yet", p.bad
	case s.Received.IsZero():
		return "connecting", ""
	case s.Shown.At.IsZero():
		return "NO DATA yet: no agent has reported", p.bad
	case s.replay != nil:
		return s.replay.status(s.newest.At), p.bad
	case s.Paused:
		return fmt.Sprintf("PAUSED at %s (%s ago)", clock(s.Shown.At), age(a)), p.bad
	case a > remap.StaleAfter:
		return "NO DATA since " + clock(s.Shown.At), p.bad
	case a > remap.LateAfter:
		return fmt.Sprintf("LIVE %s late %s", clock(s.Shown.At), age(a)), p.reverse
	default:
		return fmt.Sprintf("LIVE %s age %.1fs", clock(s.Shown.At), a.Seconds()), ""
	}
}

// mostNoted is how many lines an answer or a question may take at the bottom.
const mostNoted = 3

// bottomLines are a page's input, the last answer, or the keys that work here. A long answer lies over
// the end of the page until the next key: how it ends, such as which key does it, matters most.
func (s *State) bottomLines(p page, w int) []string {
	if t, ok := p.(typist); ok {
		if in := t.field(); in != nil {
			text := clip(" "+in.label+" "+tail(in.text, max(8, w-len(in.label)-4)), max(0, w-1))
			return []string{text + s.Palette.paint(s.Palette.reverse, "_")}
		}
	}
	if s.Note != "" {
		lines := indent(wrap(clean(s.Note), max(1, w-2)), w)
		if len(lines) > mostNoted {
			lines = append(lines[:mostNoted-1], clip(" "+strings.TrimSpace(strings.Join(lines[mostNoted-1:], "")), w))
		}
		for i := range lines {
			lines[i] = s.Palette.paint(s.Palette.bold, lines[i])
		}
		return lines
	}
	if s.replay != nil {
		return []string{s.Palette.paint(s.Palette.dim, s.replayHints(w))}
	}
	return []string{s.Palette.paint(s.Palette.dim, hints(s, p, w))}
}

// tail keeps the last w columns of what is being typed, where the cursor is.
func tail(text string, w int) string {
	r := []rune(text)
	for len(r) > 0 && ansi.StringWidth(string(r)) > w {
		r = r[1:]
	}
	return string(r)
}

// rule is a line across the screen.
func rule(w int) string { return " " + strings.Repeat("-", max(0, w-2)) }
