package queue

import "time"

// depth finds how many requests at the forwarder keep it busy: the fewest with which it does as much as with the whole
// window. By Little's law (requests there = rate x time there) more add nothing but time, for everybody. This is
// Kleinrock's knee (Power and deterministic rules of thumb, ICC 1979). Where it is depends on the threads, disks and
// links behind. So it is tried out: slices with the whole window and with fewer take turns, and the range is halved.
type depth struct {
	window int
	now    int // in force
	few    int // so many were too few
	enough int // so many suffice
	fewer  bool
	until  time.Time     // when the next search begins; zero while one goes on
	spent  time.Duration // on this search
	whole  done          // in this trial's slices with the whole window
	part   done          // in those with fewer
	slice  done
	since  time.Time // of the slice
}

// done is what the forwarder did, and in which time.
type done struct {
	answers int
	cost    int64
	took    time.Duration
}

func (d *done) rate() float64 { return float64(d.cost) / d.took.Seconds() }

const (
	// sliceWindows is how many windows of answers a slice counts. The first of them is left out: it was asked for in
	// the slice before.
	sliceWindows = 9
	// A trial has so many answers of each kind, or takes so long: where times are random the rates differ by 3 % then.
	trialAnswers = 4096
	trialWithin  = 5 * time.Second
	// busyEnough is the part of what it does with the whole window that a busy forwarder does.
	busyEnough = .96
	// restTimes is how many times as long as the search its result holds: others hardly feel the searching.
	restTimes = 30
)

func newDepth(window int) *depth { return &depth{window: window, now: window, enough: window} }

// found is what a search has come to; 0: none has.
func (d *depth) found() int {
	if d.until.IsZero() {
		return 0
	}
	return d.enough
}

// restart forgets the slice that has begun: what it counts was not asked for all the time.
func (d *depth) restart() { d.slice = done{} }

// answered counts an answer of the forwarder.
func (d *depth) answered(now time.Time, cost int) {
	if now.Before(d.until) {
		return
	}
	if !d.until.IsZero() {
		*d = *newDepth(d.window)
	}
	d.slice.answers++
	switch {
	case d.slice.answers == d.window:
		d.since = now
	case d.slice.answers > d.window:
		d.slice.cost += int64(cost)
	}
	if d.slice.answers < sliceWindows*d.window {
		return
	}
	sum := &d.whole
	if d.fewer {
		sum = &d.part
	}
	took := now.Sub(d.since)
	*sum = done{sum.answers + d.slice.answers, sum.cost + d.slice.cost, sum.took + took}
	d.spent += took
	d.slice, d.fewer = done{}, !d.fewer
	if !d.fewer && (d.part.answers >= trialAnswers || d.whole.took+d.part.took >= trialWithin) {
		d.judge(now)
	}
	switch {
	case !d.until.IsZero():
		d.now = d.enough
	case d.fewer:
		d.now = (d.few + d.enough) / 2
	default:
		d.now = d.window
	}
}

// judge ends a trial, and the search where nothing is left to try.
func (d *depth) judge(now time.Time) {
	if tried := (d.few + d.enough) / 2; d.part.rate() >= busyEnough*d.whole.rate() {
		d.enough = tried
	} else {
		d.few = tried
	}
	d.whole, d.part = done{}, done{}
	if d.enough-d.few <= 1 {
		d.until = now.Add(restTimes * d.spent)
	}
}
