package console

import (
	"fmt"
	"math"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// metric is what the grid's levels show.
type metric struct {
	name  string // in addresses
	title string
	full  string // what ten tenths are
	// share is the value in parts of its full scale, nil where it is not known.
	share func(*api.ForwarderRow) *float64
}

// Full scales of the metrics that have no peak of their own.
const (
	fullQueueLen    = 64  // requests waiting
	fullMetaSeconds = 0.1 // s
	fullErrorsPerS  = 10  // 1/s
)

var metrics = []metric{
	{"occ", "occupancy", "the last hour", func(r *api.ForwarderRow) *float64 { return r.Occupancy }},
	{"bw", "bandwidth", "its peak", func(r *api.ForwarderRow) *float64 {
		return part(sum(r.ReadBytesPerSec, r.WriteBytesPerSec), r.PeakBytesPerSec)
	}},
	{"queue", "queue", fmt.Sprint(fullQueueLen, " waiting"),
		func(r *api.ForwarderRow) *float64 { return part(r.QueueLen, fullQueueLen) }},
	{"mdwait", "metadata wait", fmt.Sprint(fullMetaSeconds*1000, " ms"),
		func(r *api.ForwarderRow) *float64 { return part(r.MetaWaitSeconds, fullMetaSeconds) }},
	{"err", "errors", fmt.Sprint(fullErrorsPerS, " a second"),
		func(r *api.ForwarderRow) *float64 { return part(r.ErrorsPerSec, fullErrorsPerS) }},
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

// The levels below the digits.
const (
	levelIdle    = -1 // below 1 % of full
	levelUnknown = -2
)

// level is the tenth in which a share lies.
func level(share *float64) int {
	switch {
	case share == nil || math.IsNaN(*share):
		return levelUnknown
	case *share < 0.01:
		return levelIdle
	}
	return min(9, int(*share*10))
}

// nextLevel is level with hysteresis: the shown step stays until the value is 3/4 of a step away
// from its middle, so that a value on a border neither flickers nor costs bytes every second.
func nextLevel(shown int, share *float64) int {
	want := level(share)
	if want == shown || want == levelUnknown || shown == levelUnknown {
		return want
	}
	if shown == levelIdle {
		if *share < 0.0125 {
			return shown
		}
		return want
	}
	if want == levelIdle {
		if *share > 0.0075 {
			return shown
		}
		return want
	}
	if middle := (float64(shown) + 0.5) / 10; math.Abs(min(*share, 1)-middle) < 0.075 {
		return shown
	}
	return want
}

// levels moves every forwarder's shown level to its new value.
func levels(shown map[topology.ForwarderID]int, rows []api.ForwarderRow, m metric) map[topology.ForwarderID]int {
	next := make(map[topology.ForwarderID]int, len(rows))
	for i := range rows {
		share := m.share(&rows[i])
		if old, ok := shown[rows[i].ID]; ok {
			next[rows[i].ID] = nextLevel(old, share)
		} else {
			next[rows[i].ID] = level(share)
		}
	}
	return next
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
