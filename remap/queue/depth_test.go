package queue

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// station is a modelled forwarder: a way of delay to it and back, and behind it servers with one line.
type station struct {
	name    string
	servers int
	service time.Duration // mean
	spread  float64       // 0: always the mean; 1: exponential
	delay   time.Duration
}

func (s *station) draw(r *rand.Rand) time.Duration {
	return time.Duration(float64(s.service) * (1 - s.spread + s.spread*r.ExpFloat64()))
}

// event is a request that arrives at the servers, leaves one, or is answered, or the victim's next.
type event struct {
	at   time.Time
	kind int
	r    request
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

const (
	arrives = iota
	leaves
	answers
	wants
)

// floor is a station behind a queue, with a job of many requests at once and one that waits for each.
type floor struct {
	station
	q        *laneQueue
	random   *rand.Rand
	events   events
	line     []request
	free     int
	inFlight int
	busy     *conn
	victim   *conn
	asked    time.Time
	took     time.Duration
	n        int
	done     int64
}

func newFloor(t *testing.T, s station, limit float64, outstanding int, seed uint64) *floor {
	table := twoJobs("job-fair")
	table.Jobs[0].Limit = limit
	sh, err := table.compile()
	if err != nil {
		t.Fatal(err)
	}
	sh.weigh(nil)
	f := &floor{station: s, random: rand.New(rand.NewPCG(seed, seed)), free: s.servers, busy: &conn{lane: 0},
		victim: &conn{lane: 1}}
	f.q = newQueue(sh, DefaultWindow, rand.New(rand.NewPCG(seed, 2)))
	for range outstanding {
		f.q.push(0, request{conn: f.busy, cost: quantum})
	}
	f.at(0, wants, request{conn: f.victim, cost: quantum})
	return f
}

func (f *floor) at(d time.Duration, kind int, r request) {
	heap.Push(&f.events, event{time.Now().Add(d), kind, r})
}

func (f *floor) pump() {
	for f.inFlight < DefaultWindow {
		r, found := f.q.pop()
		if !found {
			return
		}
		f.inFlight++
		f.q.flies(r.conn.lane, 1)
		f.at(f.delay/2, arrives, r)
	}
}

// run goes on for d and says how long the victim's requests took, seconds, and what was done, bytes/s.
func (f *floor) run(d time.Duration) (victim, rate float64) {
	f.took, f.n, f.done = 0, 0, 0
	f.pump()
	for end := time.Now().Add(d); f.events[0].at.Before(end); {
		e := heap.Pop(&f.events).(event)
		time.Sleep(time.Until(e.at))
		switch e.kind {
		case arrives:
			f.line = append(f.line, e.r)
		case leaves:
			f.free++
			f.at(f.delay/2, answers, e.r)
		case answers:
			f.inFlight--
			f.q.flies(e.r.conn.lane, -1)
			f.q.answered(e.r.cost)
			f.done += int64(e.r.cost)
			if e.r.conn == f.victim {
				f.took += time.Since(f.asked)
				f.n++
				f.at(time.Duration(f.random.ExpFloat64()*float64(5*(f.service+f.delay))), wants, e.r)
			} else {
				f.q.push(0, e.r)
			}
		case wants:
			f.asked = time.Now()
			f.q.push(1, e.r)
		}
		for ; f.free > 0 && len(f.line) > 0; f.line = f.line[1:] {
			f.free--
			f.at(f.draw(f.random), leaves, f.line[0])
		}
		f.pump()
	}
	return f.took.Seconds() / float64(f.n), float64(f.done) / d.Seconds()
}

// TestALimitedJobKeepsTheForwarderBusy: how long a request of the other job takes, by the time alone, and what the
// forwarder does, by what it does without a limit: with one request of the limited job at a time, and with as many as
// are found within 30 s. Requests cannot be interrupted: of few servers the next one is free late, whatever is done.
func TestALimitedJobKeepsTheForwarderBusy(t *testing.T) {
	for _, c := range []struct {
		station
		longer float64 // at most
	}{
		{station{"8 threads", 8, 4 * time.Millisecond, .5, 0}, 1.2},
		{station{"8 threads, exponential", 8, 4 * time.Millisecond, 1, 0}, 1.2},
		{station{"12 disks behind a network", 12, 8 * time.Millisecond, .5, time.Millisecond}, 1.2},
		{station{"a link", 1, time.Millisecond, 0, 5 * time.Millisecond}, 1.2},
		{station{"4 threads", 4, 2 * time.Millisecond, .5, 0}, 1.25},
		{station{"2 threads", 2, time.Millisecond, .5, 0}, 1.4},
		{station{"a disk", 1, time.Millisecond, .5, 0}, 1.7},
		{station{"a disk behind a network", 1, time.Millisecond, .5, 4 * time.Millisecond}, 1.45},
	} {
		t.Run(c.name, func(t *testing.T) {
			var unlimited, single, found, singleTotal, foundTotal []float64
			for seed := range uint64(5) {
				synctest.Test(t, func(t *testing.T) {
					alone, _ := newFloor(t, c.station, 0, 0, seed).run(20 * time.Second)
					took, whole := newFloor(t, c.station, 0, 32, seed).run(20 * time.Second)
					unlimited = append(unlimited, took/alone)
					f := newFloor(t, c.station, .05, 32, seed)
					f.q.depth.now, f.q.depth.until = 1, time.Now().Add(time.Hour)
					took, total := f.run(20 * time.Second)
					single, singleTotal = append(single, took/alone), append(singleTotal, total/whole)
					f = newFloor(t, c.station, .05, 32, seed)
					f.run(30 * time.Second)
					took, total = f.run(30 * time.Second)
					found, foundTotal = append(found, took/alone), append(foundTotal, total/whole)
				})
			}
			say := func(x []float64) string {
				slices.Sort(x)
				return fmt.Sprintf("%.2f (%.2f to %.2f)", x[len(x)/2], x[0], x[len(x)-1])
			}
			t.Logf("time by that alone: without a limit %s, with one request %s, as found %s", say(unlimited),
				say(single), say(found))
			t.Logf("total by that without a limit: with one request %s, as found %s", say(singleTotal), say(foundTotal))
			if mean(found) > c.longer || mean(foundTotal) < .95 {
				t.Errorf("want at most %g and at least 0.95", c.longer)
			}
		})
	}
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}
