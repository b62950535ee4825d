package api

import (
	"fmt"
	"math"
	"slices"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// The levels of a heat map's cell besides 0 to 9, which are tenths of full scale.
const (
	LevelIdle    = 10  // below 1 % of full scale
	LevelUnknown = 255 // no fresh value
)

// NextLevel is the level of a share of full scale, NaN for an unknown one. A shown level stays until the value is 3/4
// of a step away from its centre, so that a value on a border between two steps does not flicker. LevelUnknown stands
// for a cell that shows none yet.
func NextLevel(shown byte, share float64) byte {
	if math.IsNaN(share) {
		return LevelUnknown
	}
	want := byte(LevelIdle)
	if share >= 0.01 {
		want = byte(min(9, int(share*10)))
	}
	switch {
	case want == shown || shown == LevelUnknown:
		return want
	case shown == LevelIdle && share < 0.0125, want == LevelIdle && share > 0.0075:
		return shown
	case shown == LevelIdle || want == LevelIdle:
		return want
	}
	if centre := (float64(shown) + 0.5) / 10; math.Abs(min(share, 1)-centre) < 0.075 {
		return shown
	}
	return want
}

// Scale is what the cells of a heat map can show: one metric, or some that are added up.
type Scale struct {
	Name    string // in addresses
	Label   string
	Metrics []collector.Metric
	// Full is the value of ten tenths; Peak says that a node's peak bandwidth is it where that is known.
	Full float64
	Peak bool
}

// ScalesOf are the scales of a layer's heat map, from the catalogue.
func ScalesOf(role topology.Role) (scales []Scale) {
	for _, m := range collector.ShownAs(role, collector.InScale) {
		row := m.Info()
		i := slices.IndexFunc(scales, func(s Scale) bool { return s.Name == row.Scale })
		if i < 0 {
			i = len(scales)
			scales = append(scales, Scale{Name: row.Scale, Label: row.Label, Full: row.Full,
				Peak: row.Unit == collector.BytesPerSec})
		}
		scales[i].Metrics = append(scales[i].Metrics, m)
	}
	for i, s := range scales {
		if len(s.Metrics) > 1 {
			scales[i].Label = sums[s.Name]
		}
	}
	return scales
}

// sums labels the scales to which several metrics add up.
var sums = map[string]string{"bw": "bandwidth", "latency": "latency"}

// FullText is full scale as people read it.
func (s *Scale) FullText() string {
	if s.Peak {
		return "its peak"
	}
	u := s.Metrics[0].Info().Unit.Info()
	return fmt.Sprintf("%g %s", s.Full*u.Scale, u.Shown)
}

var forwarderScales = ScalesOf(topology.Forwarder)

// ForwarderScales names what the cells of forwarders can show, in the order of ForwarderRow.Levels: slowness,
// occupancy, then the scales of the catalogue.
var ForwarderScales = func() []string {
	names := []string{"slow", "occ"}
	for _, s := range forwarderScales {
		names = append(names, s.Name)
	}
	return names
}()

// MostSlow is the slowness, in times the peers', of a cell's highest level; the scale is logarithmic.
const MostSlow = 50

// SetLevels gives a row its levels, as they follow the shown ones; "" where none are shown yet.
func (r *ForwarderRow) SetLevels(shown string) {
	next := make([]byte, 0, len(ForwarderScales))
	add := func(share float64) {
		before := byte(LevelUnknown)
		if i := len(next); i < len(shown) {
			before = levelOf(shown[i])
		}
		next = append(next, levelSign(NextLevel(before, share)))
	}
	switch {
	case r.Slow != nil: // one that works is not idle, however fast it is
		add(max(0.02, math.Log(max(1, *r.Slow))/math.Log(MostSlow)))
	case r.State == remap.ForwarderUnknown || r.State.Failed() || r.State == remap.ForwarderSuspect:
		add(math.NaN())
	default:
		add(0)
	}
	if r.Occupancy == nil {
		add(math.NaN())
	} else {
		add(*r.Occupancy)
	}
	for i := range forwarderScales {
		add(r.share(&forwarderScales[i]))
	}
	r.Levels = string(next)
}

// share is the row's part of a scale's full scale, NaN where it is not known.
func (r *ForwarderRow) share(s *Scale) float64 {
	full, sum := s.Full, math.NaN()
	if s.Peak {
		full = r.PeakBytesPerSec
	}
	for _, m := range s.Metrics {
		switch v := r.Value(m); {
		case v == nil || full <= 0:
		case math.IsNaN(sum):
			sum = *v / full
		default:
			sum += *v / full
		}
	}
	return sum
}

// levelSign is how a row writes a level.
func levelSign(level byte) byte {
	switch level {
	case LevelIdle:
		return '.'
	case LevelUnknown:
		return '-'
	}
	return '0' + level
}

func levelOf(sign byte) byte {
	switch {
	case sign == '.':
		return LevelIdle
	case sign >= '0' && sign <= '9':
		return sign - '0'
	}
	return LevelUnknown
}
