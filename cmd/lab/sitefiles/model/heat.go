package model

import "time"

// Heat has a node's processors throttled more and more as they warm up. One that is throttled does nothing.
type Heat struct {
	share float64       // of the time when it is warm; 0: it is cool
	since time.Duration // it warms up
	was   time.Duration // for how long it was throttled before
}

// warmUp is how long it takes until the processors are as hot as they become.
const warmUp = 20 * time.Second

// Begin has the processors warm up from now on until a part of their speed is left.
func (h *Heat) Begin(now time.Duration, left float64) {
	h.End(now)
	h.share, h.since = 1-left, now
}

// End cools them at once.
func (h *Heat) End(now time.Duration) { *h = Heat{was: h.Throttled(now)} }

// Speed is what is left of the processors' speed.
func (h *Heat) Speed(now time.Duration) float64 {
	return 1 - h.share*min(1, float64(now-h.since)/float64(warmUp))
}

// Throttled is for how long they were throttled until now.
func (h *Heat) Throttled(now time.Duration) time.Duration {
	warming := min(now-h.since, warmUp)
	rising := float64(warming) * float64(warming) / float64(warmUp) / 2
	return h.was + time.Duration(h.share*(rising+float64(now-h.since-warming)))
}

// Throttlings are how often they began to be throttled: for some ms each time.
func (h *Heat) Throttlings(now time.Duration) uint64 {
	const each = 20 * time.Millisecond
	return uint64((h.Throttled(now) + each - 1) / each)
}
