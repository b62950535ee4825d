package screen

import (
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/webui/api"
)

// Only the graph of a slow forwarder has the colour of slow ones, though a healthy one took long for a moment.
func TestGraphsHaveTheColourOfTheirForwardersState(t *testing.T) {
	now, slow := time.Unix(1000, 0), 9.0
	s := &State{Now: now, Received: now, Palette: chart.NewPalette(chart.Colors256, false)}
	s.Shown.At, s.Shown.SentAt = now, now
	s.Trend.waits = map[topology.ForwarderID][]*float64{"fwd000": {&slow}}
	for state, look := range map[remap.ForwarderState]string{remap.ForwarderSlow: s.Palette.Slow,
		remap.ForwarderSuspect: s.Palette.Suspect, remap.ForwarderOK: ""} {
		for _, c := range ForwarderColumns(s) {
			if c.Name != Graph {
				continue
			}
			got := c.Text(&api.ForwarderRow{ID: "fwd000", State: state})
			if strings.Contains(got, "\x1b") != (look != "") || !strings.Contains(got, look) {
				t.Errorf("the graph of a forwarder that is %s is %q", state, got)
			}
		}
	}
}
