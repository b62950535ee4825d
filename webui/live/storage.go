package live

import (
	"cmp"
	"slices"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// storage is what a forwarder asks of storage in the newest second: its own side of each target where it
// counts them, else its jobs' shares at the servers.
func (p *Picture) storage(s *Snapshot, id topology.ForwarderID) api.StorageView {
	oldest := oldestShown(s.Made)
	var own []collector.TargetSamples
	others := map[topology.TargetID][]float64{}
	counts, reports, servers, router := false, false, false, false
	p.cfg.Board.Layer(topology.Storage, func(f *window.Node) {
		servers = servers || f.TimeMillis >= oldest && len(f.Jobs) > 0
	})
	p.cfg.Board.Layer(topology.Forwarder, func(f *window.Node) {
		if f.TimeMillis < oldest {
			return
		}
		reports = reports || f.Node == id.Node()
		if _, routes := f.Value(collector.RoutedBytes); routes && f.Node == id.Node() {
			router = true
		}
		counts = counts || f.Node == id.Node() && hasTargets(&f.Frame)
		for _, t := range f.Targets {
			if t.Target.IsNID() {
				continue // a peer or a router of its network
			}
			if f.Node == id.Node() {
				own = append(own, collector.TargetSamples{Target: t.Target, Samples: slices.Clone(t.Samples)})
			} else if v := latencyOf(t.Samples, collector.ClientRead, collector.ClientWrite); v != nil {
				others[t.Target] = append(others[t.Target], *v)
			}
		}
	})
	if len(own) == 0 {
		v := api.StorageView{Rows: []api.StorageRow{}, Unknown: "not reported by this layer"}
		if !reports {
			v.Unknown = "the forwarder does not report"
		} else if router {
			v.Unknown = "a router forwards messages and does not know for which storage target"
		} else if counts {
			v.Unknown = "no request to a storage target in this second"
		} else if servers {
			p.addServers(s, &v, id, oldest)
		}
		return v
	}
	v := api.StorageView{By: api.StorageByForwarder}
	served := serverLatency(p.cfg.Board, oldest)
	for _, t := range own {
		row := api.StorageRow{Target: string(t.Target), RequestsPerSec: sumOf(t.Samples, collector.ReadOps,
			collector.WriteOps),
			ReadBytesPerSec:  sumOf(t.Samples, collector.ReadBytes),
			WriteBytesPerSec: sumOf(t.Samples, collector.WriteBytes),
			LatencySeconds:   latencyOf(t.Samples, collector.ClientRead, collector.ClientWrite),
			PeersLatency:     anomaly.KnownMedian(others[t.Target])}
		if here, ok := served[topology.NodeID(t.Target)]; ok && row.LatencySeconds == nil { // it reports itself
			row.LatencySeconds, row.PeersLatency = &here, othersLatency(served, topology.NodeID(t.Target))
		}
		v.Rows = append(v.Rows, row)
	}
	sortStorage(v.Rows)
	s.addMost(v.Rows)
	return v
}

// addMost names who does most at each target.
func (s *Snapshot) addMost(rows []api.StorageRow) {
	for i := range rows {
		rows[i].Most = s.most()[topology.NodeID(rows[i].Target)]
	}
}

// countMost finds who does most at each storage target and server, as its server counts it.
func countMost(board *window.Board, s *Snapshot) map[topology.NodeID]*api.Use {
	servers := func(visit func(*collector.Frame)) {
		for _, role := range []topology.Role{topology.Storage, topology.Metadata} {
			board.Layer(role, func(n *window.Node) { visit(&n.Frame) })
		}
	}
	var of []topology.NodeID
	servers(func(f *collector.Frame) {
		of = append(of, f.Node)
		for i := range f.Jobs {
			of = append(of, topology.NodeID(f.Jobs[i].Target))
		}
	})
	most := map[topology.NodeID]*api.Use{}
	for id, u := range usesAt(s, of, servers) {
		most[id] = u.Most()
	}
	return most
}

// hasTargets says that a node's agent reads the client's side of storage targets, so that none in its
// frame was not asked for.
func hasTargets(f *collector.Frame) bool {
	return slices.ContainsFunc(f.Targets, func(t collector.TargetSamples) bool { return !t.Target.IsNID() }) ||
		slices.ContainsFunc(f.Sources, func(s collector.SourceStatus) bool {
			return (s.Name == "lustre" || s.Name == "ganesha") && s.Err == ""
		})
}

// TargetUses are what this machine moves at some storage targets or servers in the newest second, by job, the most
// bytes first. Clients' own counts are taken where there are any, else those of servers; nil: nobody counts.
func TargetUses(p *Picture, of []topology.NodeID) []api.TargetUse {
	s := p.Snapshot()
	c := useCount{oldest: oldestShown(s.Made), situation: s.Situation, jobs: ownersOf(s.Situation.Jobs),
		on: map[topology.NodeID][]Link{}, sums: map[api.TargetUse]*api.TargetUse{}, of: of}
	for i := range s.Situation.Jobs {
		c.known = append(c.known, s.Situation.Jobs[i].ID)
	}
	flow := s.flow()
	for _, l := range flow.Links {
		c.on[l.Forwarder.Node()] = append(c.on[l.Forwarder.Node()], l)
	}
	p.cfg.Board.Visit(c.frame)
	if !c.byClients && !c.byServers {
		return nil
	}
	for i := range flow.Storage {
		if l := &flow.Storage[i]; !c.byClients && slices.Contains(c.known, l.Job) {
			c.add(api.TargetUse{Target: l.Server, Job: l.Job, By: api.StorageByServers}, l.ReadBytesPerSec,
				l.WriteBytesPerSec)
		}
	}
	out := []api.TargetUse{}
	for _, u := range c.sums {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b api.TargetUse) int {
		return cmp.Or(cmp.Compare(b.ReadBytesPerSec+b.WriteBytesPerSec, a.ReadBytesPerSec+a.WriteBytesPerSec),
			cmp.Compare(a.Target, b.Target), cmp.Compare(a.Job, b.Job))
	})
	return out
}

// useCount adds up what one second's frames say of targets.
type useCount struct {
	of        []topology.NodeID
	oldest    int64
	situation *remap.Situation
	known     []topology.JobID                   // to the batch system
	jobs      map[topology.NodeID]topology.JobID // of compute nodes
	on        map[topology.NodeID][]Link         // forwarders' jobs
	sums      map[api.TargetUse]*api.TargetUse   // by all but the numbers
	// byClients and byServers say who counts, whether or not it is one of the targets.
	byClients, byServers bool
}

func (c *useCount) frame(f *collector.Frame) {
	if f.TimeMillis < c.oldest {
		return
	}
	switch f.Role {
	case topology.Storage:
		c.byServers = c.byServers || len(f.Jobs) > 0
	case topology.Compute, topology.Forwarder:
		// A node that counts what it asks of forwarders alone does not know what these ask of storage.
		gateway := func(t collector.TargetSamples) bool {
			return c.situation.IsForwarder(topology.ForwarderID(t.Target))
		}
		c.byClients = c.byClients || hasTargets(f) && !slices.ContainsFunc(f.Targets, gateway)
		for _, t := range f.Targets {
			d := didOf(t.Samples)
			c.split(f, api.TargetUse{Target: topology.NodeID(t.Target)}, d[didRead], d[didWrite])
		}
	}
}

// split gives a node's bytes at a target to its job. A forwarder's are divided as the bytes of its jobs are, where it
// is a client of this target alone.
func (c *useCount) split(f *collector.Frame, u api.TargetUse, read, write float64) {
	if f.Role == topology.Compute {
		u.Job = c.jobs[f.Node]
		c.add(u, read, write)
		return
	}
	reads, writes := 0.0, 0.0
	for _, l := range c.on[f.Node] {
		reads, writes = reads+l.ReadBytesPerSec, writes+l.WriteBytesPerSec
	}
	alone := len(f.Targets) == 1
	if !alone || reads == 0 {
		c.add(u, read, 0)
	}
	if !alone || writes == 0 {
		c.add(u, 0, write)
	}
	for _, l := range c.on[f.Node] {
		u.Job = l.Job
		if alone && reads > 0 {
			c.add(u, read*l.ReadBytesPerSec/reads, 0)
		}
		if alone && writes > 0 {
			c.add(u, 0, write*l.WriteBytesPerSec/writes)
		}
	}
}

// add counts bytes of one of the targets.
func (c *useCount) add(u api.TargetUse, read, write float64) {
	if read+write <= 0 || !slices.Contains(c.of, u.Target) {
		return
	}
	sum := entryOf(c.sums, u, u)
	sum.ReadBytesPerSec, sum.WriteBytesPerSec = sum.ReadBytesPerSec+read, sum.WriteBytesPerSec+write
}

// addServers follows the forwarder's jobs to the storage servers that count by job.
func (p *Picture) addServers(s *Snapshot, v *api.StorageView, id topology.ForwarderID, oldest int64) {
	at := map[topology.NodeID]*api.StorageRow{}
	for _, l := range s.flow().Storage {
		if l.Forwarder != id {
			continue
		}
		row := entryOf(at, l.Server, api.StorageRow{Target: string(l.Server), ReadBytesPerSec: new(float64),
			WriteBytesPerSec: new(float64)})
		*row.ReadBytesPerSec += l.ReadBytesPerSec
		*row.WriteBytesPerSec += l.WriteBytesPerSec
		row.Estimated = row.Estimated || l.Estimated
	}
	if len(at) == 0 {
		v.Unknown = "no bytes of its jobs at a storage server in this second"
		return
	}
	v.By, v.Unknown = api.StorageByServers, ""
	latency := serverLatency(p.cfg.Board, oldest)
	for n, row := range at {
		if own, ok := latency[n]; ok {
			row.LatencySeconds = &own
		}
		row.PeersLatency = othersLatency(latency, n)
		v.Rows = append(v.Rows, *row)
	}
	sortStorage(v.Rows)
	s.addMost(v.Rows)
}

// serverLatency is the mean time in service of each storage server's reads and writes.
func serverLatency(board *window.Board, oldest int64) map[topology.NodeID]float64 {
	latency := map[topology.NodeID]float64{}
	board.Layer(topology.Storage, func(f *window.Node) {
		if f.TimeMillis < oldest {
			return
		}
		if t := latencyOf(f.Samples, collector.ReadExec, collector.WriteExec); t != nil {
			latency[f.Node] = *t
		}
	})
	return latency
}

// othersLatency is the median of the other servers.
func othersLatency(latency map[topology.NodeID]float64, n topology.NodeID) *float64 {
	var others []float64
	for m, t := range latency {
		if m != n {
			others = append(others, t)
		}
	}
	return anomaly.KnownMedian(others)
}

// slowTimes is how many times as long as for its peers a target's answers take when it comes first.
const slowTimes = 2

// sortStorage puts targets that are slower from here than from elsewhere first, then the most bytes.
func sortStorage(rows []api.StorageRow) {
	slow := func(r *api.StorageRow) int {
		if r.LatencySeconds != nil && r.PeersLatency != nil && *r.LatencySeconds > slowTimes**r.PeersLatency {
			return 0
		}
		return 1
	}
	moved := func(r *api.StorageRow) (sum float64) {
		for _, v := range []*float64{r.ReadBytesPerSec, r.WriteBytesPerSec} {
			if v != nil {
				sum += *v
			}
		}
		return sum
	}
	slices.SortFunc(rows, func(a, b api.StorageRow) int {
		return cmp.Or(cmp.Compare(slow(&a), slow(&b)), cmp.Compare(moved(&b), moved(&a)),
			cmp.Compare(a.Target, b.Target))
	})
}

// sumOf adds up those of the metrics that are there; nil where none is.
func sumOf(samples []collector.Sample, metrics ...collector.Metric) *float64 {
	var sum *float64
	for _, m := range metrics {
		if v, ok := collector.SampleOf(samples, m); ok {
			if sum == nil {
				sum = new(float64)
			}
			*sum += v
		}
	}
	return sum
}

// latencyOf is the mean of reads and writes, weighted by their numbers.
func latencyOf(samples []collector.Sample, read, write collector.Metric) *float64 {
	value := func(m collector.Metric) float64 { return valueOf(samples, m) }
	return meanLatency(value(read), value(write), value(collector.ReadOps), value(collector.WriteOps))
}

// waits are what a forwarder's page compares with its busy peers besides the overview's columns.
var waits = []collector.Metric{collector.ReadWait, collector.ReadExec, collector.WriteWait, collector.WriteExec}

// addPeers adds the medians of the waits over the other forwarders that served such requests.
func (p *Picture) addPeers(s *Snapshot, d *api.ForwarderDetail) {
	oldest := oldestShown(s.Made)
	all := map[collector.Metric][]float64{}
	p.cfg.Board.Layer(topology.Forwarder, func(f *window.Node) {
		if f.Node == d.ID.Node() || f.TimeMillis < oldest {
			return
		}
		for _, m := range waits {
			if v, ok := f.Value(m); ok {
				all[m] = append(all[m], v)
			}
		}
	})
	for m, v := range all {
		d.PeersMedian[m.String()] = anomaly.KnownMedian(v)
	}
}
