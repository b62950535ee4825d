package console

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// draw draws the top screen as exactly h lines of at most w columns.
func (m *Model) draw() string {
	s, p, w, h := m.state, m.top(), m.w, m.h
	if w < 1 || h < 1 {
		return ""
	}
	lines := append([]string{titleLine(s, m.freshness, p.Title(s, w), w)}, m.banners()...)
	if room := h - 1 - len(lines); room > 0 {
		body := p.Body(s, w, room)
		lines = append(lines, body[:min(len(body), room)]...)
	}
	for len(lines) < h-1 {
		lines = append(lines, "")
	}
	below := m.bottom()
	below = below[max(0, len(below)-h):]
	lines = append(lines[:h-len(below)], below...)
	for i, line := range lines {
		line = chart.Harmless(line)
		lines[i] = line
		if ansi.StringWidth(line) > w {
			lines[i] = ansi.Truncate(line, w, "") + s.Palette.Reset
		}
	}
	return strings.Join(lines, "\n")
}

// gaps are those between the parts of a title where there is room.
var gaps = regexp.MustCompile(` {3,}`)

// titleLine is the first line of every screen: what it is, and how old its data is.
func titleLine(s *screen.State, fresh func() (string, string), title string, w int) string {
	p := s.Palette
	status, look := fresh()
	if s.Shown.Simulated {
		title = " SIMULATED" + title
	}
	if room := w - len(status) - 2; ansi.StringWidth(title) > room {
		title = chart.Clip(gaps.ReplaceAllString(title, "  "), max(0, room))
	}
	gap := strings.Repeat(" ", max(0, w-1-ansi.StringWidth(title)-len(status)))
	return p.Paint(p.Bold, title) + gap + p.Paint(look, status)
}

// freshness says how old the data is, and how loudly.
func (m *Model) freshness() (text, look string) {
	s, p := m.state, m.state.Palette
	switch a := s.Age(); {
	case s.Received.IsZero() && s.Lost != nil:
		return "NO DATA yet", p.Bad
	case s.Received.IsZero():
		return "connecting", ""
	case s.Shown.At.IsZero():
		return "NO DATA yet: no agent has reported", p.Bad
	case s.Replays():
		return m.replay.Status(s), p.Bad
	case s.Paused:
		return fmt.Sprintf("PAUSED at %s (%s ago)", chart.Clock(s.Shown.At), chart.Age(a)), p.Bad
	case a > s.StaleAfter():
		return "NO DATA since " + chart.Clock(s.Shown.At), p.Bad
	case a > s.LateAfter():
		return fmt.Sprintf("LIVE %s late %s", zoned(s.Shown.At), chart.Age(a)), p.Reverse
	default:
		return fmt.Sprintf("LIVE %s %.1fs", zoned(s.Shown.At), a.Seconds()), ""
	}
}

// zoned is a time of day with the zone that all times on the screens are in.
func zoned(t time.Time) string { return chart.Clock(t) + " " + t.Local().Format("MST") }

// banners are the lines between the title and the screen: what is wrong with the connection, and which second of
// the past is shown.
func (m *Model) banners() (lines []string) {
	s, w := m.state, m.w
	lines = m.visit.tour.lines(s, m.keys, m.top(), w)
	if s.Lost != nil {
		what := "No connection"
		if errors.Is(s.Lost, api.ErrNotAllowed) {
			what = "Refused"
		}
		text := chart.Paragraphs(w, fmt.Sprintf("%s since %s, trying again: %s", what, chart.Clock(s.LostSince),
			chart.Clean(s.Lost.Error())))
		lines = append(lines, screen.BoldLines(s, text[:min(2, len(text))])...) // what it is about ends the second
	}
	if s.Shown.Notice != "" {
		text := chart.Paragraphs(w, " "+chart.Clean(s.Shown.Notice))
		lines = append(lines, screen.BoldLines(s, text[:min(2, len(text))])...)
	}
	if !s.Replays() {
		return lines
	}
	lines = append(lines, m.replay.Line(s, w))
	if !replayed[m.top().Name()] {
		text := fmt.Sprintf(
			" This page is of now, not of %s: it is not kept. The overview, forwarders, findings and the audit are.",
			chart.Moment(s.Past, s.Newest.At))
		lines = append(lines, s.Bold(chart.Clip(text, w)))
	}
	return lines
}

// replayed are the screens that show the past in a replay, and those that are of no time.
var replayed = map[string]bool{screen.OnOverview: true, screen.OnForwarder: true, screen.OnFindings: true,
	screen.OnAudit: true, screen.OnCalendar: true,
	screen.OnHelp: true, screen.OnRequests: true, screen.OnGo: true}

// mostNoted is how many lines an answer or a question may take at the bottom.
const mostNoted = 3

// bottom is a screen's input, the last answer, or the keys that work here. A long answer lies over the end of the
// screen until the next key: how it ends, such as which key does it, matters most.
func (m *Model) bottom() []string {
	s, w := m.state, m.w
	if t, ok := m.top().(screen.Typist); ok {
		if in := t.Field(); in != nil {
			text := chart.Clip(" "+in.Label+" "+tail(in.Text, max(8, w-len(in.Label)-4)), max(0, w-1))
			return []string{text + s.Palette.Paint(s.Palette.Reverse, "_")}
		}
	}
	if note := screen.Noted(s); note != "" {
		lines := chart.Paragraphs(w, chart.Clean(note))
		if len(lines) > mostNoted {
			lines = append(lines[:mostNoted-1], chart.Clip(" "+strings.TrimSpace(strings.Join(lines[mostNoted-1:], "")),
				w))
		}
		return screen.BoldLines(s, lines)
	}
	line := replayHints(m.keys, w)
	if !s.Replays() {
		line = hints(s, m.keys, m.top(), w)
	}
	return []string{s.Palette.Paint(s.Palette.Dim, line)}
}

// hints is the bottom line of a page: the table's order until the width is used up.
func hints(s *screen.State, keys *Keys, p screen.Screen, w int) string {
	r, _ := p.(screen.Refuser)
	line, room := "", 0
	for i := range keys.table {
		if b := &keys.table[i]; b.act == screen.ActHelp && b.show != "" {
			room = len("  " + b.show + " " + b.hint)
		}
	}
	for i := range keys.table {
		b := &keys.table[i]
		if b.hint == "" || b.show == "" || !b.works(p.Name()) || r != nil && r.Hides(s, b.act) {
			continue
		}
		item := b.show + " " + b.hint
		if line != "" {
			item = "  " + item
		}
		// Help always fits, so that what was left out can be found.
		if len(line)+len(item) > w-1-room && b.act != screen.ActHelp {
			continue
		}
		line += item
	}
	return " " + line
}

// replayHints is the bottom line of a replay.
func replayHints(keys *Keys, w int) string {
	key := func(a screen.Action) string { return keys.replayName(a) }
	if w < 88 {
		return chart.Clip(fmt.Sprintf(" %s 1s  %s 1min  %s marks  %s speed  %s run/stop  %s live  actions off",
			key(screen.ActStepBack), key(screen.ActMinuteBack),
			key(screen.ActMarkBack), key(screen.ActFaster), key(screen.ActPause), key(screen.ActLive)), w)
	}
	var items []string
	for i := range keys.replay {
		if b := &keys.replay[i]; b.hint != "" && b.show != "" {
			items = append(items, b.show+" "+b.hint)
		}
	}
	return chart.Clip(" "+strings.Join(items, "  ")+"   actions are off", w)
}

// tail keeps the last w columns of what is being typed, where the cursor is.
func tail(text string, w int) string {
	r := []rune(text)
	for len(r) > 0 && ansi.StringWidth(string(r)) > w {
		r = r[1:]
	}
	return string(r)
}
