package budget

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how much of a processor's time a caller has without a rest: some pages with all their lists.
const atOnce = time.Second

// pace has callers rest who ask without a pause, so that what they may have under way is not at work all the time.
type pace struct {
	share  float64              // of a processor, for one caller; 0: nobody rests
	atMost time.Duration        // a rest: the next request is not refused for it
	paid   map[string]time.Time // until when a caller's share is used up; in the past: it is not
}

// manyCallers is how many are remembered before those are looked for whose share is whole again.
const manyCallers = 1024

// rest returns how long a caller rests who has just worked.
func (p *pace) rest(key string, worked time.Duration, now time.Time) time.Duration {
	inTime := func(work time.Duration) time.Duration { return time.Duration(float64(work) / p.share) }
	whole := now.Add(-inTime(atOnce))
	paid := p.paid[key]
	if paid.Before(whole) {
		paid = whole
	}
	paid = paid.Add(inTime(worked))
	if most := now.Add(p.atMost); paid.After(most) {
		paid = most
	}
	if len(p.paid) >= manyCallers {
		for k, t := range p.paid {
			if t.Before(whole) {
				delete(p.paid, k)
			}
		}
	}
	p.paid[key] = paid
	return paid.Sub(now)
}

// stopwatch measures how long the goroutine works from now on, without what it waits: for its reader, or for a
// processor while the machine is busy with others.
func (b *Budget) stopwatch() (worked func() time.Duration) {
	runtime.LockOSThread()
	begun := b.used()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return b.used() - begun
	}
}

// threadTime is 0 where the system has no such clock; then nobody rests.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
