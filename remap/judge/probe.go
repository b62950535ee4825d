package judge

import (
	"context"
	"io"
	"slices"
	"time"

	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap"
)

// Canaries sends canary probes within their limits, and judges what they saw against each other.
type Canaries struct {
	judge  *Judge
	watch  *Watch
	store  func(ctx context.Context, frames []collector.Frame) error
	runner *probe.Runner

	results chan answered
	newest  map[topology.NodeID]probe.Took // of nodes that were not under suspicion then; Run's

	asks  chan asked
	ended chan struct{} // closed when Run has
	seen  seen
}

// answered is one result, and who waits for it; nil: it was sent by rule.
type answered struct {
	probe.Result
	to chan<- remap.Canary
}

// NewCanaries sends probes on their way and gives results to the detectors, the tracker and the store.
func NewCanaries(j *Judge, w *Watch, store func(context.Context, []collector.Frame) error, limits probe.Limits,
	way func(topology.NodeID) (probe.Way, bool)) *Canaries {
	c := &Canaries{judge: j, watch: w, store: store, results: make(chan answered, 256),
		newest: map[topology.NodeID]probe.Took{},
		asks:   make(chan asked), ended: make(chan struct{}), seen: seen{of: map[topology.NodeID]remap.Canary{},
			by: map[topology.NodeID]*wish{}}}
	c.runner = probe.NewRunner(limits, way, func(r probe.Result) { c.answer(answered{Result: r}) })
	return c
}

// WriteMetrics writes what the canaries cost in Prometheus text format.
func (c *Canaries) WriteMetrics(w io.Writer) { c.runner.WriteMetrics(w) }

// answer takes one result; it never waits.
func (c *Canaries) answer(r answered) {
	select {
	case c.results <- r:
	default: // there are never so many under way
	}
}

// Run sends every second what the detectors want to know, and what persons ask for, until ctx ends
// and every probe has answered.
func (c *Canaries) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer close(c.ended)
	defer c.runner.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.results:
			if r.to == nil {
				c.take(ctx, r.Result)
				continue
			}
			c.keep(ctx, r.Result)
			r.to <- c.canary(r.Result)
		case a := <-c.asks:
			if err := c.runner.Ask(ctx, time.Now(), a.node,
				func(r probe.Result) { c.answer(answered{r, a.to}) }); err != nil {
				a.refused <- err
			}
		case now := <-tick.C:
			c.step(ctx, now)
		}
	}
}

// step sends what is due at now. Who has a finding is a suspect, and who the detectors lean towards without one.
func (c *Canaries) step(ctx context.Context, now time.Time) {
	suspects, idle := c.watch.Due(now)
	c.watch.Asked(now, c.runner.Step(ctx, now, append(suspects, c.judge.Suspected()...), idle))
}

func (c *Canaries) take(ctx context.Context, r probe.Result) {
	if ctx.Err() != nil {
		return
	}
	suspects := c.judge.Suspected()
	if r.Err != nil {
		c.judge.cfg.Log.Warn("a canary probe failed", "node", r.Node, "err", r.Err)
	} else {
		p := failslow.Probe{Node: r.Node}
		p.Took[failslow.Read], p.Took[failslow.Write], p.Took[failslow.Meta] = r.Read.Seconds(), r.Write.Seconds(),
			r.Meta.Seconds()
		c.watch.Probe(r.At, p)
		if !slices.Contains(suspects, r.Node) {
			c.newest[r.Node] = r.Took
		}
	}
	c.judge.Probe(r.Node, r.Err == nil && c.normal(r))
	c.seen.take(c.canary(r))
	c.keep(ctx, r)
}

// keep puts what a canary took into the store.
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
		c.judge.cfg.Log.Warn("a canary probe was not stored", "node", r.Node, "err", err)
	}
}

// How much longer than the middle of the others a probe may take and still pass: single small
// operations scatter, a forwarder that is slow enough to be withheld is beyond this.
const (
	passFactor = 3
	passMargin = 2 * time.Millisecond
)

// normal compares a probe with the newest ones of the forwarders that nobody suspects. With nobody to
// compare with, a probe that was answered has passed.
func (c *Canaries) normal(r probe.Result) bool {
	var read, write, meta []time.Duration
	for n, t := range c.newest {
		if n != r.Node {
			read, write, meta = append(read, t.Read), append(write, t.Write), append(meta, t.Meta)
		}
	}
	for _, one := range []struct {
		took   time.Duration
		others []time.Duration
	}{{r.Read, read}, {r.Write, write}, {r.Meta, meta}} {
		if len(one.others) == 0 {
			continue
		}
		slices.Sort(one.others)
		if one.took > passFactor*one.others[len(one.others)/2]+passMargin {
			return false
		}
	}
	return true
}
