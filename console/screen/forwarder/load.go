package forwarder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/tsdb"
	"fairway/webui/api"
)

// load draws read and write as sparklines, then the numbers of this second against the peers'.
func (p *Screen) load(s *screen.State, w int) []string {
	d := &p.detail.Value
	r := s.Forwarder(p.id)
	if r == nil {
		r = &d.ForwarderRow
	}
	var lines, items []string
	var never []collector.Metric
	for _, m := range api.ListedMetrics {
		row, now := m.Info(), s.Value(r, r.Value(m))
		points := d.Series[m.String()]
		if now == nil && len(points) == 0 {
			if row.Forwarder&collector.Rare == 0 {
				never = append(never, m)
			}
			continue
		}
		earlier := ""
		if now == nil && s.Standing(r) != remap.ForwarderStale {
			now, earlier = lately(s, points)
		}
		peers := peers(chart.Metric(m, d.PeersMedian[m.String()]))
		if row.Unit != collector.BytesPerSec {
			items = append(items, row.Column.Name+" "+figure(m, now)+earlier+peers)
			continue
		}
		top := largest(points, d.PeakBytesPerSec/100)
		head := fmt.Sprintf(" %-5s %s  ", row.Column.Title, chart.Right(figure(m, now), 11))
		end := s.Shown.At.Add(time.Second)
		foot := fmt.Sprintf("  5 min, top %s%s", chart.Metric(m, &top), peers)
		lines = append(lines, chart.Clip(head+s.Palette.Sparkline(points, end, sparkSpan, top,
			min(60, w-1-len(head)-len(foot)))+foot, w))
	}
	if v := s.Value(r, r.Occupancy); v != nil {
		items = append(items, "occupancy "+chart.Ratio(v)+"%")
	}
	if busy, all := latest(d.Series["threads_busy"]), latest(d.Series["threads"]); busy != nil && all != nil &&
		s.Standing(r) != remap.ForwarderStale {
		items = append(items, fmt.Sprintf("threads %s/%.0f busy", chart.Count(busy), *all))
	}
	for _, l := range chart.WrapItems(append(items, p.waiting(s, r)...), w-1) {
		lines = append(lines, " "+l)
	}
	if len(never) > 0 && s.Standing(r) != remap.ForwarderStale {
		lines = append(lines, chart.LabelledItems("NOT KNOWN", unreported(d, never), w)...)
	}
	if d.BackEnd != "" {
		lines = append(lines, chart.LabelledItems("BACK END", []string{chart.Clean(d.BackEnd)}, w)...)
	}
	return lines
}

// unreported says what has not come for minutes, and why, by reason.
func unreported(d *api.ForwarderDetail, what []collector.Metric) (texts []string) {
	var reasons []string
	labels := map[string][]string{}
	for _, m := range what {
		why := chart.Clean(d.Unreported[m.String()])
		if labels[why] == nil {
			reasons = append(reasons, why)
		}
		labels[why] = append(labels[why], m.Info().Label)
	}
	for _, why := range reasons {
		text := strings.Join(labels[why], ", ")
		if why != "" {
			text += " (" + why + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

// figure is a metric's value in its unit.
func figure(m collector.Metric, v *float64) string {
	u := m.Info().Unit
	switch text := chart.Metric(m, v); {
	case v == nil || u == collector.Requests:
		return text
	case u == collector.Count:
		return fmt.Sprintf("%.0f", *v)
	case u == collector.OpsPerSec || u == collector.PerSec:
		return text + "/s"
	default:
		return text + " " + u.Info().Shown
	}
}

// lately is the newest value of a metric that does not come each second, and how long ago it came.
func lately(s *screen.State, points []tsdb.Point) (v *float64, ago string) {
	const most = time.Minute
	if len(points) == 0 {
		return nil, ""
	}
	switch age := s.Shown.At.Sub(time.UnixMilli(points[len(points)-1].TimeMillis)); {
	case age > most:
		return nil, ""
	case age > remap.LateAfter:
		ago = " " + chart.Age(age) + " ago"
	}
	return latest(points), ago
}

// others are the numbers that the forwarder reports besides those of the lists, in at most h lines.
func (p *Screen) others(s *screen.State, w, h int) []string {
	r := s.Forwarder(p.id)
	if h < 2 || r == nil || s.Standing(r) == remap.ForwarderStale {
		return nil
	}
	var items []string
	for _, m := range collector.ShownAs(topology.Forwarder, collector.Kept) {
		points := p.detail.Value.Series[m.String()]
		if len(points) == 0 || slices.Contains(api.ListedMetrics, m) {
			continue
		}
		if v, ago := lately(s, points); v != nil {
			items = append(items, m.Info().Label+" "+figure(m, v)+ago)
		}
	}
	lines := []string{s.Palette.Rule(w)}
	lines = append(lines, chart.LabelledItems("ALSO", items, w)...)
	if len(lines) > h {
		lines = lines[:h]
		lines[h-1] = chart.Clip(lines[h-1], w-3) + " .."
	}
	return lines
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
		return new(*wait / *exec)
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
func latest(points []tsdb.Point) *float64 {
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
func largest(points []tsdb.Point, floor float64) float64 {
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
		text := fmt.Sprintf("%s %s for %s, confidence %.2f: %s", f.ID, f.State, chart.Age(s.AsOf().Sub(f.From())),
			f.Confidence, f.Sentence)
		if f.Notes > 0 {
			text += "; " + screen.NoteWords(&f)
		}
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
