package overview

import (
	"fmt"

	"fairway/collector"
	"fairway/webui/api"
)

// metric is what the grid's levels show.
type metric struct {
	name  string // in addresses
	title string
	full  string // what ten tenths are
}

// metrics are those of api.ForwarderScales.
var metrics = []metric{
	{"occ", "occupancy", "the last hour"},
	{"bw", "bandwidth", "its peak"},
	{"queue", "queue", full(collector.QueueLen, "waiting")},
	{"mdwait", "metadata wait", full(collector.MetaWait, "ms")},
	{"err", "errors", full(collector.Errors, "a second")},
}

// full is a metric's full scale with its unit.
func full(m collector.Metric, unit string) string {
	row := m.Info()
	return fmt.Sprintf("%g %s", row.Full*row.Unit.Info().Scale, unit)
}

// level is the level of a forwarder's cell: a digit, '.' or '-'.
func level(r *api.ForwarderRow, metric int) byte {
	if metric < len(r.Levels) {
		return r.Levels[metric]
	}
	return '-' // of a server that does not send it
}
