package watch

import "time"

// starvation is whether this daemon gets too little of a processor to judge others: what it sees late looks like
// silence and wrong clocks of nodes. Nothing is recorded meanwhile; evidence goes on, and what stays is found after it.
type starvation struct {
	last  time.Time // tick
	until time.Time // when nothing is recorded before
}

const (
	// ticksApart is how far apart two ticks of a second each may come: one that is due while the step before still
	// works, or nobody runs, comes late.
	ticksApart = 2500 * time.Millisecond
	// afterStarving is how long nodes have to show themselves on time again.
	afterStarving = 15 * time.Second
)

// note takes the time of a tick.
func (s *starvation) note(tick time.Time) {
	if !s.last.IsZero() && tick.Sub(s.last) > ticksApart {
		s.until = tick.Add(afterStarving)
	}
	s.last = tick
}
