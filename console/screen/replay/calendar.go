package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
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

// CalendarOf is what the key opens: the days.
const CalendarOf = "month"

// Calendar shows how often forwarders were near their peak: the least, the mean and the most busy
// of them in each bucket of time ("End-to-end I/O Monitoring on a Leading Supercomputer", NSDI'19,
// figure 3), the newest first.
type Calendar struct {
	screen.Place
	screen.Page[api.OccupancyView]
	span   CalendarSpan
	cursor int
}

func NewCalendar(span string) *Calendar {
	i := slices.IndexFunc(CalendarSpans, func(c CalendarSpan) bool { return c.Name == span })
	one := CalendarSpans[max(0, i)]
	return &Calendar{Place: screen.Place{On: screen.OnCalendar, At: screen.Address{Page: "occupancy", Span: one.Name}},
		span: one}
}

// Refresh asks again as soon as the newest bucket may look different.
func (p *Calendar) Refresh(s *screen.State) tea.Cmd {
	span := p.span
	p.Load.Again = max(10*time.Second, span.Bucket/60)
	return p.Load.Refresh(s, "occupancy of "+span.Words, func(ctx context.Context) (api.OccupancyView, error) {
		return s.Server.Occupancy(ctx, span.Range, span.Bucket)
	})
}

func (p *Calendar) Act(s *screen.State, a screen.Action) tea.Cmd {
	rows := p.rows()
	switch a {
	case screen.ActMetric:
		i := slices.Index(CalendarSpans, p.span)
		p.span, p.cursor = CalendarSpans[(i+1)%len(CalendarSpans)], 0
		p.At.Span, p.Load.Have = p.span.Name, false
		return p.Refresh(s)
	case screen.ActOpen:
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
func (p *Calendar) rows() (rows []calendarRow) {
	v := &p.Load.Value
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

// Table is what an export holds.
func (p *Calendar) Table(*screen.State) [][]string {
	out := [][]string{{"FROM", "FORWARDERS", "MIN %", "AVG %", "MAX %", "IMBALANCE %"}}
	for _, r := range p.rows() {
		line := []string{r.at.UTC().Format(time.RFC3339), "0", "", "", "", ""}
		if l := r.of; l != nil {
			line = []string{line[0], strconv.Itoa(l.Nodes), chart.Ratio(&l.Min), chart.Ratio(&l.Mean),
				chart.Ratio(&l.Max),
				chart.Ratio(&l.Imbalance)}
		}
		out = append(out, line)
	}
	return out
}

func (p *Calendar) Title(*screen.State, int) string { return " occupancy over " + p.span.Words }

func (p *Calendar) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have {
		return p.Load.Missing(s, "the occupancy of "+p.span.Words, w)
	}
	v, rows := &p.Load.Value, p.rows()
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	about := fmt.Sprintf(
		"Share of seconds in which a forwarder moved %s %% of its peak or more: the least, the mean and the most "+
			"over the forwarders that reported.", chart.Ratio(&v.Threshold))
	lines := chart.Paragraphs(w, about)
	if n := len(v.NoPeak); n > 0 {
		lines = append(lines,
			chart.Paragraphs(w, fmt.Sprintf(
				"Not counted because their peak is not known: %d of the forwarders. Set peak_bytes_per_sec "+
					"in fairwayd.toml.", n))...)
	}
	lines = append(lines, p.Load.Old(s, "as it was", w)...)
	if len(rows) == 0 {
		text := "No second is stored in this range yet. The calendar fills as data arrives: does an agent run on " +
			"each forwarder? 'fairway doctor' says."
		return append(append(lines, ""), chart.Paragraphs(w, text)...)
	}
	cells := max(10, min(100, w-56))
	head := " " + chart.Row(calendarWidths, p.stamp(rows[0].at, true), "NODES", "MIN", "AVG", "MAX", "IMBAL") + "  0" +
		chart.Right("100 %", cells-1)
	lines = append(lines, s.Bold(chart.Clip(head, w)))
	return append(lines, table.Lines(s.Palette, len(rows), p.cursor, w, h-len(lines), "",
		func(i int) string { return p.line(&rows[i], cells) })...)
}

// stamp is how a bucket's beginning is named, or what that is called.
func (p *Calendar) stamp(at time.Time, head bool) string {
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

// calendarWidths are those of a line before its bar.
var calendarWidths = []int{-17, 6, 5, 5, 5, 7}

func (p *Calendar) line(r *calendarRow, cells int) string {
	at, l := p.stamp(r.at, false), r.of
	if l == nil {
		return " " + chart.Row(calendarWidths, at, "0", chart.Missing, chart.Missing, chart.Missing, chart.Missing) +
			"  no second is stored"
	}
	return " " + chart.Row(calendarWidths, at, strconv.Itoa(l.Nodes), chart.Ratio(&l.Min), chart.Ratio(&l.Mean),
		chart.Ratio(&l.Max), chart.Ratio(&l.Imbalance)) + "  " + chart.RangeBar(l.Min, l.Mean, l.Max, cells)
}
