package overview

import (
	"math"
	"strings"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

const (
	// besideFrom is from how many free lines on the forwarder under the cursor is drawn beside its peers.
	besideFrom = frame + 4
	// mostBeside is the top of that chart's scale: what takes longer is drawn as this.
	mostBeside = 50
)

// besideMarks are the labels of the chart's scale, which every page has.
var besideMarks = []struct {
	ratio float64
	label string
}{{1, "1x"}, {50, "50x"}, {10, "10x"}, {5, "5x"}, {2, "2x"}, {20, "20x"}}

// beside draws in a box how many times as long as its peers a forwarder took in the last five minutes: since when, and
// whether it lasts. It needs lines that nothing else wants; nothing of the past is at hand.
func beside(s *screen.State, r *api.ForwarderRow, w, h int) []string {
	if r.ID == "" || h < besideFrom || s.Replays() {
		return nil
	}
	lines := ratioGraph(s, r, w-frame, h-frame, s.SignLook(s.Sign(r)))
	return s.Palette.Box(chart.Clean(string(r.ID))+" beside its peers, 5 min", lines, w, h)
}

// ratioGraph draws on a logarithmic scale how many times as long as its peers a forwarder took.
func ratioGraph(s *screen.State, r *api.ForwarderRow, w, high int, look string) []string {
	pal := s.Palette
	slow := screen.SlowMinutes(s, r)
	values := make([]*float64, len(slow))
	for i, v := range slow {
		if v != nil {
			values[i] = new(math.Log(min(max(*v, 1), mostBeside)))
		}
	}
	labels := make([]string, high)
	for _, m := range besideMarks {
		row := high - 1 - min(high-1, int(math.Log(m.ratio)/math.Log(mostBeside)*float64(high)))
		if labels[row] == "" {
			labels[row] = m.label
		}
	}
	const label = 5
	lines := pal.Braille(values, math.Log(mostBeside), w-label, high)
	for i := range lines {
		if i < high-1 { // the lowest line is the peers' band
			lines[i] = pal.Paint(look, lines[i])
		}
		lines[i] = strings.TrimRight(pal.Paint(pal.Dim, chart.Right(labels[i], label-1))+" "+lines[i], " ")
	}
	return lines
}
