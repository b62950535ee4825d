package console

import (
	"fmt"

	"fairway/collector"
	"fairway/remap"
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

func part(v *float64, of float64) *float64 {
	if v == nil || of <= 0 {
		return nil
	}
	p := *v / of
	return &p
}

// sum adds what is known; nil when nothing is.
func sum(values ...*float64) *float64 {
	var total *float64
	for _, v := range values {
		if v == nil {
			continue
		}
		if total == nil {
			total = new(float64)
		}
		*total += *v
	}
	return total
}

// mark is the sign of a forwarder's standing in its cell; planned says that a waiting plan touches it.
func mark(st remap.ForwarderState, planned bool) byte {
	switch st {
	case remap.ForwarderStale:
		return '?'
	case remap.ForwarderExcluded:
		return 'x'
	case remap.ForwarderSuspect:
		return '!'
	}
	if planned {
		return '>'
	}
	if st == remap.ForwarderDedicated {
		return 'd'
	}
	return ' '
}
