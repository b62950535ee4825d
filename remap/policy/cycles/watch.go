package cycles

import (
	"fmt"
	"time"

	"fairway/remap/window"
)

// Live is the cycle of one running job: what it computes and moves between one phase of I/O and the next.
type Live struct {
	Rhythm
	ComputeSeconds float64 `json:"compute_seconds"`
	VolumeBytes    float64 `json:"volume_bytes"`
	// From is where it is known from: FromRuns or FromWatching.
	From string `json:"from"`
}

// Where a running job's cycle is known from: earlier runs of the same kind, or its own seconds.
const (
	FromRuns     = "earlier runs"
	FromWatching = "watching"
)

// Words is the cycle in a sentence.
func (l *Live) Words() string {
	return fmt.Sprintf("every %s s %s GB after %s s of computation, by %s, confidence %.0f %%",
		window.Figure(l.PeriodSeconds), window.Figure(l.VolumeBytes/1e9), window.Figure(l.ComputeSeconds), l.From,
		100*l.Confidence)
}

// Live is an application's cycle as that of a run that begins.
func (c *Cycle) Live() Live {
	return Live{Rhythm: Rhythm{c.Period.Median, max(0, 1-c.Period.Spread())}, ComputeSeconds: c.Compute.Median,
		VolumeBytes: c.Volume.Median, From: FromRuns}
}

// Watch keeps what a running job moved, by the second for the newest half hour and by 16 seconds for half a day. The
// zero value is ready.
type Watch struct {
	fine, coarse series
	asked        float64 // seconds that were there when Cycle was asked last
	seconds      float64
}

const (
	fineSeconds, coarseSeconds = 1, 16
	// keptBins are at least kept of each series, twice as many at most.
	keptBins = 1024
	// askEvery is how much must have been added for another answer.
	askEvery = 16
)

// series are bins of equal width; the last one is being filled.
type series struct {
	bins  []float64 // bytes per second
	bytes float64   // in the open bin
	room  float64   // seconds that it still has
}

func (s *series) add(bytesPerSecond, seconds, width float64) {
	for seconds > 0 {
		if s.room <= 0 {
			s.room = width
		}
		part := min(seconds, s.room)
		s.bytes += bytesPerSecond * part
		s.room -= part
		seconds -= part
		if s.room > width*1e-9 {
			continue
		}
		if len(s.bins) == 2*keptBins {
			s.bins = append(s.bins[:0], s.bins[keptBins:]...)
		}
		s.bins = append(s.bins, s.bytes/width)
		s.bytes, s.room = 0, 0
	}
}

// Add takes what it moved in the time since the last call.
func (w *Watch) Add(bytesPerSecond float64, since time.Duration) {
	w.seconds += since.Seconds()
	w.fine.add(bytesPerSecond, since.Seconds(), fineSeconds)
	w.coarse.add(bytesPerSecond, since.Seconds(), coarseSeconds)
}

// Due says whether enough was added to ask again.
func (w *Watch) Due() bool { return w.seconds-w.asked >= askEvery }

// Cycle is the job's cycle by its newest seconds, or by the coarse ones where those hold too few periods; false where
// no rhythm is confident.
func (w *Watch) Cycle() (Live, bool) {
	w.asked = w.seconds
	for _, s := range []struct {
		bins  []float64
		width float64
	}{{w.fine.bins, fineSeconds}, {w.coarse.bins, coarseSeconds}} {
		newest := s.bins[max(0, len(s.bins)-keptBins):]
		if r, ok := RhythmOf(newest, s.width); ok && r.Confidence >= Confident {
			return liveOf(newest, r)
		}
	}
	return Live{}, false
}

// liveOf divides a period in I/O and computation; false for I/O all the time. Bins below half the mean are no phase: a
// line of a log.
func liveOf(bins []float64, r Rhythm) (Live, bool) {
	mean, active := 0.0, 0.0
	for _, v := range bins {
		mean += v / float64(len(bins))
	}
	for _, v := range bins {
		if v > mean/2 {
			active += 1 / float64(len(bins))
		}
	}
	l := Live{Rhythm: r, ComputeSeconds: r.PeriodSeconds * (1 - active), VolumeBytes: mean * r.PeriodSeconds,
		From: FromWatching}
	return l, l.ComputeSeconds > 0
}
