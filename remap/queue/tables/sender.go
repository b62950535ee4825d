package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/queue"
)

// Config is what a Sender works with.
type Config struct {
	Settings
	// Situation returns the present situation.
	Situation func() *remap.Situation
	// Rates are the bandwidths that windows give their jobs at a time, bytes per second; nil: there are no windows.
	Rates func(time.Time) map[topology.JobID]float64
	// Limits are those of the plans in force; nil: there are none.
	Limits func() remap.Limits
	// Order reaches the agent of a forwarding node.
	Order func(ctx context.Context, node topology.NodeID, o wire.Order) (wire.OrderResult, error)
	Log   *slog.Logger // nil: discard
}

// Sender gives every queue its table when it changes, and again before its lease ends. One goroutine
// calls Run.
type Sender struct {
	cfg        Config
	queues     map[topology.NodeID]*sent // and object servers
	seed       int64                     // keeps the order ids of two lives of the daemon apart
	next       atomic.Uint64
	sent, lost atomic.Uint64
	gather     gatherer
	keepers
}

// sent is what a queue was sent last.
type sent struct {
	table  []byte    // that it took; nil: none yet
	tried  time.Time // when it was last sent one, with whatever success
	failed bool      // the last order, which was logged
}

// New returns a sender.
func New(cfg Config) *Sender {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{cfg: cfg, queues: map[topology.NodeID]*sent{}, seed: time.Now().UnixNano(),
		gather: newGatherer(&cfg), keepers: keepers{kept: map[topology.NodeID]kept{}}}
}

const (
	lookEvery   = time.Second
	orderWithin = 5 * time.Second
	atOnce      = 16
	renewals    = 3 // in a lease, so that one may be lost
	tryAgain    = 5 * time.Second
)

// Run sends until ctx ends. Without a policy it returns at once.
func (s *Sender) Run(ctx context.Context) {
	if s.cfg.Policy == "" {
		return
	}
	var gathering sync.WaitGroup
	defer gathering.Wait()
	if s.cfg.Lambda > 0 {
		gathering.Go(func() { s.gatherEvery(ctx, s.cfg.Lambda) })
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		s.look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look sends the tables that are due at now, and waits for their answers.
func (s *Sender) look(ctx context.Context, now time.Time) {
	situation := s.cfg.Situation()
	var rates map[topology.JobID]float64
	if s.cfg.Rates != nil {
		rates = s.cfg.Rates(now)
	}
	queues := Of(situation, &s.cfg.Settings, rates)
	tables := map[topology.NodeID]queue.Table{}
	if len(s.cfg.Servers) > 0 {
		all := OfServers(situation, &s.cfg.Settings, rates)
		for _, n := range s.cfg.Servers {
			tables[topology.NodeID(n)] = all
		}
	}
	for f, t := range queues {
		tables[f.Node()] = t
	}
	limits := s.limits()
	for n, t := range tables {
		tables[n] = limited(t, limits[n])
	}
	for n := range s.queues {
		if _, still := tables[n]; !still {
			delete(s.queues, n)
		}
	}
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n, t := range tables {
		r := s.queues[n]
		if r == nil {
			r = &sent{}
			s.queues[n] = r
		}
		body, err := json.Marshal(t)
		if err != nil {
			panic(err) // a table is numbers and text
		}
		if !r.due(body, now, s.cfg.Lease/renewals) {
			continue
		}
		r.tried = now
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			s.send(ctx, n, r, t, body)
		})
	}
	all.Wait()
	s.readBack(ctx, tables, limits)
	taken := map[topology.ForwarderID]queue.Table{}
	for f, t := range queues {
		if s.queues[f.Node()].table != nil {
			taken[f] = t
		}
	}
	s.gather.knows(taken)
}

// due says whether a queue gets its table: another one than it took at once, the same again when renew has
// passed, and sooner after an order that failed.
func (r *sent) due(table []byte, now time.Time, renew time.Duration) bool {
	switch {
	case r.table != nil && !bytes.Equal(r.table, table):
		return true
	case r.failed:
		return now.Sub(r.tried) >= min(renew, tryAgain)
	}
	return now.Sub(r.tried) >= renew // never tried is long ago
}

func (s *Sender) send(ctx context.Context, n topology.NodeID, r *sent, t queue.Table, body []byte) {
	if _, err := s.order(ctx, n, wire.OrderShare, body, orderWithin); err != nil {
		s.lost.Add(1)
		if !r.failed {
			r.failed = true
			s.cfg.Log.Warn(
				"a queue did not take its table; it keeps the one before until the lease ends, then serves in the "+
					"order of "+
					"arrival", "node", n, "err", err)
		}
		return
	}
	s.sent.Add(1)
	if r.table == nil || r.failed {
		s.cfg.Log.Info("queue took its table", "node", n, "policy", t.Policy, "jobs", len(t.Jobs))
	}
	r.table, r.failed = body, false
}

// order has the agent of a node do something, and waits no longer than within for the answer.
func (s *Sender) order(ctx context.Context, n topology.NodeID, kind string, body []byte,
	within time.Duration) ([]byte, error) {
	// The agent's clock may differ by more than an interval: by its clock there is more time.
	o := wire.Order{ID: fmt.Sprintf("%s/%x/%d", kind, s.seed, s.next.Add(1)), Kind: kind, Body: body,
		Deadline: time.Now().Add(max(within, orderWithin))}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	res, err := s.cfg.Order(ctx, n, o)
	if err == nil && !res.OK {
		err = fmt.Errorf("agent of %s: %s", n, res.Err)
	}
	return res.Body, err
}

// WriteMetrics writes what was sent in Prometheus text format.
func (s *Sender) WriteMetrics(w io.Writer) {
	fmt.Fprintf(w, "fairway_queue_tables_total{result=\"taken\"} %d\n", s.sent.Load())
	fmt.Fprintf(w, "fairway_queue_tables_total{result=\"failed\"} %d\n", s.lost.Load())
	s.gather.writeMetrics(w)
}
