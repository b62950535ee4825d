package overview

import (
	"fairway/collector/topology"
	"fairway/console/screen"
	"fairway/webui/api"
)

// metric is what the grid's levels show.
type metric struct {
	name  string // in addresses
	title string
	full  string // what ten tenths are
}

// metrics are how slow a forwarder is, and api.ForwarderScales.
var metrics = func() []metric {
	all := []metric{{"slow", "slowness", "50 times its peers, log scale"}, {"occ", "occupancy", "the last hour"}}
	for _, s := range api.ScalesOf(topology.Forwarder) {
		all = append(all, metric{s.Name, s.Label, s.FullText()})
	}
	return all
}()

// columns are what lists are ordered by when the grid shows a metric.
var columns = map[string]string{"slow": screen.BySlowness, "occ": "occ", "bw": "moves", "queue": "queue",
	"mdwait": "mdwait", "err": "errors"}

// level is the level of a forwarder's cell: a digit, '.' or '-'.
func level(r *api.ForwarderRow, metric int) byte {
	if metric < len(r.Levels) {
		return r.Levels[metric]
	}
	return '-' // of a server that does not send it
}
