package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/tsdb"
	"fairway/webui/api"
)

// CalendarSpan is a stretch of time that the calendar shows.
type CalendarSpan struct {
	Name   string // as in the address
	Words  string
	Range  time.Duration
	Bucket time.Duration
}

// CalendarSpans are those that a key goes through; an address without one is of the first.
var CalendarSpans = []CalendarSpan{
	{Name: "hour", Words: "the last hour, by minute", Range: time.Hour, Bucket: time.Minute},
	{Name: "day", Words: "the last day, by hour", Range: 24 * time.Hour, Bucket: time.Hour},
	{Name: "month", Words: "the last 30 days, by day", Range: 30 * 24 * time.Hour, Bucket: 24 * time.Hour},
}

// calendarOf is what the key opens: the days.
const calendarOf = "month"

// calendarPage shows how often forwarders were near their peak: the least, the mean and the most busy
// of them in each bucket of time ("End-to-end I/O Monitoring on a Leading Supercomputer", NSDI'19,
// figure 3), the newest first.
type calendarPage struct {
	span   CalendarSpan
	view   Load[api.OccupancyView]
	cursor int
}

func newCalendarPage(span string) *calendarPage {
	i := slices.IndexFunc(CalendarSpans, func(c CalendarSpan) bool { return c.Name == span })
	return &calendarPage{span: CalendarSpans[max(0, i)]}
}

func (p *calendarPage) Name() string           { return onCalendar }
func (p *calendarPage) Address(*State) Address { return Address{Page: "occupancy", Span: p.span.Name} }

// refresh asks again as soon as the newest bucket may look different.
func (p *calendarPage) Refresh(s *State) tea.Cmd {
	span := p.span
	p.view.Again = max(10*time.Second, span.Bucket/60)
	return p.view.Refresh(s, "occupancy of "+span.Words, func(ctx context.Context) (api.OccupancyView, error) {
		return s.Server.Occupancy(ctx, span.Range, span.Bucket)
	})
}

func (p *calendarPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.view.Take(msg)
	return nil
}

func (p *calendarPage) Act(s *State, a Action) tea.Cmd {
	rows := p.rows()
	switch a {
	case actMetric:
		i := slices.Index(CalendarSpans, p.span)
		p.span, p.cursor = CalendarSpans[(i+1)%len(CalendarSpans)], 0
		p.view.Have = false
		return p.Refresh(s)
	case actOpen:
		if p.cursor >= len(rows) || s.Newest.At.IsZero() {
			s.Note = "there is nothing to replay"
			return nil
		}
		return s.Host.ReplayAt(rows[p.cursor].at)
	default:
		p.cursor = a.Moved(p.cursor, len(rows))
	}
	return nil
}

// calendarRow is one bucket; of is nil where no forwarder reported in it.
type calendarRow struct {
	at time.Time
	of *tsdb.LayerOccupancy
}

// rows are the buckets from the first that has data to the newest, the newest first.
func (p *calendarPage) rows() (rows []calendarRow) {
	v := &p.view.Value
	if v.BucketMillis <= 0 {
		return nil
	}
	next := int64(-1)
	for i := range v.Layer {
		l := &v.Layer[i]
		for ; next >= 0 && next < l.TimeMillis; next += v.BucketMillis {
			rows = append(rows, calendarRow{at: time.UnixMilli(next)})
		}
		rows = append(rows, calendarRow{at: time.UnixMilli(l.TimeMillis), of: l})
		next = l.TimeMillis + v.BucketMillis
	}
	slices.Reverse(rows)
	return rows
}

// table is what an export holds.
func (p *calendarPage) Table(*State) [][]string {
	out := [][]string{{"FROM", "FORWARDERS", "MIN %", "AVG %", "MAX %", "IMBALANCE %"}}
	for _, r := range p.rows() {
		line := []string{r.at.UTC().Format(time.RFC3339), "0", "", "", "", ""}
		if l := r.of; l != nil {
			line = []string{line[0], strconv.Itoa(l.Nodes), ratio(&l.Min), ratio(&l.Mean), ratio(&l.Max),
				ratio(&l.Imbalance)}
		}
		out = append(out, line)
	}
	return out
}

func (p *calendarPage) Title(*State, int) string { return " occupancy over " + p.span.Words }

func (p *calendarPage) Body(s *State, w, h int) []string {
	if !p.view.Have {
		return p.view.Missing(s, "the occupancy of "+p.span.Words, w)
	}
	v, rows := &p.view.Value, p.rows()
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	about := fmt.Sprintf(
		"Share of seconds in which a forwarder moved %s %% of its peak or more: the least, the mean and the most "+
			"over the forwarders that reported.", ratio(&v.Threshold))
	lines := paragraphs(w, about)
	if n := len(v.NoPeak); n > 0 {
		lines = append(lines,
			paragraphs(w, fmt.Sprintf(
				"Not counted because their peak is not known: %d of the forwarders. Set peak_bytes_per_sec "+
					"in fairwayd.toml.", n))...)
	}
	lines = append(lines, p.view.Old(s, "as it was", w)...)
	if len(rows) == 0 {
		text := "No second is stored in this range yet. The calendar fills as data arrives: does an agent run on " +
			"each forwarder? 'fairway doctor' says."
		return append(append(lines, ""), paragraphs(w, text)...)
	}
	cells := max(10, min(100, w-56))
	head := " " + left(p.stamp(rows[0].at, true), 17) + right("NODES", 6) + right("MIN", 5) + right("AVG", 5) +
		right("MAX", 5) + right("IMBAL", 7) + "  0" + right("100 %", cells-1)
	lines = append(lines, s.Bold(clip(head, w)))
	return append(lines, Lines(s.Palette, len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return p.line(&rows[i], cells) })...)
}

// stamp is how a bucket's beginning is named, or what that is called.
func (p *calendarPage) stamp(at time.Time, head bool) string {
	switch {
	case p.span.Bucket >= 24*time.Hour && head:
		return "DAY (UTC)"
	case p.span.Bucket >= 24*time.Hour:
		return at.UTC().Format("2006-01-02 Mon")
	case head:
		return "FROM"
	}
	return at.Local().Format("2006-01-02 15:04")
}

func (p *calendarPage) line(r *calendarRow, cells int) string {
	l := r.of
	if l == nil {
		return " " + left(p.stamp(r.at, false), 17) + right("0", 6) + right(missing, 5) + right(missing, 5) +
			right(missing, 5) + right(missing, 7) + "  no second is stored"
	}
	return " " + left(p.stamp(r.at, false), 17) + right(strconv.Itoa(l.Nodes), 6) + right(ratio(&l.Min), 5) +
		right(ratio(&l.Mean), 5) + right(ratio(&l.Max), 5) +
		right(ratio(&l.Imbalance), 7) + "  " + rangeBar(l.Min, l.Mean, l.Max, cells)
}
