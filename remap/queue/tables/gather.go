package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/policy/share"
	"fairway/remap/queue"
)

// gatherer is the all-gather of section 3.1 (Karrels et al., ThemisIO): every lambda each queue says what it
// served and whose requests waited, and gets its part of the global shares.
type gatherer struct {
	policy share.Policy
	idle   share.Idle
	lambda time.Duration
	log    *slog.Logger

	members map[topology.ForwarderID]*member // the round's own

	mu     sync.Mutex // guards what follows
	tables map[topology.ForwarderID]queue.Table
	shown  Gathering
	rounds uint64
	missed uint64
}

// member is a queue as rounds know it.
type member struct {
	last     *queue.Report // nil: none yet, or the queue restarted
	worked   bool          // something always waited in an interval, so that capacity is known
	capacity float64       // cost per second then; 0 is a forwarder that hangs
	served   map[string]float64
	silent   error // why it is not in the round
}

func newGatherer(c *Config) gatherer {
	p, _ := share.ParsePolicy(c.method()) // an empty one is never gathered for
	return gatherer{policy: p, idle: c.Idle, lambda: c.Lambda, log: c.Log, members: map[topology.ForwarderID]*member{}}
}

// knows takes the tables that queues serve by.
func (g *gatherer) knows(tables map[topology.ForwarderID]queue.Table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tables = tables
}

// gatherAtOnce is how many queues are spoken with together.
const gatherAtOnce = 64

func (s *Sender) gatherEvery(ctx context.Context, lambda time.Duration) {
	tick := time.NewTicker(lambda)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.round(ctx)
		}
	}
}

// answerWithin is how long a queue has for an answer: half an interval, or where that is short as long as a busy
// machine may take. A round that lasts longer than an interval is followed by the next one at once.
func answerWithin(lambda time.Duration) time.Duration { return max(lambda/2, 500*time.Millisecond) }

// round is one all-gather. Queues that do not answer in time are not in it: the others divide
// among themselves, and those left alone go back to their local shares.
func (s *Sender) round(ctx context.Context) {
	g := &s.gather
	g.mu.Lock()
	tables := g.tables
	if len(tables) < 2 { // of one the local shares are the global ones
		g.shown = Gathering{}
		tables = nil
	}
	g.mu.Unlock()
	if tables == nil {
		return
	}
	answers := s.askAll(ctx, slices.Sorted(maps.Keys(tables)))
	if ctx.Err() != nil {
		return
	}
	at := time.Now()
	names, reports := g.reports(tables, answers)
	round := share.Gather(g.policy, g.idle, reports)
	if len(reports) > 1 { // one alone has its local shares
		s.tellAll(ctx, names, reports, round)
	}
	g.show(at, tables, answers, names, reports, round)
}

// answer is a queue's report, or why it is missing.
type answer struct {
	report queue.Report
	err    error
}

func (s *Sender) askAll(ctx context.Context, names []topology.ForwarderID) map[topology.ForwarderID]answer {
	out := make([]answer, len(names))
	each(len(names), func(i int) {
		body, err := s.order(ctx, names[i].Node(), wire.OrderReport, []byte("{}"), answerWithin(s.cfg.Lambda))
		if err == nil {
			err = json.Unmarshal(body, &out[i].report)
		}
		out[i].err = err
	})
	answers := map[topology.ForwarderID]answer{}
	for i, f := range names {
		answers[f] = out[i]
	}
	return answers
}

func (s *Sender) tellAll(ctx context.Context, names []topology.ForwarderID, reports []share.Report, round share.Round) {
	each(len(names), func(i int) {
		global := queue.Global{HoldSeconds: holdFor(s.cfg.Lambda).Seconds(), Shares: map[string]float64{}}
		for k, x := range round.Server[i] {
			global.Shares[reports[i].Jobs[k].Name] = min(x, 1)
		}
		body, err := json.Marshal(global)
		if err != nil {
			panic(err) // it is numbers and text
		}
		if _, err := s.order(ctx, names[i].Node(), wire.OrderGlobal, body, answerWithin(s.cfg.Lambda)); err != nil {
			s.gather.missedOne() // it keeps what it has until that is too old; the next round says whether it answers
		}
	})
}

// holdFor is how long a queue keeps global shares without others: a round or two may be lost.
func holdFor(lambda time.Duration) time.Duration { return max(3*lambda, 3*time.Second) }

// each calls do for 0 to n-1, some of them together, and waits.
func each(n int, do func(int)) {
	places := make(chan struct{}, gatherAtOnce)
	var all sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		all.Go(func() { do(i); <-places })
	}
	all.Wait()
}

func (g *gatherer) missedOne() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missed++
}

// reports are what the queues did since the round before, of those that were in both.
func (g *gatherer) reports(tables map[topology.ForwarderID]queue.Table,
	answers map[topology.ForwarderID]answer) (names []topology.ForwarderID, reports []share.Report) {
	maps.DeleteFunc(g.members, func(f topology.ForwarderID, _ *member) bool { _, still := tables[f]; return !still })
	known := 0.0
	for _, f := range slices.Sorted(maps.Keys(answers)) {
		m, a := g.members[f], answers[f]
		if m == nil {
			m = &member{served: map[string]float64{}}
			g.members[f] = m
		}
		if g.note(f, m, a.err); a.err != nil {
			m.last = nil
			continue
		}
		last := m.last
		m.last = &a.report
		if last == nil || a.report.UpSeconds <= last.UpSeconds || a.report.WaitedSeconds < last.WaitedSeconds {
			continue // it has just started or restarted
		}
		r := m.since(f, tables[f], last)
		names, reports = append(names, f), append(reports, r)
		known = max(known, r.Capacity)
	}
	for i := range reports {
		if !g.members[names[i]].worked { // never seen at work: like the fastest of the others
			reports[i].Capacity = known
		}
	}
	return names, reports
}

// note logs once that a queue has fallen silent, and that it is back.
func (g *gatherer) note(f topology.ForwarderID, m *member, err error) {
	switch {
	case err != nil && m.silent == nil:
		g.log.Warn("a queue is not in the all-gather; it shares by its local shares until it answers again",
			"forwarder", f, "err", err)
	case err == nil && m.silent != nil:
		g.log.Info("queue is in the all-gather again", "forwarder", f)
	}
	m.silent = err
}

// A queue at which something waited for most of an interval does what it can; how much that is is a mean that
// forgets in about five intervals. Of a forwarder that hangs nothing is left in the end: with numbers without a meaning
// nothing can be divided.
const (
	saturated = 0.8
	forget    = 0.2
	nothing   = 1.0 // cost per second; a single request costs more than ten thousand
)

// since makes the report of an interval: rates per second.
func (m *member) since(f topology.ForwarderID, t queue.Table, last *queue.Report) share.Report {
	seconds := m.last.UpSeconds - last.UpSeconds
	r := share.Report{Server: string(f)}
	all, before := 0.0, m.served
	m.served = make(map[string]float64, len(before)) // what jobs did that are gone is nobody's part any more
	work := func(j share.Job) {
		now, then := m.last.Jobs[j.Name], last.Jobs[j.Name]
		w := share.Work{Job: j, Served: max(float64(now.Cost-then.Cost)/seconds, 0)}
		w.Waited = min(max((now.WaitedSeconds-then.WaitedSeconds)/seconds, 0), 1)
		all += w.Served
		r.Jobs = append(r.Jobs, w)
		m.served[j.Name] = before[j.Name] + forget*(w.Served-before[j.Name])
	}
	for _, j := range t.Jobs {
		work(j.Entity())
	}
	work(share.Job{Size: 1, Priority: 1}) // clients in no job
	if (m.last.WaitedSeconds-last.WaitedSeconds)/seconds >= saturated {
		if !m.worked {
			m.worked, m.capacity = true, all
		}
		if m.capacity += forget * (all - m.capacity); m.capacity < nothing {
			m.capacity = 0
		}
	}
	r.Capacity = max(m.capacity, all)
	return r
}

func (g *gatherer) writeMetrics(w io.Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == 0 {
		return
	}
	reachable, silent := 0, 0
	if g.shown.Reachable {
		reachable = 1
	}
	for _, r := range g.shown.Queues {
		if r.By != queue.ByGlobal {
			silent++
		}
	}
	fmt.Fprintf(w, "fairway_queue_gather_rounds_total %d\n", g.rounds)
	fmt.Fprintf(w, "fairway_queue_gather_lost_total %d\n", g.missed)
	fmt.Fprintf(w, "fairway_queue_gather_reachable %d\n", reachable)
	fmt.Fprintf(w, "fairway_queue_gather_local %d\n", silent)
	least := math.NaN()
	for _, j := range g.shown.Jobs {
		if x := j.Reachable / j.Share; j.Share > 0 && !(x >= least) {
			least = x
		}
	}
	if !math.IsNaN(least) {
		fmt.Fprintf(w, "fairway_queue_gather_least %g\n", least)
	}
}
