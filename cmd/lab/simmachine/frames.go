package simmachine

import (
	"math"

	"fairway/collector"
	"fairway/collector/topology"
)

// routesEvery is how often, in seconds, a compute node repeats its unchanged route.
const routesEvery = 4

// show turns the second's state into frames, in the order of the machine's nodes.
func (m *Machine) show() {
	at := m.now.Add(-1e9).UnixMilli()
	for i := range m.fwds {
		m.fwds[i].clients = 0
	}
	for i := range m.compute {
		m.fwds[m.compute[i].fwd].clients++
	}
	k := 0
	next := func(role topology.Role) *collector.Frame {
		f := &m.frames[k]
		*f = collector.Frame{Node: m.topo.Nodes[k].ID, Role: role, TimeMillis: at}
		k++
		return f
	}
	for i := range m.fwds {
		f := next(topology.Forwarder)
		f.Samples, f.Jobs = m.fwds[i].show(m, &m.demand[i])
	}
	for i := range m.compute {
		m.compute[i].show(m, i, next(topology.Compute))
	}
	var read, write, meta float64
	for i := range m.fwds {
		read, write, meta = read+m.fwds[i].read, write+m.fwds[i].write, meta+m.fwds[i].metaOps
	}
	n := float64(max(m.cfg.Storage, 1))
	for range m.cfg.Storage {
		next(topology.Storage).Samples = []collector.Sample{{Metric: collector.ReadBytes, Value: whole(read / n)},
			{Metric: collector.WriteBytes, Value: whole(write / n)}}
	}
	next(topology.Metadata).Samples = []collector.Sample{{Metric: collector.MetaOps, Value: whole(meta)},
		{Metric: collector.MetaExec, Value: metaExec * m.slowdown}}
}

// whole rounds what a real counter could only count.
func whole(v float64) float64 { return float64(int64(v + 0.5)) }

// show reports one forwarder. A latency without operations is absent.
func (f *forwarder) show(m *Machine, d *demand) ([]collector.Sample, []collector.JobSamples) {
	s := f.samples[:0]
	add := func(metric collector.Metric, v float64) { s = append(s, collector.Sample{Metric: metric, Value: v}) }
	readOps, writeOps, metaOps := whole(f.readOps), whole(f.writeOps), whole(f.metaOps)
	add(collector.ReadBytes, whole(f.read))
	add(collector.WriteBytes, whole(f.write))
	add(collector.ReadOps, readOps)
	add(collector.WriteOps, writeOps)
	add(collector.MetaOps, metaOps)
	add(collector.QueueLen, whole(f.queue))
	add(collector.MetaQueueLen, whole(f.metaQueue))
	add(collector.ThreadsBusy, whole(f.busy))
	add(collector.Threads, float64(m.cfg.Threads))
	add(collector.Connections, float64(f.clients))
	noise := 0.95 + 0.1*m.rng.Float64()
	if readOps > 0 {
		add(collector.ReadWait, f.readWait*noise)
		add(collector.ReadExec, f.readExec*noise)
	}
	if writeOps > 0 {
		add(collector.WriteWait, f.writeWait*noise)
		add(collector.WriteExec, f.writeExec*noise)
	}
	if metaOps > 0 {
		add(collector.MetaWait, f.metaWait*noise)
		add(collector.MetaExec, f.metaExec*noise)
	}
	f.samples = s
	f.shares, f.bytes = f.shares[:0], f.bytes[:0]
	if cap(f.bytes) < 2*len(d.byJob) {
		f.bytes = make([]collector.Sample, 0, 4*len(d.byJob))
	}
	for _, j := range d.byJob {
		b := append(f.bytes, collector.Sample{Metric: collector.ReadBytes, Value: whole(j.read * f.granted.read)},
			collector.Sample{Metric: collector.WriteBytes, Value: whole(j.write * f.granted.write)})
		f.shares = append(f.shares, collector.JobSamples{Job: j.j.id, Samples: b[len(f.bytes):]})
		f.bytes = b
	}
	return s, f.shares
}

// show reports one compute node.
func (c *computeNode) show(m *Machine, i int, f *collector.Frame) {
	if c.changed || (m.second+i)%routesEvery == 0 {
		c.route[0] = collector.Route{Client: f.Node, Forwarder: m.fwds[c.fwd].id, Generation: c.gen}
		f.Routes, f.RoutesComplete, c.changed = c.route[:], true, false
	}
	s := c.samples[:0]
	add := func(metric collector.Metric, v float64) { s = append(s, collector.Sample{Metric: metric, Value: v}) }
	if c.job == nil {
		c.moved = moved{}
	}
	add(collector.ReadBytes, whole(c.read))
	add(collector.WriteBytes, whole(c.write))
	reads, writes, metas := c.ended(0, c.readOps), c.ended(1, c.writeOps), c.ended(2, c.metaOps)
	add(collector.ReadOps, reads)
	add(collector.WriteOps, writes)
	add(collector.MetaOps, metas)
	bytes := s[:2]
	if reads > 0 {
		add(collector.ClientRead, c.latRead)
	}
	if writes > 0 {
		add(collector.ClientWrite, c.latWrite)
	}
	if metas > 0 {
		add(collector.ClientMeta, c.latMeta)
	}
	f.Samples = s
	if c.job != nil && c.read+c.write+c.metaOps > 0 {
		c.share[0] = collector.JobSamples{Job: c.job.id, Samples: bytes}
		f.Jobs = c.share[:]
	}
}

// ended counts the operations of a class that end in this second. One that takes seconds ends in one of them.
func (c *computeNode) ended(class int, ops float64) float64 {
	if ops == 0 || ops >= 0.5 {
		c.begun[class] = 0
		return whole(ops)
	}
	n, rest := math.Modf(c.begun[class] + ops)
	c.begun[class] = rest
	return n
}
