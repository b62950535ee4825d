package model

import (
	"container/heap"
	"time"
)

// Engine is the order of what happens in a model: a heap of events by time, then by the order they were asked for.
type Engine struct {
	now time.Duration // since the site's start
	seq uint64
	q   queue
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type queue []*event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(*event)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	return e
}

// Now returns the time since the start.
func (e *Engine) Now() time.Duration { return e.now }

// After calls do when d has passed.
func (e *Engine) After(d time.Duration, do func()) { e.At(e.now+max(d, 0), do) }

// At calls do at a time, at once where that is past.
func (e *Engine) At(t time.Duration, do func()) {
	e.seq++
	heap.Push(&e.q, &event{max(t, e.now), e.seq, do})
}

// Run lets everything happen that is due until t.
func (e *Engine) Run(t time.Duration) {
	for len(e.q) > 0 && e.q[0].at <= t {
		next := heap.Pop(&e.q).(*event)
		e.now = next.at
		next.do()
	}
	e.now = max(e.now, t)
}

// Line is something that serves one thing after another: a direction of a link, a processor.
type Line struct {
	free time.Duration
	busy time.Duration // time in service since the start
}

// Serve puts a service of length d at the line's end and returns when it is over.
func (l *Line) Serve(now, d time.Duration) time.Duration {
	l.free = max(l.free, now) + d
	l.busy += d
	return l.free
}

// lanes are several equal lines with one queue, such as the disks of a target.
type lanes []Line

// serve takes the lane that is free first; it returns when the service begins and ends.
func (s lanes) serve(now, d time.Duration) (begins, ends time.Duration) {
	best := 0
	for i := range s {
		if s[i].free < s[best].free {
			best = i
		}
	}
	begins = max(s[best].free, now)
	return begins, s[best].Serve(now, d)
}

// Stat is a counted quantity since a node's start: how often, and of what was measured the least, the most, the sum
// and the sum of squares, which wraps.
type Stat struct {
	Name                      string
	Unit                      string // usec, reqs, bytes, sec, bufs
	N, Min, Max, Sum, SquareS uint64
}

// Add counts one value.
func (s *Stat) Add(v uint64) {
	if s.N == 0 || v < s.Min {
		s.Min = v
	}
	s.N++
	s.Max = max(s.Max, v)
	s.Sum += v
	s.SquareS += v * v
}

// Stats are the quantities of one file, in the order in which they first occurred.
type Stats struct {
	List []*Stat
	by   map[string]*Stat
}

// Of finds or makes a quantity.
func (s *Stats) Of(name, unit string) *Stat {
	if st := s.by[name]; st != nil {
		return st
	}
	if s.by == nil {
		s.by = map[string]*Stat{}
	}
	st := &Stat{Name: name, Unit: unit}
	s.by[name] = st
	s.List = append(s.List, st)
	return st
}

// Get is a quantity that may not have occurred.
func (s *Stats) Get(name string) Stat {
	if st := s.by[name]; st != nil {
		return *st
	}
	return Stat{Name: name}
}
