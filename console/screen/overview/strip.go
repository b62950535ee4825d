package overview

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// gauge is one number of the layer with its last fifteen minutes.
type gauge struct {
	name, value string
	of          func(*api.LayerNow) *float64
}

// bandwidth is in the unit that fits.
func bandwidth(v *float64) string {
	if v != nil && *v >= 1e10 {
		return chart.Number(*v/1e9) + " GB/s"
	}
	return chart.Mega(v) + " MB/s"
}

// gauges are the machine strip's: what moves, metadata, how long clients wait, what waits.
func gauges(now *api.LayerNow) []gauge {
	all := []gauge{
		{"write", bandwidth(now.WriteBytesPerSec), func(n *api.LayerNow) *float64 { return n.WriteBytesPerSec }},
		{"read", bandwidth(now.ReadBytesPerSec), func(n *api.LayerNow) *float64 { return n.ReadBytesPerSec }},
		{"metadata", chart.Thousands(now.MetaOpsPerSec) + "/s",
			func(n *api.LayerNow) *float64 { return n.MetaOpsPerSec }},
		{"waiting", chart.Thousands(now.Waiting), func(n *api.LayerNow) *float64 { return n.Waiting }},
		{"wait p50", chart.Millis(now.P50) + " ms", func(n *api.LayerNow) *float64 { return n.P50 }},
		{"wait p95", chart.Millis(now.P95) + " ms", func(n *api.LayerNow) *float64 { return n.P95 }},
	}
	if now.RoutedBytesPerSec != nil && now.ReadBytesPerSec == nil && now.WriteBytesPerSec == nil {
		all[0] = gauge{"routed", bandwidth(now.RoutedBytesPerSec),
			func(n *api.LayerNow) *float64 { return n.RoutedBytesPerSec }}
		all = slices.Delete(all, 1, 3) // routers know neither reads nor metadata
	}
	return all
}

// moves is what all forwarders move.
func moves(n *api.LayerNow) *float64 {
	return screen.Sum(screen.Sum(n.ReadBytesPerSec, n.WriteBytesPerSec), n.RoutedBytesPerSec)
}

// now is the mean of the last 6 to 10 s; nothing of data that is too old.
func now(s *screen.State) *api.LayerNow {
	if s.Shown.Now == nil || s.Stale() {
		return &api.LayerNow{}
	}
	return s.Shown.Now
}

// graph is the last fifteen minutes of one in so many lines; latencies are drawn on a log scale.
func (g *gauge) graph(s *screen.State, w, high int) []string {
	if s.Replays() { // those minutes are of now
		return slices.Repeat([]string{strings.Repeat(" ", max(0, w))}, high)
	}
	values := s.Trend.Layer(g.of)
	top := chart.Most(values)
	if strings.HasPrefix(g.name, "wait p") {
		values = slices.Clone(values)
		least := math.Inf(1)
		for _, v := range values {
			if v != nil && *v > 0 {
				least = min(least, *v)
			}
		}
		for i, v := range values {
			if v != nil && *v > 0 {
				values[i] = new(math.Log(*v/least) + 0.2)
			}
		}
		top = math.Log(top/least) + 0.4
	}
	lines := s.Palette.Graph(values, top*1.001, w, high)
	if high > 1 && strings.HasPrefix(g.name, "wait") {
		lines = s.Palette.Braille(values, top*1.001, w, high)
	}
	if s.Palette.Blocks { // what was not watched yet is time, too
		last := lines[high-1]
		blank := min(s.Trend.Unwatched(w), len(last)-len(strings.TrimLeft(last, " ")))
		lines[high-1] = strings.Repeat("·", blank) + last[blank:]
	}
	return lines
}

// stripTitle says how much of the strip's time was watched, where that is not all of it.
func stripTitle(s *screen.State) string {
	const title = "machine, 15 min"
	if begun := s.Trend.Begun(); !s.Replays() && !begun.IsZero() {
		return title + ", watched for " + chart.Age(s.Now.Sub(begun))
	}
	return title
}

// strip draws the machine in a box of w columns and three times high lines, on one time axis.
func strip(s *screen.State, w, high int) []string {
	all := gauges(now(s))
	half := (w - 5) / 2
	cell := func(g *gauge, w int) []string {
		label := fmt.Sprintf("%s %s ", chart.Left(g.name, 8), chart.Right(g.value, 9))
		lines := g.graph(s, w-len(label), high)
		for i := range lines {
			lines[i] = label + s.Palette.Paint(s.Palette.Accent, lines[i])
			label = strings.Repeat(" ", len(label))
		}
		return lines
	}
	side := s.Palette.Side()
	var out []string
	for i := 0; i < len(all); i += 2 {
		left, right := cell(&all[i], half), cell(&all[i+1], half)
		for k := range left {
			out = append(out, " "+chart.Left(left[k], half)+side+right[k])
		}
	}
	return out
}

// wideStrip draws the machine in four cells beside each other: a line of numbers over so many lines of chart.
func wideStrip(s *screen.State, w, high int) []string {
	all := gauges(now(s))
	if len(all) > 4 { // moved, metadata, latency, waiting
		n := now(s)
		all = []gauge{{"moved", bandwidth(moves(n)), moves}, all[2], all[len(all)-1], all[3]}
	}
	each := w/len(all) - 3
	side := s.Palette.Side()
	out := make([]string, high+1)
	for i := range all {
		cell := append([]string{chart.Ends(s.Palette.Paint(s.Palette.Dim, all[i].name),
			s.Palette.Paint(s.Palette.Bold, all[i].value), each)}, all[i].graph(s, each, high)...)
		for k := range cell {
			if k > 0 {
				cell[k] = s.Palette.Paint(s.Palette.Accent, cell[k])
			}
			if i > 0 {
				out[k] += side
			} else {
				out[k] = " "
			}
			out[k] += chart.Left(cell[k], each)
		}
	}
	return out
}

// shortStrip is the machine in one line.
func shortStrip(s *screen.State, w int) string {
	n := now(s)
	all := gauges(n)
	peak := 0.0
	for i := range s.Shown.Forwarders {
		peak += s.Shown.Forwarders[i].PeakBytesPerSec
	}
	texts := []string{"moves ", " " + rate(moves(n), peak), "  md ", " " + chart.Thousands(n.MetaOpsPerSec), "  p95 ",
		" " + chart.Millis(n.P95) + " ms"}
	room := w - 1 - len(strings.Join(texts, ""))
	parts := []gauge{{"moves", "", moves},
		{"metadata", "", func(n *api.LayerNow) *float64 { return n.MetaOpsPerSec }}, all[len(all)-1]}
	line := " "
	for i := range parts {
		wide := room / 3
		if i == 0 {
			wide += room % 3
		}
		line += texts[2*i] + s.Palette.Paint(s.Palette.Accent, parts[i].graph(s, max(4, wide), 1)[0]) + texts[2*i+1]
	}
	return chart.Clip(line, w)
}

// rate is what moves, of the layer's peak where that is known, in the unit that fits.
func rate(moved *float64, peak float64) string {
	if moved == nil {
		return "- MB/s"
	}
	unit, scale := "MB/s", 1e6
	if max(*moved, peak) >= 1e10 {
		unit, scale = "GB/s", 1e9
	}
	if peak <= 0 {
		return chart.Number(*moved/scale) + " " + unit
	}
	return chart.Number(*moved/scale) + "/" + chart.Number(peak/scale) + " " + unit
}

// detail draws the forwarder under the cursor in w columns.
func (p *Screen) detail(s *screen.State, r *api.ForwarderRow, w, h int) []string {
	if r.ID == "" || h < 4 {
		return nil
	}
	pal := s.Palette
	sign := s.Sign(r)
	f := s.Accused(r.ID)
	head := chart.Clean(string(r.ID)) + "  " + s.StandingText(r)
	if f != nil {
		head = screen.Says(f)
	}
	out := []string{pal.Paint(s.SignLook(sign), chart.Clip(sign+" "+head, w))}
	if whole := chart.Wrap(head, w-3); len(whole) == 2 {
		out = []string{pal.Paint(s.SignLook(sign), sign+" "+whole[0]), pal.Paint(s.SignLook(sign), "   "+whole[1])}
	}
	add := func(label, text string) {
		out = append(out, chart.Clip(" "+chart.Left(label, 9)+text, w))
	}
	if f != nil {
		text := fmt.Sprintf("%s %s for %s", chart.Clean(f.ID), screen.StateOf(s, f), chart.Age(s.AsOf().Sub(f.From())))
		add("finding", screen.Fitting([]string{text + ", " + anomaly.Counted(r.Clients, "node"), text}, w-10))
		if n := screen.NeedOf(s, f.ID); n != nil && len(n.Victims) > 0 {
			add("victims", screen.Fitting(screen.VictimWords(n.Victims), w-10))
		}
	} else {
		add("serves", screen.Serves(r))
	}
	const behind = len(" over 100x, 5 min") // the graph has one width, whatever stands behind it
	add("slow", pal.SlowGraph(screen.SlowMinutes(s, r), max(8, w-len(" finding  ")-behind), s.SignLook(sign))+" "+
		chart.Times(s.Value(r, r.Slow))+", 5 min")
	routed, l := s.Value(r, r.Value(collector.RoutedBytes)), s.Value(r, r.Latency)
	switch {
	case routed != nil && l != nil:
		add("transit", chart.Millis(l)+" ms that a message is in it")
	case l != nil:
		add("latency", fmt.Sprintf("%s ms; median of all %s", chart.Millis(l), chart.Millis(now(s).P50)))
	case s.Standing(r) != remap.ForwarderStale: // else nobody knows
		add("latency", "no client does I/O through it now")
	}
	value := func(m collector.Metric) string { return chart.Metric(m, s.Value(r, r.Value(m))) }
	data := fmt.Sprintf("read %s, write %s MB/s", value(collector.ReadBytes), value(collector.WriteBytes))
	if routed != nil {
		data = value(collector.RoutedBytes) + " MB/s in both directions"
	}
	add("moves", data)
	add("queue", fmt.Sprintf("%s; occupancy %s %%", value(collector.QueueLen), chart.Ratio(s.Value(r, r.Occupancy))))
	if r.TopJob != "" {
		add("top job", s.TopJob(r))
	}
	if r.Plan != "" {
		add("plan", chart.Clean(r.Plan)+" waits: "+s.Key(screen.ActApprove))
	}
	keys := fmt.Sprintf("%s page   %s move its jobs   %s why", s.Key(screen.ActOpen), s.Key(screen.ActPropose),
		s.Key(screen.ActWhy))
	out = append(out, "", pal.Paint(pal.Accent, chart.Clip(" "+keys, w)))
	return out[:min(len(out), h)]
}
