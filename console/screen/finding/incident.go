package finding

import (
	"fmt"
	"strings"
	"time"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/tsdb"
	"fairway/webui/incident"
)

// victims are the jobs that wait, and the moves against that with what they brought.
func (p *Screen) victims(w int) (lines []string) {
	if !p.inc.Have {
		return nil
	}
	const most = 6
	inc := p.inc.Value
	for _, v := range inc.Victims[:min(most, len(inc.Victims))] {
		lines = append(lines, chart.Clip(" "+chart.Clean(v.Text), w))
	}
	if n := len(inc.Victims) - most; n > 0 {
		lines = append(lines, fmt.Sprintf(" and %d more", n))
	}
	for _, move := range inc.Plans {
		line := fmt.Sprintf(" %s %s: %s", move.ID, strings.ReplaceAll(string(move.State), "_", " "), move.Title)
		if move.Brought != "" {
			line += "; " + move.Brought
		}
		lines = append(lines, chart.Paragraphs(w, chart.Clean(line))...)
	}
	return lines
}

// beside draws the series beside the peers', those that differ most first.
func beside(s *screen.State, inc *incident.Incident, w int) []string {
	of := &inc.Series
	lines := []string{chart.Clip(fmt.Sprintf(" EVIDENCE of %s, beside the median of its peers",
		remap.Span(of.To.Sub(of.From).Seconds())), w)}
	labelled := 12
	for _, c := range of.Charts {
		labelled = max(labelled, len(c.Label)+1)
	}
	for _, c := range of.Charts {
		var points []tsdb.Point
		top, last, peers := 0.0, "-", "-"
		for i, v := range c.Node {
			if v != nil {
				at := of.From.Add(time.Duration(i*of.StepSeconds) * time.Second)
				points = append(points, tsdb.Point{TimeMillis: at.UnixMilli(), Value: *v})
				top, last = max(top, *v), chart.Number(*v*c.Scale)
			}
			if i < len(c.Mid) && c.Mid[i] != nil {
				peers = chart.Number(*c.Mid[i] * c.Scale)
			}
		}
		tail := fmt.Sprintf("  %s %s, peers %s", strings.TrimSpace(last), c.Unit, strings.TrimSpace(peers))
		look := ""
		if c.Says != "" { // the newest second is not what the ratio is of
			tail = "  " + strings.TrimPrefix(chart.Clean(c.Means)+": "+chart.Clean(c.Says), ": ")
			look = s.SignLook(" !")
		}
		head := " " + chart.Left(c.Label, labelled)
		width := max(1, min(60, w-2-len(head)-34))
		graph := s.Palette.Sparkline(points, of.To, of.To.Sub(of.From), top, width)
		lines = append(lines, chart.Clip(head+s.Palette.Paint(look, graph)+tail, w))
	}
	return lines
}
