package model

import "time"

// Engine is the order of what happens in a model: a heap of events by time, then by the order they were asked for.
type Engine struct {
	now time.Duration // since the site's start
	seq uint64
	q   []event
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (a event) before(b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// Now returns the time since the start.
func (e *Engine) Now() time.Duration { return e.now }

// After calls do when d has passed.
func (e *Engine) After(d time.Duration, do func()) { e.At(e.now+max(d, 0), do) }

// At calls do at a time, at once where that is past.
func (e *Engine) At(t time.Duration, do func()) {
	e.seq++
	e.q = append(e.q, event{max(t, e.now), e.seq, do})
	i := len(e.q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.q[i].before(e.q[up]) {
			break
		}
		e.q[i], e.q[up] = e.q[up], e.q[i]
		i = up
	}
}

func (e *Engine) pop() event {
	first := e.q[0]
	last := len(e.q) - 1
	e.q[0] = e.q[last]
	e.q[last] = event{}
	e.q = e.q[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && e.q[c].before(e.q[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		e.q[i], e.q[least] = e.q[least], e.q[i]
		i = least
	}
}

// Run lets everything happen that is due until t.
func (e *Engine) Run(t time.Duration) {
	for len(e.q) > 0 && e.q[0].at <= t {
		next := e.pop()
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
