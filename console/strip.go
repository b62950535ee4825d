package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/remap"
	"fairway/webui/api"
)

// strip is the time that a replay's line shows, with what the journal says happened in it.
type strip struct {
	from, to time.Time
	marks    []remap.Mark // oldest first
	asking   bool
	err      error
}

// stripSpans are how much time the line can show: the shortest one that holds the second shown.
var stripSpans = []time.Duration{15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	31 * 24 * time.Hour}

// stripMarks is how many marks are asked for, and stripRenew how old the line's end may become.
const (
	stripMarks = 1000
	stripRenew = time.Minute
)

// marksMsg is an answer about a stretch of the past.
type marksMsg struct {
	answer[[]remap.Mark]
	from, to time.Time
}

// readMarks asks for what happened around the second shown, when the line does not show that yet.
func (s *State) readMarks(k *asker) tea.Cmd {
	r := s.replay
	if r == nil {
		return nil
	}
	t, live := &r.strip, s.newest.At.Add(time.Second)
	if t.asking || !t.from.IsZero() && !r.at.Before(t.from) && live.Sub(t.to) < stripRenew {
		return nil
	}
	ago := live.Sub(r.at)
	span := ago + time.Hour
	if i := slices.IndexFunc(stripSpans, func(d time.Duration) bool { return ago < d }); i >= 0 {
		span = stripSpans[i]
	}
	t.asking = true
	from := live.Add(-span)
	get := ask(k, "marks from "+from.UTC().Format(time.RFC3339), func(ctx context.Context) ([]remap.Mark, error) {
		return k.backend.Marks(ctx, from, live, stripMarks)
	})
	return func() tea.Msg { return marksMsg{get().(answer[[]remap.Mark]), from, live} }
}

// takeMarks keeps them. Starts and ends of jobs are left out: there are too many to jump along.
func (s *State) takeMarks(m marksMsg) {
	if s.replay == nil {
		return
	}
	t := &s.replay.strip
	t.asking, t.from, t.to, t.err = false, m.from, m.to, m.req.Err
	t.marks = slices.DeleteFunc(slices.Clone(m.value), func(m remap.Mark) bool { return markSign(&m) == 0 })
}

// markSign is how a mark looks on the line; 0 for one that is not shown.
func markSign(m *remap.Mark) byte {
	switch m.Kind {
	case "finding":
		return '!'
	case "plan":
		return 'P'
	case "exclusion":
		return 'x'
	}
	return 0
}

// goToMark jumps to the nearest mark in a direction and says what it is.
func (s *State) goToMark(ask *asker, on bool) tea.Cmd {
	var best *remap.Mark
	t := &s.replay.strip
	for i := range t.marks {
		switch at := t.marks[i].At.Truncate(time.Second); {
		case on && at.After(s.replay.at):
			if best == nil {
				best = &t.marks[i]
			}
		case !on && at.Before(s.replay.at):
			best = &t.marks[i]
		}
	}
	if best == nil {
		side := map[bool]string{true: "after this", false: "before this"}[on]
		s.Note = "nothing is marked " + side + " on the line"
		if !on && !t.from.IsZero() {
			s.Note += "; " + s.keys.replayName(actMinuteBack) + " goes back further than " + moment(t.from, t.to)
		}
		return nil
	}
	cmd := s.goTo(ask, best.At)
	s.Note = strings.TrimSpace(best.ID + " " + best.Text)
	return cmd
}

// line draws the strip: how fast it runs, how far from now, and the time around it with its marks.
func (r *replay) line(live time.Time, w int) string {
	text := fmt.Sprintf(" x%d  live is %s ahead", r.speed, age(live.Sub(r.at)))
	t := &r.strip
	switch {
	case r.missing != nil:
		return clip(fmt.Sprintf(" %s could not be read: %s", moment(r.at, live), clean(r.missing.Error())), w)
	case t.from.IsZero():
		return clip(text+"  reading what happened around it", w)
	case t.err != nil:
		return clip(text+"  what happened around it could not be read: "+clean(t.err.Error()), w)
	}
	from, to, legend := "  "+moment(t.from, live)+" |", "| "+clock(t.to), ""
	if w >= gridWidth+30 {
		legend = "   ! finding  P plan  x excluded  > here"
	}
	cells := w - 1 - ansi.StringWidth(text+from+to+legend)
	if cells < 10 {
		return clip(text, w)
	}
	return text + from + t.draw(r.at, cells) + to + legend
}

// draw is the time in w cells. Where several marks share one, the gravest is shown.
func (t *strip) draw(at time.Time, w int) string {
	line := []byte(strings.Repeat("-", w))
	column := func(x time.Time) int {
		return max(0, min(w-1, int(float64(w)*x.Sub(t.from).Seconds()/t.to.Sub(t.from).Seconds())))
	}
	const grave = "-xP!"
	for i := range t.marks {
		m := &t.marks[i]
		if c, sign := column(m.At), markSign(m); strings.IndexByte(grave, sign) > strings.IndexByte(grave, line[c]) {
			line[c] = sign
		}
	}
	line[column(at)] = '>'
	return string(line)
}

// banners are the lines between the title and the page: what is wrong with the connection, and which
// second of the past is shown.
func (s *State) banners(w int) (lines []string) {
	if s.Lost != nil {
		what := "No connection"
		if errors.Is(s.Lost, api.ErrNotAllowed) {
			what = "Refused"
		}
		text := fmt.Sprintf("%s since %s, trying again: %s", what, clock(s.LostSince), clean(s.Lost.Error()))
		said := indent(wrap(text, max(1, w-2)), w)
		for _, l := range said[:min(2, len(said))] { // what it is about stands at the end of the second
			lines = append(lines, s.Palette.paint(s.Palette.bold, l))
		}
	}
	if s.replay == nil {
		return lines
	}
	lines = append(lines, s.replay.line(s.newest.At, w))
	if !replayed[s.page().name()] {
		text := fmt.Sprintf(
			" This page is of now, not of %s: it is not kept. The overview, forwarders, findings and the audit are.",
			moment(s.replay.at, s.newest.At))
		lines = append(lines, s.Palette.paint(s.Palette.bold, clip(text, w)))
	}
	return lines
}

// replayed are the pages that show the past in a replay, and those that are of no time.
var replayed = map[string]bool{onOverview: true, onForwarder: true, onFindings: true, onAudit: true, onCalendar: true,
	onHelp: true, onRequests: true, "go": true}
