package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
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

// MarksMsg is an answer about a stretch of the past.
type MarksMsg struct {
	screen.Answer[[]remap.Mark]
	from, to time.Time
}

// readMarks asks for what happened around the second shown, when the line does not show that yet.
func (r *Replay) readMarks(s *screen.State) tea.Cmd {
	if !s.Replays() {
		return nil
	}
	t, live := &r.strip, s.Newest.At.Add(time.Second)
	if t.asking || !t.from.IsZero() && !s.Past.Before(t.from) && live.Sub(t.to) < stripRenew {
		return nil
	}
	ago := live.Sub(s.Past)
	span := ago + time.Hour
	if i := slices.IndexFunc(stripSpans, func(d time.Duration) bool { return ago < d }); i >= 0 {
		span = stripSpans[i]
	}
	t.asking = true
	from := live.Add(-span)
	get := screen.Ask(s, "marks from "+from.UTC().Format(time.RFC3339),
		func(ctx context.Context) ([]remap.Mark, error) {
			return s.Server.Marks(ctx, from, live, stripMarks)
		})
	return func() tea.Msg { return MarksMsg{get().(screen.Answer[[]remap.Mark]), from, live} }
}

// TakeMarks keeps them. Starts and ends of jobs are left out: there are too many to jump along.
func (r *Replay) TakeMarks(s *screen.State, m MarksMsg) tea.Cmd {
	if !s.Replays() {
		return nil
	}
	t := &r.strip
	t.asking, t.from, t.to, t.err = false, m.from, m.to, m.Err
	t.marks = slices.DeleteFunc(slices.Clone(m.Value), func(m remap.Mark) bool { return markSign(&m) == 0 })
	if !r.toMark {
		return nil
	}
	r.toMark = false
	return r.goToMark(s, false)
}

// markSign is how a mark looks on the line; 0 for one that is not shown.
func markSign(m *remap.Mark) byte {
	switch m.Kind {
	case "finding":
		return '!'
	case "note":
		return 'N'
	case "plan":
		return 'P'
	case "exclusion":
		return 'x'
	case "connection":
		return 'c'
	}
	return 0
}

// goToMark jumps to the nearest mark in a direction and says what it is.
func (r *Replay) goToMark(s *screen.State, on bool) tea.Cmd {
	var best *remap.Mark
	t := &r.strip
	for i := range t.marks {
		switch at := t.marks[i].At.Truncate(time.Second); {
		case on && at.After(s.Past):
			if best == nil {
				best = &t.marks[i]
			}
		case !on && at.Before(s.Past):
			best = &t.marks[i]
		}
	}
	if best == nil {
		side := map[bool]string{true: "after this", false: "before this"}[on]
		s.Note = "nothing is marked " + side + " on the line"
		if !on && !t.from.IsZero() {
			s.Note += "; " + s.Key(screen.ActMinuteBack) + " goes back further than " + chart.Moment(t.from, t.to)
		}
		return nil
	}
	cmd := r.GoTo(s, best.At)
	s.Note = strings.TrimSpace(best.ID + " " + best.Text)
	return cmd
}

// Line draws the strip: how fast it runs, how far from now, and the time around it with its marks.
func (r *Replay) Line(s *screen.State, w int) string {
	live := s.Newest.At
	text := fmt.Sprintf(" x%d  live is %s ahead", r.speed, chart.Age(live.Sub(s.Past)))
	t := &r.strip
	switch {
	case r.missing != nil:
		return chart.Clip(fmt.Sprintf(" %s could not be read: %s", chart.Moment(s.Past, live),
			chart.Clean(r.missing.Error())), w)
	case t.from.IsZero():
		return chart.Clip(text+"  reading what happened around it", w)
	case t.err != nil:
		return chart.Clip(text+"  what happened around it could not be read: "+chart.Clean(t.err.Error()), w)
	}
	from, to, legend := "  "+chart.Moment(t.from, live)+" |", "| "+chart.Clock(t.to), ""
	if w >= 110 {
		legend = "   ! finding  P plan  x drained  > here"
	}
	cells := w - 1 - ansi.StringWidth(text+from+to+legend)
	if cells < 10 {
		return chart.Clip(text, w)
	}
	return text + from + t.draw(s.Past, cells) + to + legend
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
