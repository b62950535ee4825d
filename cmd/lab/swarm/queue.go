package swarm

import (
	"math"
	"slices"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/wire"
)

// queue is an agent's spool without a disk, which also measures: thousands of spools on one disk would measure that
// disk. It gives up nothing; what is not acknowledged at the end is lost.
type queue struct {
	name string
	lags *lags
	more chan struct{}

	mu    sync.Mutex // guards everything that follows
	acked uint64
	sent  []message // those after acked
}

type message struct {
	at    time.Time
	bytes []byte
}

func newQueue(name string, l *lags) *queue {
	return &queue{name: name, lags: l, more: make(chan struct{}, 1)}
}

func (q *queue) Instance() string      { return q.name }
func (q *queue) More() <-chan struct{} { return q.more }

func (q *queue) Acked() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked
}

func (q *queue) Pending() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return uint64(len(q.sent))
}

// made is how many seconds the agent has made.
func (q *queue) made() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked + uint64(len(q.sent))
}

func (q *queue) Next(after uint64, buf []byte) (seq uint64, msg []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := int(max(after, q.acked) - q.acked)
	if i >= len(q.sent) {
		return 0, buf, false
	}
	return q.acked + uint64(i) + 1, append(buf[:0], q.sent[i].bytes...), true
}

// put appends a second.
func (q *queue) put(now time.Time, f *collector.Frame) {
	q.mu.Lock()
	b, err := wire.Append(nil, &wire.Frames{Seq: q.acked + uint64(len(q.sent)) + 1, Frames: []collector.Frame{*f}})
	if err == nil {
		q.sent = append(q.sent, message{now, b})
	}
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) Ack(seq uint64) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(int(max(seq, q.acked)-q.acked), len(q.sent))
	for i := range n {
		q.lags.add(now.Sub(q.sent[i].at))
	}
	q.sent = slices.Delete(q.sent, 0, n)
	q.acked += uint64(n)
}

// lags are how long things took.
type lags struct {
	mu   sync.Mutex
	open bool // nothing is kept before
	all  []time.Duration
}

func (l *lags) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		l.all = append(l.all, d)
	}
}

func (l *lags) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
}

// quantile is the shortest time that a share of all did not exceed; 0 without any.
func (l *lags) quantile(share float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[int(math.Ceil(share*float64(len(l.all))))-1].Round(100 * time.Microsecond)
}

// above counts those that took longer than d.
func (l *lags) above(d time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, took := range l.all {
		if took > d {
			n++
		}
	}
	return n
}
