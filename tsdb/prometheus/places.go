package prometheus

import (
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// How a row that may not be the first of its second is placed in it: the later it arrives the
// later in the second, a millisecond for each latenessStep, and after any that this process placed
// there before.
const (
	lastPlace    = 999
	latenessStep = 8 // seconds
	maxLateness  = 990 * latenessStep
	keepPlaces   = 2 * time.Hour
)

// places chooses the millisecond of a second that a row is written at.
type places struct {
	now func() time.Time

	mu     sync.Mutex // guards everything that follows
	newest map[topology.NodeID]int64
	taken  map[place]taken
	pruned time.Time
}

type place struct {
	node   topology.NodeID
	second int64
}

type taken struct {
	millis int64
	at     time.Time
}

func newPlaces(now func() time.Time) *places {
	return &places{now: now, newest: map[topology.NodeID]int64{}, taken: map[place]taken{}, pruned: now()}
}

// millis implements remote.Config.Millis. The usual row, a node's newest, takes the first millisecond.
func (p *places) millis(f *collector.Frame) int64 {
	second := f.TimeMillis / 1000
	p.mu.Lock()
	defer p.mu.Unlock()
	newest, known := p.newest[f.Node]
	if known && second > newest {
		p.newest[f.Node] = second
		return second * 1000
	}
	if !known {
		p.newest[f.Node] = second
	}
	now := p.now()
	p.prune(now)
	at := 1 + min(max(now.Unix()-second, 0), maxLateness)/latenessStep
	key := place{f.Node, second}
	if before, ok := p.taken[key]; ok {
		at = max(at, before.millis+1)
	}
	at = min(at, lastPlace)
	p.taken[key] = taken{at, now}
	return second*1000 + at
}

// prune forgets what no late row can meet any more; the caller holds mu.
func (p *places) prune(now time.Time) {
	if now.Sub(p.pruned) < keepPlaces/4 {
		return
	}
	p.pruned = now
	for key, t := range p.taken {
		if now.Sub(t.at) > keepPlaces {
			delete(p.taken, key)
		}
	}
}
