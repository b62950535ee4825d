// Package budget accounts for what one caller takes: queries, reads of the past and plain requests under way, live
// feeds, sessions and tries to sign in. Each has a number for everybody, a number for one caller, and places that only
// operators and the unix socket get, so that a crowd at the other listeners never keeps out those who have to act.
package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sys/unix"

	"fairway/webui/api"
)

// Settings are the limits; every refusal by one of them is counted.
type Settings struct {
	Queries      int
	QuerySamples int
	Archive      int
	ArchiveBytes int64
	Reads        int
	Requests     int
	Wait         time.Duration // longest wait of a request for its turn; then it is refused
	AnswerBytes  int64
	Feeds        int
	FeedsEach    int
	FeedsKept    int
	Sessions     int
	SessionsEach int
	SignIns      int
	SignInsFrom  int
}

// Defaults suit a site of some hundred people.
func Defaults() Settings {
	return Settings{Queries: 4, QuerySamples: 5_000_000, Archive: 2, ArchiveBytes: 512 << 20, Reads: 16,
		Requests: 64, Wait: 10 * time.Second, AnswerBytes: 32 << 20, Feeds: 1024, FeedsEach: 64, FeedsKept: 64,
		Sessions: 4096, SessionsEach: 8, SignIns: 5, SignInsFrom: 20}
}

// Kind is what a caller takes a place of, or is refused.
type Kind int

// The kinds; the last ones are counted only.
const (
	Queries Kind = iota
	Archive
	Reads
	Requests // all but the others
	Feeds
	Sessions
	SignIns
	Answers
	Connections
	kinds
)

var kindNames = [kinds]string{"queries", "archive_queries", "reads", "requests", "feeds", "sessions",
	"sign_ins", "answer_bytes", "connections"}

// Rank is who gets a place before others.
type Rank int

// The ranks, the least first.
const (
	Others Rank = iota
	Socket
	Operators
)

// Who asks: a name, or an address without one, and the rank.
type Who struct {
	Key  string
	Rank Rank
}

// Budget holds what is taken. All methods may be called concurrently.
type Budget struct {
	settings Settings

	// used is how long the calling thread has worked since its start.
	used func() time.Duration

	mu    sync.Mutex // guards everything that follows
	pools [Feeds + 1]pool
	// refused counts refusals by kind.
	refused [kinds]uint64
}

// pool is the places of one kind.
type pool struct {
	all, each, kept int
	queue           int // callers that may wait; 0: none
	taken           int
	by              map[string]int
	waiting         []*waiter // in order of their coming
	// turns counts the places that were given, served has the last one's number by caller: of those who
	// wait, the one who had a place longest ago is next.
	turns   int
	served  map[string]int
	holders map[*holder]struct{}
	pace    pace
}

type waiter struct {
	who  Who
	turn chan struct{} // closed when it has its place
}

// holder has a place since then; end takes it away.
type holder struct {
	who   Who
	since time.Time
	end   context.CancelCauseFunc
}

// ErrGaveWay is why a place ends for whose caller others have waited.
var ErrGaveWay = errors.New("others have waited for the place of this request, which took long; come back, or " +
	"ask for less")

// New returns a budget of which nothing is taken, on a machine with so many processors for it.
func New(s Settings, processors int) *Budget {
	b := &Budget{settings: s, used: threadTime}
	places := func(all, each, kept, queue int) pool {
		return pool{all: all, each: max(each, 1), kept: kept, queue: queue, by: map[string]int{},
			served: map[string]int{}, holders: map[*holder]struct{}{}}
	}
	// Half of what works for everybody is the most for one; a dashboard asks for all of its panels at once. A query
	// keeps a processor busy: one is left for everybody else.
	queries := min(s.Queries, max(2, processors))
	b.pools[Queries] = places(queries, queries/2, 1, 16*s.Queries)
	b.pools[Archive] = places(s.Archive, s.Archive-1, 1, 8*s.Archive)
	b.pools[Reads] = places(s.Reads, s.Reads/2, max(s.Reads/8, 1), 16*s.Reads)
	// A list keeps a processor busy too, for milliseconds: of several processors a caller has half, and of what works
	// the second goes on while the first waits for its reader. Who asks without a pause rests in between.
	b.pools[Requests] = places(s.Requests, min(s.Requests/8, max(2, processors/2)), s.Requests/8, 16*s.Requests)
	b.pools[Requests].pace = pace{share: float64(processors) / 8, atMost: s.Wait / 2, paid: map[string]time.Time{}}
	b.pools[Feeds] = places(s.Feeds, s.FeedsEach, s.FeedsKept, 0)
	return b
}

// Settings returns the limits.
func (b *Budget) Settings() Settings { return b.settings }

// Take takes a place, waiting for it where the kind has a queue; release, in the same goroutine, gives it back. An
// error is a refusal for the caller, or that of ctx. held ends with the cause ErrGaveWay when somebody else has waited
// for half of the wait, and the place was taken for as long.
func (b *Budget) Take(ctx context.Context, kind Kind, who Who) (held context.Context, release func(), err error) {
	b.mu.Lock()
	p := &b.pools[kind]
	if p.fits(who) {
		p.take(who)
		b.mu.Unlock()
		held, release = b.hold(ctx, kind, who)
		return held, release, nil
	}
	if len(p.waiting) >= p.queue || p.queued(who) >= max(p.queue/2, 1) || b.settings.Wait <= 0 {
		err := b.refuse(kind, p.full(kind, who), time.Second)
		b.mu.Unlock()
		return nil, nil, err
	}
	w := &waiter{who: who, turn: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	b.mu.Unlock()
	patience := time.AfterFunc(b.settings.Wait/2, func() { b.giveWay(kind, w) })
	defer patience.Stop()
	waits, cancel := context.WithTimeout(ctx, b.settings.Wait)
	defer cancel()
	select {
	case <-w.turn:
	case <-waits.Done():
		b.mu.Lock()
		if i := slices.Index(p.waiting, w); i >= 0 { // else its turn came meanwhile
			p.waiting = slices.Delete(p.waiting, i, i+1)
			p.forget(who)
			defer b.mu.Unlock()
			if !errors.Is(waits.Err(), context.DeadlineExceeded) || ctx.Err() != nil {
				return nil, nil, waits.Err()
			}
			return nil, nil, b.refuse(kind, p.full(kind, who), b.settings.Wait)
		}
		b.mu.Unlock()
	}
	held, release = b.hold(ctx, kind, who)
	return held, release, nil
}

// giveWay ends the place that was taken longest ago, for a waiter that would get it.
func (b *Budget) giveWay(kind Kind, w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &b.pools[kind]
	if !slices.Contains(p.waiting, w) || p.by[w.who.Key] >= p.each {
		return
	}
	var oldest *holder
	for h := range p.holders {
		if h.who.Rank <= w.who.Rank && h.who.Key != w.who.Key && (oldest == nil || h.since.Before(oldest.since)) {
			oldest = h
		}
	}
	if oldest != nil && time.Since(oldest.since) >= b.settings.Wait/2 {
		oldest.end(ErrGaveWay)
	}
}

// hold notes who has a place that was taken; release gives it back, once.
func (b *Budget) hold(ctx context.Context, kind Kind, who Who) (held context.Context, release func()) {
	held, end := context.WithCancelCause(ctx)
	h := &holder{who, time.Now(), end}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &b.pools[kind]
	p.holders[h] = struct{}{}
	worked := func() time.Duration { return 0 }
	if p.pace.share > 0 && who.Rank != Operators {
		worked = b.stopwatch()
	}
	return held, sync.OnceFunc(func() {
		end(nil)
		rest := worked()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(p.holders, h)
		p.taken--
		if rest > 0 {
			rest = p.pace.rest(who.Key, rest, time.Now())
		}
		if rest <= 0 {
			p.leave(who)
		} else {
			time.AfterFunc(rest, func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				p.leave(who)
			})
		}
		p.next()
	})
}

// leave gives a caller's own place back.
func (p *pool) leave(who Who) {
	if p.by[who.Key]--; p.by[who.Key] <= 0 {
		delete(p.by, who.Key)
	}
	p.forget(who)
	p.next()
}

// forget drops when a caller was served who neither has nor waits for a place.
func (p *pool) forget(who Who) {
	if p.by[who.Key] == 0 && p.queued(who) == 0 {
		delete(p.served, who.Key)
	}
}

// next gives free places to who waits, higher ranks first, and of one rank in turn.
func (p *pool) next() {
	for {
		at := -1
		for i, w := range p.waiting {
			if !p.fits(w.who) {
				continue
			}
			if at < 0 || w.who.Rank > p.waiting[at].who.Rank || w.who.Rank == p.waiting[at].who.Rank &&
				p.served[w.who.Key] < p.served[p.waiting[at].who.Key] {
				at = i
			}
		}
		if at < 0 {
			return
		}
		w := p.waiting[at]
		p.waiting = slices.Delete(p.waiting, at, at+1)
		p.take(w.who)
		close(w.turn)
	}
}

func (p *pool) take(who Who) {
	p.taken++
	p.by[who.Key]++
	p.turns++
	p.served[who.Key] = p.turns
}

// fits says whether a caller gets a place now.
func (p *pool) fits(who Who) bool { return p.by[who.Key] < p.each && p.taken < p.forRank(who.Rank) }

// forRank is how many places a rank may fill: the socket's users have half of the kept ones.
func (p *pool) forRank(rank Rank) int {
	switch rank {
	case Operators:
		return p.all
	case Socket:
		return p.all - p.kept/2
	}
	return p.all - p.kept
}

func (p *pool) queued(who Who) (n int) {
	for _, w := range p.waiting {
		if w.who.Key == who.Key {
			n++
		}
	}
	return n
}

// full says which limit is reached.
func (p *pool) full(kind Kind, who Who) string {
	if p.by[who.Key] >= p.each {
		return fmt.Sprintf("%s has %d %s under way already, or rests after them, the most for one caller", who.Key,
			p.by[who.Key], kindNames[kind])
	}
	return fmt.Sprintf("%d %s are under way already, of at most %d", p.taken, kindNames[kind], p.all)
}

// Refuse counts a refusal and words it; the caller may come back after a time.
func (b *Budget) Refuse(kind Kind, why string, after time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refuse(kind, why, after)
}

func (b *Budget) refuse(kind Kind, why string, after time.Duration) error {
	b.refused[kind]++
	return api.Later{Err: fmt.Errorf("%w: %s; come back in %s", api.ErrTooOften, why, after.Round(time.Second)),
		After: after}
}

// WriteMetrics writes what is taken and what was refused in Prometheus text format.
func (b *Budget) WriteMetrics(w io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.pools {
		metrics.WriteGaugeUint64(w, fmt.Sprintf("fairway_limit_in_use{limit=%q}", kindNames[k]),
			uint64(b.pools[k].taken))
	}
	for k, n := range b.refused {
		metrics.WriteCounterUint64(w, fmt.Sprintf("fairway_limit_refusals_total{limit=%q}", kindNames[k]), n)
	}
}

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
