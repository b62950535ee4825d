package remap

import (
	"time"

	"fairway/collector"
)

// idleShare is the share of its peak below which a forwarder counts as idle; idleBytesPerSec stands
// in where the peak is not known.
const (
	idleShare       = 0.01
	idleBytesPerSec = 1e6
	idleOps         = 10 // a storm of metadata moves no bytes and is work all the same
)

// LoadOf is the load that a forwarder's values of a second report; value returns nil for one that is not known.
func LoadOf(value func(collector.Metric) *float64, lastSeen time.Time, peakBytesPerSec float64) Load {
	l := Load{LastSeen: lastSeen, PeakBytesPerSec: peakBytesPerSec,
		ReadBytesPerSec: value(collector.ReadBytes), WriteBytesPerSec: value(collector.WriteBytes),
		RoutedBytesPerSec: value(collector.RoutedBytes), MetaOpsPerSec: value(collector.MetaOps)}
	if r, w := value(collector.ReadOps), value(collector.WriteOps); r != nil && w != nil {
		ops := *r + *w
		l.DataOpsPerSec = &ops
	}
	return l
}

// LoadOfFrame is the load of a forwarder's newest second.
func LoadOfFrame(f *collector.Frame, peakBytesPerSec float64, now time.Time) Load {
	seen := time.UnixMilli(f.TimeMillis + 1000)
	if seen.After(now) {
		seen = now
	}
	return LoadOf(func(m collector.Metric) *float64 {
		if v, ok := f.Value(m); ok && collector.IsValue(v) {
			return &v
		}
		return nil
	}, seen, peakBytesPerSec)
}

// Rate is what the forwarder moves, in bytes/s, and whether all of it is known. Of one that reports one direction
// only, it is that direction.
func (l *Load) Rate() (bytesPerSec float64, known bool) {
	for _, v := range [...]*float64{l.ReadBytesPerSec, l.WriteBytesPerSec, l.RoutedBytesPerSec} {
		if v != nil {
			bytesPerSec += *v
		}
	}
	switch {
	case l.ReadBytesPerSec != nil && l.WriteBytesPerSec != nil, l.router():
		known = true
	case l.DataOpsPerSec != nil && *l.DataOpsPerSec == 0: // nothing was asked for, so nothing moved
		known = true
	}
	return bytesPerSec, known
}

// Known says whether all that the forwarder moves is known.
func (l *Load) Known() bool {
	_, known := l.Rate()
	return known
}

// router says that the forwarder forwards messages and knows no files: it has no metadata of its own.
func (l *Load) router() bool {
	return l.RoutedBytesPerSec != nil && l.ReadBytesPerSec == nil && l.WriteBytesPerSec == nil
}

// Busy is the rate as a share of the peak, at most 1; nil where either is not known.
func (l *Load) Busy() *float64 {
	rate, known := l.Rate()
	if !known || l.PeakBytesPerSec <= 0 {
		return nil
	}
	share := min(1, rate/l.PeakBytesPerSec)
	return &share
}

// state is what the load alone says: busy is shown by what is known, idle only when everything is.
func (l *Load) state() ForwarderState {
	rate, known := l.Rate()
	idleBelow := float64(idleBytesPerSec)
	if l.PeakBytesPerSec > 0 {
		idleBelow = idleShare * l.PeakBytesPerSec
	}
	atLeast := func(ops *float64) bool { return ops != nil && *ops >= idleOps }
	switch {
	case rate >= idleBelow, atLeast(l.MetaOpsPerSec), !known && atLeast(l.DataOpsPerSec):
		return ForwarderOK
	case known && (l.MetaOpsPerSec != nil || l.router()):
		return ForwarderIdle
	}
	return ForwarderUnknown
}
