package queue

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"fairway/collector/p9"
	"fairway/remap/policy/share"
)

// request is one 9P message on its way to the forwarder.
type request struct {
	conn  *conn
	frame []byte
	cost  int
	seq   uint64 // order of arrival
	joint *joint // whose requests it carries; nil: its own
}

// What a request costs, in bytes moved: so much for itself, and its data. diod on a machine of two
// cores takes 97 us for a Tgetattr and about 160 us for 64 KiB of data.
const requestCost = 32 << 10

// quantum is what one token lets a job do. Requests of 64 KiB, the most diod takes, fit one token;
// what is left of it stays with the job while it has requests, so that jobs share bytes, not messages.
const quantum = requestCost + 64<<10

// together is how many requests of one connection, one after the other in its job's queue, go on one
// choice: they leave in one write, as in the order of arrival. What they cost beyond the job's credit it
// owes, and pays with its next tokens before it is served again; so shares stay those of the tokens. It
// owes no more than a few tokens and one request.
const (
	together = 8
	maxOwed  = 4 * quantum
)

// Where the data of reads and writes is counted, and where that of a write begins.
const (
	readCount = p9.HeaderBytes + 4 + 8 // fid[4] offset[8] count[4]
	writeData = readCount + 4
)

// tagOf is the number by which a message and its answer know each other.
func tagOf(frame []byte) uint16 { return binary.LittleEndian.Uint16(frame[5:]) }

// cost is what a message makes the forwarder do.
func cost(frame []byte) int {
	switch {
	case frame[4] == p9.TWrite:
		return requestCost + max(len(frame)-writeData, 0)
	case frame[4] == p9.TRead && len(frame) >= readCount+4:
		return requestCost + int(min(binary.LittleEndian.Uint32(frame[readCount:]), maxFrame))
	}
	return requestCost
}

// queue holds requests by job and says which goes next. It is not safe for concurrent use.
type laneQueue struct {
	lanes   []lane
	lottery *share.Lottery // nil: order of arrival, everything in lane 0
	random  *rand.Rand
	current int // lane that still has credit, or goes on
	length  int
	from    *conn // whose requests go on, and how many may
	more    int
	limited bool
	asked   time.Time // when a job without a limit asked for something last, where another has one

	since  time.Time // when something began to wait, while it does
	waited time.Duration
}

// lane is one job's requests in their order. Its credit is what its last tokens have left, bytes; below 0
// it is what the job owes.
type lane struct {
	waiting []request // from head on
	head    int
	credit  int
	since   time.Time // when it began to wait, while it does
	waited  time.Duration
	flights int // at the forwarder
	most    int // of those while others ask for something; 0: any number
}

// othersRest is how long after their last request jobs without a limit count as asking: programs do something
// between two requests.
const othersRest = time.Second

// newQueue makes a queue in front of a forwarder that takes so many requests at once.
func newQueue(s *sharing, window int, random *rand.Rand) *laneQueue {
	q := &laneQueue{lanes: make([]lane, len(s.jobs)), random: random, limited: s.limited}
	for i, limit := range s.limits {
		if limit > 0 {
			q.lanes[i].most = max(1, int(limit*float64(window)))
		}
	}
	q.choose(s)
	return q
}

// choose serves what waits by the shares of s from now on, which has the same jobs.
func (q *laneQueue) choose(s *sharing) {
	switch {
	case s.policy == nil:
		q.lottery = nil
		return
	case s.weights != nil:
		q.lottery = share.NewLottery(share.Policy{share.Size}, s.weights, share.Flat)
	default:
		q.lottery = share.NewLottery(s.policy, s.jobs, s.idle)
	}
	for i := range q.lanes {
		q.lottery.Work(i, q.ready(&q.lanes[i]))
	}
}

// ready says that a lane has a request that may go next: a job with a limit has few at the forwarder while others
// ask for something, so that theirs find it free.
func (q *laneQueue) ready(l *lane) bool {
	return !l.empty() && (l.most == 0 || l.flights < l.most || time.Since(q.asked) > othersRest)
}

// flies counts requests of a lane that went to the forwarder, or with a number below 0 came back.
func (q *laneQueue) flies(job, n int) {
	l := &q.lanes[job]
	l.flights += n
	if l.most > 0 && q.lottery != nil {
		q.lottery.Work(job, q.ready(l))
	}
}

// waits is how long each lane, and any, has had something to wait so far. In the order of arrival lanes are
// not kept apart, and of each nothing is known.
func (q *laneQueue) waits(now time.Time) (each []time.Duration, any time.Duration) {
	each = make([]time.Duration, len(q.lanes))
	for i := range q.lanes {
		if q.lottery == nil {
			break
		}
		each[i] = q.lanes[i].waited
		if !q.lanes[i].empty() {
			each[i] += now.Sub(q.lanes[i].since)
		}
	}
	if any = q.waited; q.length > 0 {
		any += now.Sub(q.since)
	}
	return each, any
}

func (q *laneQueue) push(job int, r request) {
	if q.lottery == nil {
		job = 0
	}
	l := &q.lanes[job]
	if l.empty() {
		l.since = time.Now()
		if q.length == 0 {
			q.since = l.since
		}
	}
	l.waiting = append(l.waiting, r)
	q.length++
	if q.lottery != nil {
		if l.most == 0 && q.limited {
			q.asked = time.Now()
		}
		q.lottery.Work(job, q.ready(l))
	}
}

// emptied notes that nothing of a lane waits any more; q.length says whether of others something does.
func (q *laneQueue) emptied(l *lane) {
	now := time.Now()
	l.waited += now.Sub(l.since)
	if q.length == 0 {
		q.waited += now.Sub(q.since)
	}
}

// pop takes the next request; false when nothing waits that may go.
func (q *laneQueue) pop() (r request, found bool) {
	if q.length == 0 {
		return request{}, false
	}
	if q.lottery == nil {
		q.length--
		l := &q.lanes[0]
		r := l.pop()
		if l.empty() {
			q.emptied(l)
		}
		return r, true
	}
	l := &q.lanes[q.current]
	if q.more > 0 && l.credit > -maxOwed && q.ready(l) && l.waiting[l.head].conn == q.from {
		q.more--
		return q.take(l), true
	}
	for !q.ready(l) || l.credit < l.waiting[l.head].cost {
		if q.current, found = q.lottery.Draw(q.random.Float64()); !found {
			return request{}, false // who waits has a limit
		}
		if l = &q.lanes[q.current]; !q.ready(l) { // others ask again since it was let through
			q.lottery.Work(q.current, false)
			continue
		}
		l.credit += quantum
	}
	q.from, q.more = l.waiting[l.head].conn, together-1
	return q.take(l), true
}

// take takes the first request of the current lane, which is l.
func (q *laneQueue) take(l *lane) request {
	r := l.pop()
	q.length--
	if r.joint == nil {
		l.credit -= r.cost
	} else {
		for p, part := range r.joint.costs(r) {
			q.lanes[p.lane].credit -= part
		}
	}
	if l.empty() {
		l.credit = min(l.credit, quantum) // the rest of a token is kept; nobody saves more for later
		q.lottery.Work(q.current, false)
		q.emptied(l)
	}
	return r
}

func (l *lane) empty() bool { return l.head == len(l.waiting) }

func (l *lane) pop() request {
	r := l.waiting[l.head]
	l.waiting[l.head] = request{}
	l.head++
	switch {
	case l.empty():
		l.waiting, l.head = l.waiting[:0], 0
	case l.head >= 1024 && l.head*2 > len(l.waiting):
		n := copy(l.waiting, l.waiting[l.head:])
		clear(l.waiting[n:])
		l.waiting, l.head = l.waiting[:n], 0
	}
	return r
}

// drop removes and returns every request that out says.
func (q *laneQueue) drop(out func(request) bool) (dropped []request) {
	for i := range q.lanes {
		l := &q.lanes[i]
		if l.empty() {
			continue
		}
		kept := l.waiting[:0]
		for _, r := range l.waiting[l.head:] {
			if out(r) {
				dropped = append(dropped, r)
				q.length--
			} else {
				kept = append(kept, r)
			}
		}
		clear(l.waiting[len(kept):])
		l.waiting, l.head = kept, 0
		if !l.empty() {
			continue
		}
		q.emptied(l)
		if q.lottery != nil {
			l.credit = min(l.credit, quantum)
			q.lottery.Work(i, false)
		}
	}
	return dropped
}
