package nfs

import (
	"fmt"
	"time"

	"fairway/collector"
)

// waiting follows the requests that a node's transports have sent and not got answers to.
type waiting struct {
	at       time.Time
	answered uint64
	sent     uint64
	since    time.Time // of the newest answer, or of the first request after it
	// floor is the least difference of sent and answered while answers came: what was lost with a connection stays in
	// the difference for ever.
	floor, next uint64
	renew       time.Time
	before      uint64 // requests without an answer at the second before
}

// floorFor is how long a floor stands.
const floorFor = 30 * time.Second

// count takes the sums over all transports: how many requests wait for an answer, how long the oldest has at least, and
// how many were sent since the second before.
func (w *waiting) count(now time.Time, sent, answered uint64) (outstanding uint64, age time.Duration, fresh uint64) {
	difference := max(sent, answered) - answered
	if w.at.IsZero() || sent < w.sent || answered < w.answered || now.Before(w.at) {
		*w = waiting{at: now, sent: sent, answered: answered, since: now, floor: difference, next: difference,
			renew: now.Add(floorFor)}
		return 0, 0, 0
	}
	if answered > w.answered {
		w.since = now
		w.floor, w.next = min(w.floor, difference), min(w.next, difference)
		if now.After(w.renew) {
			w.floor, w.next, w.renew = w.next, difference, now.Add(floorFor)
		}
	}
	outstanding = difference - min(difference, w.floor)
	if outstanding == 0 {
		w.since = now
	}
	fresh = sent - w.sent + w.before
	w.at, w.sent, w.answered, w.before = now, sent, answered, outstanding
	return outstanding, now.Sub(w.since), fresh
}

// made is a connection as it was when it was looked at last.
type made struct {
	connects, sent uint64
	used           time.Time
}

// idleAfter is a little less than the time after which Linux ends a connection that nobody uses, five minutes.
const idleAfter = 290 * time.Second

// addReconnects counts the connections that were lost in use and made anew. Superblocks of one server share theirs.
func (r *Reader) addReconnects(into *collector.Reading, seen []superblock) {
	again, now, lines, of := uint64(0), map[string]made{}, map[string]bool{}, map[string]int{}
	for i := range seen {
		for _, t := range seen[i].transports {
			if lines[t.line] || t.connects == 0 {
				continue
			}
			lines[t.line] = true
			server := seen[i].server
			of[server]++
			key := fmt.Sprint(server, " ", of[server])
			was, known := r.made[key]
			if known && t.connects > was.connects && into.Now.Sub(was.used) < idleAfter {
				again += t.connects - was.connects
			}
			if !known || t.sent != was.sent {
				was.used = into.Now
			}
			now[key] = made{t.connects, t.sent, was.used}
		}
	}
	r.made = now
	if seconds := r.rates.Seconds(); seconds > 0 && len(now) > 0 {
		into.Add(collector.Reconnects, float64(again)/seconds)
	}
}

// addWaiting reports the requests under way: their mean from the times of those that have ended, and, while none ends,
// how many there are and for how long the oldest has waited.
func (r *Reader) addWaiting(into *collector.Reading, seen []superblock, all, meta float64, known bool) {
	var sent, answered uint64
	lines := map[string]bool{}
	for i := range seen {
		for _, t := range seen[i].transports {
			if !lines[t.line] {
				lines[t.line] = true
				sent, answered = sent+t.sent, answered+t.answered
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	outstanding, age, fresh := r.waiting.count(into.Now, sent, answered)
	if age < time.Second {
		age = 0
	}
	into.Add(collector.RequestAge, age.Seconds())
	switch {
	case age > 0:
		into.Add(collector.InFlight, float64(outstanding))
	case known:
		// A request that ends after a long wait brings all of it at once: it was under way for this second alone.
		most := float64(fresh)
		into.Add(collector.InFlight, min(all, most))
		if all > 0 {
			into.Add(collector.MetaInFlight, meta*min(1, most/all))
		}
	}
}
