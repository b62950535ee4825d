package swarm

import (
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

// lags counts durations by hundredths of a second up to a minute.
type lags struct {
	mu   sync.Mutex
	open bool // nothing is counted before
	bins [6001]uint64
}

func (l *lags) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		l.bins[min(max(int(d/(10*time.Millisecond)), 0), len(l.bins)-1)]++
	}
}

func (l *lags) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
}

// quantile is the upper end of the bin in which a share of all durations is reached.
func (l *lags) quantile(share float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	total, seen := uint64(0), uint64(0)
	for _, n := range l.bins {
		total += n
	}
	for i, n := range l.bins {
		if seen += n; total > 0 && float64(seen) >= share*float64(total) {
			return time.Duration(i+1) * 10 * time.Millisecond
		}
	}
	return 0
}

// above counts the durations over d.
func (l *lags) above(d time.Duration) (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := int(d / (10 * time.Millisecond)); i < len(l.bins); i++ {
		n += l.bins[i]
	}
	return n
}
