package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

const (
	// IONodeBytes is the least a compute node must have moved to count as a node that does I/O. It is
	// far above what a starting program reads of its libraries' metadata, far below any output.
	IONodeBytes = 1e6
	// longest is the most steps of a profile: a run of up to six hours is seen second by second.
	longest = 6 * 3600
	// phaseGap joins stretches of I/O that are not further apart, seconds.
	phaseGap = 2
	// maxPhases bounds what is kept of a run that does I/O all the time; the gap doubles until they fit.
	maxPhases = 200
	// nodesAtOnce bounds the memory of one look into the store.
	nodesAtOnce = 128
	// FromCollectors marks a profile that was built from what the collectors saw.
	FromCollectors = "collectors"
	// FromDarshan marks one from the logs of the run's programs: its peaks are means over the time of I/O.
	FromDarshan = "darshan"
)

// Selector reads the seconds that were collected; a tsdb.Store is one.
type Selector interface {
	Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error)
}

// Build makes the profile of an ended run from what the collectors saw on its compute nodes
// (r.NodeList) and on its forwarders. A compute node's counters are taken for the job's own, so nodes
// must not be shared by jobs. It returns nil where nothing was collected of any node. served are the operation-seconds
// that the run's metadata operations were in service of metadata servers or back ends; 0: not known.
func Build(ctx context.Context, store Selector, r Run, served float64) (*Profile, error) {
	from, to := r.Start.Unix(), r.End.Unix()+1
	step := max(1, (to-from+longest-1)/longest)
	// Buckets of the store begin at multiples of the step.
	from -= from % step
	b := builder{store: store, from: from, to: to, step: step, sum: make([]second, (to-from+step-1)/step)}
	for nodes := r.NodeList; len(nodes) > 0; {
		n := min(nodesAtOnce, len(nodes))
		if err := b.nodes(ctx, nodes[:n]); err != nil {
			return nil, fmt.Errorf("profile of job %s: %w", r.Job, err)
		}
		nodes = nodes[n:]
	}
	if b.seen == 0 {
		return nil, nil
	}
	p := b.profile(len(r.NodeList))
	if err := b.metaQueue(ctx, r.Forwarders, p, served); err != nil {
		return nil, fmt.Errorf("profile of job %s: %w", r.Job, err)
	}
	if p.IONodes == 1 {
		p.Mode = topology.Mode11
	}
	return p, nil
}

// second is what all nodes did in one step, as rates per second.
type second struct {
	read, write, ops, meta float64
	// waiting is the mean number of metadata operations that were under way, by Little's law: their
	// rate times their mean duration.
	waiting float64
	// underWay is how many requests of any kind were, where nodes count them.
	underWay float64
}

// place is a step of a node.
type place struct {
	node topology.NodeID
	step int
}

type builder struct {
	store          Selector
	from, to, step int64 // Unix seconds
	sum            []second
	seen           float64 // node-seconds that were reported
	ioNodes        int
	peakNode       float64
	metaKnown      bool    // some node reported its metadata operations
	asked, timed   float64 // metadata operations, and those whose duration was reported
	load           load
}

// rates reads one metric of nodes and shows each value: node, step, mean rate over the step, and the
// seconds of it that were reported.
func (b *builder) rates(ctx context.Context, nodes []topology.NodeID, m collector.Metric,
	visit func(node topology.NodeID, step int, rate, seconds float64)) error {
	q := tsdb.Query{Nodes: nodes, Metric: m, FromMillis: b.from * 1000, ToMillis: b.to * 1000,
		StepMillis: b.step * 1000, Agg: tsdb.AggMean}
	means, err := b.store.Select(ctx, q)
	if err != nil || b.step == 1 {
		each(means, b, func(n topology.NodeID, i int, v float64) { visit(n, i, v, 1) })
		return err
	}
	q.Agg = tsdb.AggCount
	counts, err := b.store.Select(ctx, q)
	if err != nil {
		return err
	}
	seconds := map[place]float64{}
	each(counts, b, func(n topology.NodeID, i int, v float64) { seconds[place{n, i}] = v })
	each(means, b, func(n topology.NodeID, i int, v float64) { visit(n, i, v, seconds[place{n, i}]) })
	return nil
}

func each(all []tsdb.Series, b *builder, visit func(topology.NodeID, int, float64)) {
	for _, s := range all {
		for _, p := range s.Points {
			if i := (p.TimeMillis/1000 - b.from) / b.step; i >= 0 && int(i) < len(b.sum) {
				visit(s.Node, int(i), p.Value)
			}
		}
	}
}

// nodes adds what some compute nodes did. A rate counts for the seconds that were reported only.
func (b *builder) nodes(ctx context.Context, nodes []topology.NodeID) error {
	step := float64(b.step)
	moved := map[topology.NodeID]float64{}
	busy := map[topology.NodeID][]float64{} // bytes/s by step
	add := func(n topology.NodeID, i int, rate, seconds float64) {
		moved[n] += rate * seconds
		if busy[n] == nil {
			busy[n] = make([]float64, len(b.sum))
		}
		busy[n][i] += rate * seconds / step
		b.peakNode = max(b.peakNode, busy[n][i])
	}
	ops := func(_ topology.NodeID, i int, rate, seconds float64) { b.sum[i].ops += rate * seconds / step }
	metaRate := map[place]float64{}
	for _, m := range []struct {
		metric collector.Metric
		take   func(n topology.NodeID, i int, rate, seconds float64)
	}{
		{collector.ReadBytes, func(n topology.NodeID, i int, rate, seconds float64) {
			b.seen += seconds
			b.sum[i].read += rate * seconds / step
			add(n, i, rate, seconds)
		}},
		{collector.WriteBytes, func(n topology.NodeID, i int, rate, seconds float64) {
			b.sum[i].write += rate * seconds / step
			add(n, i, rate, seconds)
		}},
		{collector.ReadOps, ops},
		{collector.WriteOps, ops},
		{collector.MetaOps, func(n topology.NodeID, i int, rate, seconds float64) {
			b.sum[i].meta += rate * seconds / step
			b.metaKnown = true
			if b.asked += rate * seconds; rate > 0 {
				metaRate[place{n, i}] = rate * seconds / step
			}
		}},
		{collector.InFlight, func(_ topology.NodeID, i int, underway, seconds float64) {
			b.sum[i].underWay += underway * seconds / step
		}},
		{collector.CPUBusyRatio, func(_ topology.NodeID, i int, busy, looks float64) {
			b.load.addCPU(time.Duration(int64(i)*b.step)*time.Second, busy*looks, looks)
		}},
		{collector.MemoryUsedRatio, func(_ topology.NodeID, _ int, used, _ float64) {
			b.load.memory = max(b.load.memory, used)
		}},
		{collector.MetaInFlight, func(n topology.NodeID, i int, underway, _ float64) {
			if rate, ok := metaRate[place{n, i}]; ok {
				b.sum[i].waiting += underway
				b.timed += rate * step
				delete(metaRate, place{n, i}) // a time of the same operations adds nothing
			}
		}},
		{collector.ClientMeta, func(n topology.NodeID, i int, duration, _ float64) {
			if rate, ok := metaRate[place{n, i}]; ok {
				b.sum[i].waiting += rate * duration
				b.timed += rate * step
			}
		}},
	} {
		if err := b.rates(ctx, nodes, m.metric, m.take); err != nil {
			return err
		}
	}
	for _, bytes := range moved {
		if bytes >= IONodeBytes {
			b.ioNodes++
		}
	}
	return nil
}

// served reports whether requests ended in the step.
func (s *second) served() bool { return s.read+s.write > 0 || s.meta > 0 }

// profile adds the steps up.
func (b *builder) profile(nodes int) *Profile {
	start, step := time.Unix(b.from, 0), time.Duration(b.step)*time.Second
	m := NewMeter(start, nodes)
	m.load = b.load
	for i := range b.sum {
		s := &b.sum[i]
		m.Add(&Tick{At: start.Add(time.Duration(i+1) * step), Seconds: step.Seconds(), Read: s.read, Write: s.write,
			Ops: s.ops, Meta: s.meta, PeakNode: b.peakNode, UnderWay: s.underWay})
	}
	p := m.Profile()
	p.IONodes, p.StepSeconds, p.From = b.ioNodes, int(b.step), FromCollectors
	p.Coverage = min(1, b.seen/(float64(nodes)*float64(b.to-b.from)))
	return p
}

// metaQueue is the mean number of metadata operations waiting at a forwarder over the steps in which the run did I/O:
// as the forwarders reported it, else by Little's law from the compute nodes' rates and durations, less what was in
// service, shared over the forwarders, else from the forwarders' own rates and waits.
func (b *builder) metaQueue(ctx context.Context, forwarders []topology.ForwarderID, p *Profile,
	served float64) error {
	if p.IOSeconds == 0 {
		return nil // a run without I/O: there is nothing to take the mean of
	}
	nodes := make([]topology.NodeID, len(forwarders))
	for i, f := range forwarders {
		nodes[i] = f.Node()
	}
	var sum, count float64
	err := b.rates(ctx, nodes, collector.MetaQueueLen, func(_ topology.NodeID, i int, length, seconds float64) {
		if b.sum[i].served() {
			sum += length * seconds
			count += seconds
		}
	})
	if err != nil {
		return err
	}
	if count == 0 {
		inService, err := b.metaService(ctx, nodes)
		if err != nil {
			return err
		}
		for i := range b.sum {
			if s := &b.sum[i]; s.served() {
				// Not bounded by 0: what was under way is sampled where nothing times it, and chances cancel.
				sum += (s.waiting - s.meta*inService[i]) / float64(max(1, len(forwarders)))
				count++
			}
		}
		if len(inService) > 0 { // forwarders that serve operations: what is on its way to them counts as waiting
			p.MetaQueueWithin = estimated
		}
		// A run that asked for something, none of which was timed, has an unknown queue.
		if !b.metaKnown || b.asked > 0 && b.timed == 0 {
			if sum, count, err = b.metaWaits(ctx, nodes); err != nil || count == 0 {
				return err
			}
			p.MetaQueueWithin = estimated
		} else {
			sum = max(0, sum-served/float64(b.step)/float64(max(1, len(forwarders))))
		}
	}
	mean := sum / count
	p.MetaQueue = &mean
	return nil
}

// estimated is the factor to which forwarders that keep histograms in decades (LWFS) know their waits.
const estimated = 2

// metaService is the mean time in service of metadata operations at forwarders by step, as they report it themselves or
// as clients of what is behind them. Routers serve none.
func (b *builder) metaService(ctx context.Context, forwarders []topology.NodeID) (map[int]float64, error) {
	rate, took, ops := map[place]float64{}, map[int]float64{}, map[int]float64{}
	err := b.rates(ctx, forwarders, collector.MetaOps, func(n topology.NodeID, i int, perSecond, _ float64) {
		rate[place{n, i}] = perSecond
	})
	for _, m := range []collector.Metric{collector.MetaExec, collector.ClientMeta} {
		err = errors.Join(err, b.rates(ctx, forwarders, m, func(n topology.NodeID, i int, mean, _ float64) {
			if at := (place{n, i}); rate[at] > 0 {
				took[i], ops[i] = took[i]+mean*rate[at], ops[i]+rate[at]
				delete(rate, at)
			}
		}))
	}
	for i := range took {
		took[i] /= ops[i]
	}
	return took, err
}

// metaWaits adds up the metadata operations that waited at forwarders while the run did I/O, by Little's law. Seconds
// without any operation say that none waited only of forwarders that report how long some did.
func (b *builder) metaWaits(ctx context.Context, forwarders []topology.NodeID) (sum, seconds float64, err error) {
	rate, idle, busy, timed := map[place]float64{}, 0.0, false, false
	err = b.rates(ctx, forwarders, collector.MetaOps, func(n topology.NodeID, i int, perSecond, known float64) {
		if b.sum[i].served() {
			rate[place{n, i}] = perSecond
			if perSecond == 0 {
				idle += known
			} else {
				busy = true
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	err = b.rates(ctx, forwarders, collector.MetaWait, func(n topology.NodeID, i int, wait, known float64) {
		if perSecond := rate[place{n, i}]; perSecond > 0 {
			sum += perSecond * wait * known
			seconds += known
			timed = true
		}
	})
	if timed || !busy {
		seconds += idle
	}
	return sum, seconds, err
}

// Seconds is how long the run took.
func (r *Run) Seconds() float64 { return r.End.Sub(r.Start).Seconds() }

// Settle is how long after a job's end its last seconds have usually come in; a spool that is
// replayed later is not waited for.
const Settle = 5 * time.Second
