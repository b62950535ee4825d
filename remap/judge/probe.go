package judge

import (
	"context"
	"slices"
	"time"

	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/probe"
	"fairway/collector/topology"
)

// Canaries judges what canary probes saw against each other.
type Canaries struct {
	judge *Judge
	watch *Watch
	store func(ctx context.Context, frames []collector.Frame) error

	results chan probe.Result
	newest  map[topology.NodeID]probe.Took // of nodes that were not under suspicion then
}

// NewCanaries gives results to the detectors, the tracker and the store.
func NewCanaries(j *Judge, w *Watch, store func(context.Context, []collector.Frame) error) *Canaries {
	return &Canaries{judge: j, watch: w, store: store, results: make(chan probe.Result, 256), newest: map[topology.NodeID]probe.Took{}}
}

// Answer takes one result; it never waits.
func (c *Canaries) Answer(r probe.Result) {
	select {
	case c.results <- r:
	default: // there are never so many under way
	}
}

// Run asks runner every second for what the detectors want to know, until ctx ends and every probe
// has answered.
func (c *Canaries) Run(ctx context.Context, runner *probe.Runner) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer runner.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.results:
			c.take(ctx, r)
		case now := <-tick.C:
			runner.Step(ctx, now, c.judge.Suspected(), c.watch.Due(now))
		}
	}
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
		p.Took[failslow.Read], p.Took[failslow.Write], p.Took[failslow.Meta] = r.Read.Seconds(), r.Write.Seconds(), r.Meta.Seconds()
		c.watch.Probe(r.At, p)
		if !slices.Contains(suspects, r.Node) {
			c.newest[r.Node] = r.Took
		}
	}
	c.judge.Probe(r.Node, r.Err == nil && c.normal(r))
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
