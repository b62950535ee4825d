package watch

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/probe"
	"fairway/collector/topology"
)

// Canaries sends canary probes within their limits, and judges what they saw against each other.
type Canaries struct {
	loop      *Loop
	detectors *Detectors
	store     func(ctx context.Context, frames []collector.Frame) error
	runner    *probe.Runner

	asks  chan func(context.Context)     // by which persons' canaries begin; Run makes them
	calls chan func(context.Context)     // by which answered ones are taken; Run makes them, none is dropped
	clean map[topology.NodeID]probe.Took // newest times of nodes that were not suspected then; Run's
	ended chan struct{}                  // closed when Run has

	mu     sync.Mutex // guards what follows
	newest map[topology.ForwarderID]anomaly.Canary
}

// NewCanaries sends probes on their way and gives results to the detectors, the tracker and the store.
func NewCanaries(l *Loop, d *Detectors, store func(context.Context, []collector.Frame) error, limits probe.Limits,
	way func(topology.NodeID) (probe.Way, bool)) *Canaries {
	c := &Canaries{loop: l, detectors: d, store: store, asks: make(chan func(context.Context)),
		calls: make(chan func(context.Context), limits.AtOnce), clean: map[topology.NodeID]probe.Took{},
		ended: make(chan struct{}), newest: map[topology.ForwarderID]anomaly.Canary{}}
	c.runner = probe.NewRunner(limits, way, func(r probe.Result) {
		c.calls <- func(ctx context.Context) { c.take(ctx, r) }
	})
	return c
}

// WriteMetrics writes what the canaries cost in Prometheus text format.
func (c *Canaries) WriteMetrics(w io.Writer) { c.runner.WriteMetrics(w) }

// Newest returns the newest canary of a forwarder since the daemon's start, whoever asked for it.
func (c *Canaries) Newest(f topology.ForwarderID) (anomaly.Canary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.newest[f]
	return one, ok
}

func (c *Canaries) keepNewest(one anomaly.Canary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest[one.Forwarder] = one
}

// ErrEnding is returned for a canary that was still to be sent when Run ended.
var ErrEnding = errors.New("the daemon is ending")

// May returns why no canary would be sent through a forwarder for a person at now; nil: one would.
func (c *Canaries) May(now time.Time, f topology.ForwarderID) error {
	return c.runner.May(now, f.Node())
}

// Send sends one canary through a forwarder within the limits that hold for all of them, and waits for its
// result. The detectors do not see it: they rest on canaries sent by rule. by is the person who asked. A canary
// that failed returns without an error: its result says so. Errors: those of May, and ErrEnding.
func (c *Canaries) Send(now time.Time, f topology.ForwarderID, by string) (anomaly.Canary, error) {
	results, refused := make(chan anomaly.Canary, 1), make(chan error, 1)
	ask := func(ctx context.Context) {
		if err := c.runner.Ask(ctx, now, f.Node(), func(r probe.Result) {
			c.calls <- func(ctx context.Context) {
				c.keep(ctx, r)
				results <- c.canary(r)
			}
		}); err != nil {
			refused <- err
		}
	}
	select {
	case c.asks <- ask: // whoever asks may wait, and is to have an answer
	case <-c.ended:
		return anomaly.Canary{}, ErrEnding
	}
	select {
	case one := <-results:
		one.By = by
		c.keepNewest(one)
		return one, nil
	case err := <-refused: // another one came first
		return anomaly.Canary{}, err
	case <-c.ended:
		return anomaly.Canary{}, ErrEnding
	}
}

// Run sends the canaries that are due, and those that persons ask for, until ctx ends and every probe has answered.
func (c *Canaries) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer close(c.ended)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case call := <-c.calls:
			call(ctx)
		case ask := <-c.asks:
			ask(ctx)
		case now := <-tick.C:
			c.step(ctx, now)
		}
	}
	answered := make(chan struct{})
	go func() {
		c.runner.Wait()
		close(answered)
	}()
	for {
		select {
		case call := <-c.calls:
			call(ctx)
		case <-answered:
			return
		}
	}
}

// step sends what is due at now. Suspects are the nodes with a finding, and those that the detectors lean towards
// without one.
func (c *Canaries) step(ctx context.Context, now time.Time) {
	if a := c.loop.cfg.Acting; a != nil && !a() {
		return
	}
	suspects, idle := c.detectors.Due(now)
	c.detectors.Asked(now, c.runner.Step(ctx, now, append(suspects, c.loop.Suspected()...), idle))
}

func (c *Canaries) take(ctx context.Context, r probe.Result) {
	if ctx.Err() != nil {
		return
	}
	suspects := c.loop.Suspected()
	if r.Err != nil {
		c.loop.cfg.Log.Warn("a canary probe failed", "node", r.Node, "err", r.Err)
	} else {
		p := failslow.Probe{Node: r.Node}
		p.Took[failslow.Read], p.Took[failslow.Write], p.Took[failslow.Meta] = r.Read.Seconds(), r.Write.Seconds(),
			r.Meta.Seconds()
		c.detectors.Probe(r.At, p)
		if !slices.Contains(suspects, r.Node) {
			c.clean[r.Node] = r.Took
		}
	}
	c.loop.Probe(r.Node, r.Err == nil && c.normal(r))
	c.keepNewest(c.canary(r))
	c.keep(ctx, r)
}

// keep stores the times of a canary.
func (c *Canaries) keep(ctx context.Context, r probe.Result) {
	f := collector.Frame{Node: r.Node, Role: topology.Forwarder, TimeMillis: r.At.Truncate(time.Second).UnixMilli()}
	for _, m := range []struct {
		metric collector.Metric
		took   time.Duration
	}{{collector.ProbeRead, r.Read}, {collector.ProbeWrite, r.Write}, {collector.ProbeMeta, r.Meta}} {
		if m.took > 0 {
			f.Samples = append(f.Samples, collector.Sample{Metric: m.metric, Value: m.took.Seconds()})
		}
	}
	if len(f.Samples) == 0 {
		return
	}
	if err := c.store(ctx, []collector.Frame{f}); err != nil && ctx.Err() == nil {
		c.loop.cfg.Log.Warn("a canary probe was not stored", "node", r.Node, "err", err)
	}
}

// How much longer than the median of the others a probe may take and still pass: single small operations scatter,
// and a forwarder that is slow enough to be excluded is beyond this. On a busy machine every tenth is beyond it
// everywhere, and so many in a row would never pass: an operation is too slow where the one before was, too.
const (
	passFactor = 3
	passMargin = 2 * time.Millisecond
	passBefore = 30 * time.Second // how old the one before may be
)

// normal compares a probe with the newest ones of the forwarders that are not suspected. Without any of those, a
// probe that was answered has passed.
func (c *Canaries) normal(r probe.Result) bool {
	before, ok := c.Newest(topology.ForwarderID(r.Node))
	if !ok || before.Error != "" || r.At.Sub(before.At) > passBefore {
		before.Took = anomaly.CanaryTook{}
	}
	now := c.canary(r)
	for _, one := range []struct{ took, before, peers *float64 }{
		{now.Took.Read, before.Took.Read, now.Peers.Read}, {now.Took.Write, before.Took.Write, now.Peers.Write},
		{now.Took.Stat, before.Took.Stat, now.Peers.Stat}} {
		if one.took == nil || one.peers == nil {
			continue
		}
		most := passFactor**one.peers + passMargin.Seconds()
		if *one.took > most && (one.before == nil || *one.before > most) {
			return false
		}
	}
	return true
}

// canary is a result beside those of the forwarders that are not suspected.
func (c *Canaries) canary(r probe.Result) anomaly.Canary {
	out := anomaly.Canary{Forwarder: topology.ForwarderID(r.Node), At: r.At.UTC(), Bytes: r.Bytes}
	if r.Err != nil {
		out.Error, out.Bytes = r.Err.Error(), 0
	}
	out.Took = anomaly.CanaryTook{Read: took(r.Read), Write: took(r.Write), Stat: took(r.Meta)}
	var peers [3][]float64
	for n, t := range c.clean {
		if n != r.Node {
			peers[0], peers[1] = append(peers[0], t.Read.Seconds()), append(peers[1], t.Write.Seconds())
			peers[2] = append(peers[2], t.Meta.Seconds())
		}
	}
	out.PeersOf = len(peers[0])
	out.Peers = anomaly.CanaryTook{Read: anomaly.KnownMedian(peers[0]), Write: anomaly.KnownMedian(peers[1]),
		Stat: anomaly.KnownMedian(peers[2])}
	return out
}

func took(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}
