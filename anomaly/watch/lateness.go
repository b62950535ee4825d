package watch

import (
	"fmt"
	"sync"
	"time"
)

// Lateness is by how much this daemon itself was late. One that gets too little of a processor takes what it sees late
// for silence and wrong clocks of nodes: it says so first, and records no finding until it has been on time for a
// while. Its methods may be called concurrently; of a nil one the daemon is on time.
type Lateness struct {
	mu sync.Mutex // guards everything that follows
	at time.Time  // the newest time that something was late
	by time.Duration
}

const (
	// lateFrom is by how much something that is due each second may be late: the step before still works, or a
	// collection of garbage does.
	lateFrom = 1500 * time.Millisecond
	// onTimeFor is how long nodes have to show themselves on time again.
	onTimeFor = 15 * time.Second
)

// Note says that what was due at a time is done at now.
func (l *Lateness) Note(due, now time.Time) {
	by := now.Sub(due)
	if l == nil || by <= lateFrom {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at) > onTimeFor || by > l.by {
		l.by = by
	}
	l.at = now
}

// Within is by how much the daemon was late at most, until it has been on time for a while; then 0.
func (l *Lateness) Within(now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at) > onTimeFor {
		return 0
	}
	return l.by
}

// Notice is what every surface says first while the daemon is late; empty while it is on time.
func (l *Lateness) Notice(now time.Time) string {
	by := l.Within(now)
	if by == 0 {
		return ""
	}
	return fmt.Sprintf("fairway's own daemon was %.1f s late: what looks slow or silent may be only that, and nobody "+
		"is accused until it is on time; give its host more processor time", by.Seconds())
}
