package forwarder

import (
	"fmt"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// load draws read and write as sparklines, then the numbers of this second against the peers'.
func (p *Screen) load(s *screen.State, w int) []string {
	d := &p.detail.Value
	r := s.Forwarder(p.id)
	if r == nil {
		r = &d.ForwarderRow
	}
	var lines, items, never []string
	for _, m := range api.ListedMetrics {
		row, now := m.Info(), s.Value(r, r.Value(m))
		points := d.Series[m.String()]
		if now == nil && len(points) == 0 {
			if row.Forwarder&collector.Rare == 0 {
				never = append(never, row.Label)
			}
			continue
		}
		peers := peers(chart.Metric(m, d.PeersMedian[m.String()]))
		unit := " " + row.Unit.Info().Shown
		switch row.Unit {
		case collector.Requests:
			unit = ""
		case collector.OpsPerSec, collector.PerSec:
			unit = "/s"
		}
		if row.Unit != collector.BytesPerSec {
			items = append(items, row.Column.Name+" "+chart.Metric(m, now)+unit+peers)
			continue
		}
		top := largest(points, d.PeakBytesPerSec/100)
		head := fmt.Sprintf(" %-5s %s  ", row.Column.Title, chart.Right(chart.Metric(m, now)+unit, 11))
		end := s.Shown.At.Add(time.Second)
		foot := fmt.Sprintf("  5 min, top %s%s", chart.Metric(m, &top), peers)
		lines = append(lines, chart.Clip(head+s.Palette.Sparkline(points, end, sparkSpan, top,
			min(60, w-1-len(head)-len(foot)))+foot, w))
	}
	if v := s.Value(r, r.Occupancy); v != nil {
		items = append(items, "occupancy "+chart.Ratio(v)+"%")
	}
	if busy, all := latest(d.Series["threads_busy"]), latest(d.Series["threads"]); all != nil &&
		s.Standing(r) != remap.ForwarderStale {
		items = append(items, fmt.Sprintf("threads %s/%s busy", chart.Count(busy), chart.Count(all)))
	}
	for _, l := range chart.WrapItems(append(items, p.waiting(s, r)...), w-1) {
		lines = append(lines, " "+l)
	}
	if len(never) > 0 && s.Standing(r) != remap.ForwarderStale {
		for _, l := range chart.Wrap(unreported(d, never), w-1) {
			lines = append(lines, " "+l)
		}
	}
	return lines
}

// unreported says what has not come for minutes, and why where that is known.
func unreported(d *api.ForwarderDetail, what []string) string {
	why := "fairway doctor says what to switch on"
	if len(d.Series[collector.RoutedBytes.String()]) > 0 {
		why = "a router knows no files and no direction"
	}
	return fmt.Sprintf("not reported: %s (%s)", strings.Join(what, ", "), why)
}

// waiting says how many times as long as in service requests wait, where the forwarder reports both.
func (p *Screen) waiting(s *screen.State, r *api.ForwarderRow) (items []string) {
	if s.Standing(r) == remap.ForwarderStale {
		return nil
	}
	times := func(wait, exec *float64) *float64 {
		if wait == nil || exec == nil || *exec <= 0 {
			return nil
		}
		v := *wait / *exec
		return &v
	}
	name := "wait/exec "
	for _, class := range []string{"write", "read"} {
		own := times(latest(p.detail.Value.Series[class+"_wait"]), latest(p.detail.Value.Series[class+"_exec"]))
		if own == nil {
			continue
		}
		items = append(items, fmt.Sprintf("%s%s %sx%s", name, class, chart.Number(*own),
			peers(chart.Count(times(p.detail.Value.PeersMedian[class+"_wait"],
				p.detail.Value.PeersMedian[class+"_exec"])))))
		name = ""
	}
	return items
}

// latest is a series' newest value; nil without one.
func latest(points []api.Point) *float64 {
	if len(points) == 0 {
		return nil
	}
	return &points[len(points)-1].Value
}

// peers says what the median of the other forwarders is, where it is known.
func peers(median string) string {
	if median == chart.Missing {
		return ""
	}
	return " (peers " + median + ")"
}

// largest is the largest value of a series, at least floor.
func largest(points []api.Point, floor float64) float64 {
	top := max(floor, 1)
	for _, p := range points {
		top = max(top, p.Value)
	}
	return top
}

// findings are the open ones of this node with their evidence, and the plan that touches it.
func findings(s *screen.State, id topology.ForwarderID, w int) []string {
	var lines []string
	for _, f := range screen.OpenFindings(s.Shown.Findings) {
		if f.Node != id.Node() {
			continue
		}
		text := fmt.Sprintf("%s %s for %s, confidence %.2f: %s", f.ID, f.State, chart.Age(s.AsOf().Sub(f.Since)),
			f.Confidence, f.Sentence)
		for _, l := range chart.Wrap(chart.Clean(text), w-2) {
			lines = append(lines, " "+l)
		}
	}
	if n := screen.NeedOf(s, string(id)); n != nil {
		return append(lines, screen.NeedLines(s, n, w)...)
	}
	if r := s.Forwarder(id); r != nil && r.Plan != "" {
		lines = append(lines, chart.Clip(" Plan "+chart.Clean(r.Plan)+" touches it ("+s.Key(screen.ActPlans)+
			" lists the plans).", w))
	}
	return lines
}
