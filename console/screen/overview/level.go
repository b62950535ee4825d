package overview

import (
	"fairway/collector/topology"
	"fairway/webui/api"
)

// metric is what the grid's levels show.
type metric struct {
	name  string // in addresses
	title string
	full  string // what ten tenths are
}

// metrics are those of api.ForwarderScales.
var metrics = func() []metric {
	all := []metric{{"occ", "occupancy", "the last hour"}}
	for _, s := range api.ScalesOf(topology.Forwarder) {
		all = append(all, metric{s.Name, s.Label, s.FullText()})
	}
	return all
}()

// level is the level of a forwarder's cell: a digit, '.' or '-'.
func level(r *api.ForwarderRow, metric int) byte {
	if metric < len(r.Levels) {
		return r.Levels[metric]
	}
	return '-' // of a server that does not send it
}
