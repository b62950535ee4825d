package api

import (
	"math"

	"fairway/collector"
)

// The levels of a heat map's cell besides 0 to 9, which are tenths of full scale.
const (
	LevelIdle    = 10  // below 1 % of full scale
	LevelUnknown = 255 // no fresh value
)

// NextLevel is the level of a share of full scale, NaN for an unknown one. A shown level stays until the value is 3/4
// of a step away from its middle, so that a value on a border between two steps does not flicker. LevelUnknown stands
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
	if middle := (float64(shown) + 0.5) / 10; math.Abs(min(share, 1)-middle) < 0.075 {
		return shown
	}
	return want
}

// ForwarderScales are what the cells of forwarders can show, in the order of ForwarderRow.Levels: occupancy, then the
// scales of the catalogue.
var ForwarderScales = []string{"occ", "bw", "queue", "mdwait", "err"}

// SetLevels gives a row its levels, as they follow the shown ones; "" where none are shown yet.
func (r *ForwarderRow) SetLevels(shown string) {
	of := func(v *float64, full float64) float64 {
		if v == nil || full <= 0 {
			return math.NaN()
		}
		return *v / full
	}
	moved := of(r.ReadBytesPerSec, r.PeakBytesPerSec)
	if w := of(r.WriteBytesPerSec, r.PeakBytesPerSec); math.IsNaN(moved) {
		moved = w
	} else if !math.IsNaN(w) {
		moved += w
	}
	next := make([]byte, 0, len(ForwarderScales))
	for i, share := range [...]float64{of(r.Occupancy, 1), moved, of(r.QueueLen, collector.QueueLen.Info().Full),
		of(r.MetaWaitSeconds, collector.MetaWait.Info().Full), of(r.ErrorsPerSec, collector.Errors.Info().Full)} {
		before := byte(LevelUnknown)
		if i < len(shown) {
			before = levelOf(shown[i])
		}
		next = append(next, levelSign(NextLevel(before, share)))
	}
	r.Levels = string(next)
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
