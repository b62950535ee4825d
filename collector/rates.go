package collector

import (
	"math"
	"time"
)

// DefaultMaxGap is the longest time between two readings of a counter that makes a rate of the second just ended. Over
// a longer one the mean would be of other seconds.
const DefaultMaxGap = 2500 * time.Millisecond

// Rates turns snapshots of cumulative counters, each known by a key, into increases per second.
// One snapshot is Begin, then Rate or AddTo for each of its counters; a counter that a snapshot
// leaves out is forgotten. Memory is reused from snapshot to snapshot. Not for concurrent use.
type Rates[K comparable] struct {
	// Wrap32 says that the counters are 32 bits wide and start again from 0 after 2^32-1: a step back of more than 2^31
	// is then a wrap and no reset. Where a counter beside them went back that cannot wrap, call Restart or RestartOf.
	Wrap32 bool
	// FromZero reports whether a counter that appears between two snapshots began at 0 then, so that its first value is
	// an increase; nil: none did. A counter that could not be read the time before did not.
	FromZero func(K) bool
	// MaxGap is the longest interval that makes rates; 0 is DefaultMaxGap.
	MaxGap time.Duration
	// Resets counts the counters of this snapshot that went backwards.
	Resets int

	prev, cur map[K]count
	at        time.Time
	seconds   float64 // since the previous snapshot; 0 where it makes no rates
}

// count is what a counter had.
type count struct {
	n      uint64
	before uint64 // what it had before it went back to 0, while it is there
}

// Begin starts a snapshot that was read at that time.
func (r *Rates[K]) Begin(at time.Time) {
	r.prev, r.cur = r.cur, r.prev
	if r.cur == nil {
		r.cur = make(map[K]count)
	}
	clear(r.cur)
	gap := at.Sub(r.at)
	maxGap := r.MaxGap
	if maxGap == 0 {
		maxGap = DefaultMaxGap
	}
	r.seconds = 0
	if !r.at.IsZero() && gap > 0 && gap <= maxGap {
		r.seconds = gap.Seconds()
	}
	r.at, r.Resets = at, 0
}

// Restart says after Begin that all these counters began anew since the snapshot before: none has a rate.
func (r *Rates[K]) Restart() {
	if len(r.prev) > 0 {
		r.Resets++
	}
	clear(r.prev)
	r.seconds = 0
}

// RestartOf says after Begin that these counters began anew since the snapshot before: a step back of theirs is a
// reset.
func (r *Rates[K]) RestartOf(keys ...K) {
	for _, k := range keys {
		if _, ok := r.prev[k]; ok {
			r.prev[k] = count{n: math.MaxUint64}
		}
	}
}

// Seconds is the real interval between the previous snapshot and this one; 0 where it makes no
// rates (the first snapshot, or a gap).
func (r *Rates[K]) Seconds() float64 { return r.seconds }

// change is what became of one counter since the snapshot before.
type change uint8

const (
	fresh change = iota // not there before, or after a gap
	grown
	wentBack
)

// step takes a counter. One that is 0 and then again at least what it was has not counted from 0: something read 0
// where it could not read. That costs both seconds, and so does a wrap of 32 bits that ends at just 0.
func (r *Rates[K]) step(key K, v uint64) (increase uint64, c change) {
	was, ok := r.prev[key]
	now := count{n: v}
	if v == 0 {
		now.before = max(was.n, was.before)
	}
	r.cur[key] = now
	if !ok && r.seconds > 0 && r.FromZero != nil && r.FromZero(key) {
		return v, grown
	}
	wraps := r.Wrap32 && v > 0 && was.n <= 1<<32-1 && was.n > v && was.n-v > 1<<31
	switch {
	case was.n == 0 && was.before > 0 && v >= was.before, v < was.n && !wraps:
		r.Resets++
		return 0, wentBack
	case !ok || r.seconds == 0:
		return 0, fresh
	case wraps:
		return v + 1<<32 - was.n, grown
	}
	return v - was.n, grown
}

// Rate returns the counter's increase per second since the snapshot before; ok is false when there
// was none, when the gap was too long, and when the counter went backwards (then Resets grows).
func (r *Rates[K]) Rate(key K, v uint64) (perSec float64, ok bool) {
	inc, c := r.step(key, v)
	if c != grown {
		return 0, false
	}
	return float64(inc) / r.seconds, true
}

// AddTo adds the counter's rate to a total over several counters.
func (r *Rates[K]) AddTo(t *Total, key K, v uint64) {
	inc, c := r.step(key, v)
	switch c {
	case grown:
		t.perSec += float64(inc) / r.seconds
		t.known = true
	case wentBack:
		t.broken = true
	}
}

// Total is the sum of the rates of several counters. It is unknown while no part is known, and when
// any part went backwards: the sum of the others would look like a drop. The zero value is empty.
type Total struct {
	perSec        float64
	known, broken bool
}

// Value returns the sum, per second; ok is false where it is not known.
func (t *Total) Value() (perSec float64, ok bool) {
	if !t.known || t.broken {
		return 0, false
	}
	return t.perSec, true
}

// Lose makes the sum unknown: a part of it could not be read.
func (t *Total) Lose() { t.broken = true }

// Add adds a rate that is known already.
func (t *Total) Add(perSec float64) {
	t.perSec += perSec
	t.known = true
}

// AddTotal appends a total as a sample, if it is known.
func (r *Reading) AddTotal(m Metric, t *Total) {
	if v, ok := t.Value(); ok {
		r.Add(m, v)
	}
}
