package live

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// detailSpan is how much of the past a forwarder's page begins with.
const detailSpan = 5 * time.Minute

// Forwarder returns one forwarder with its clients and, when withSeries, the last five minutes of every metric that
// it reports; without, only the newest second of each. Errors wrap api.ErrNotFound.
func (p *Picture) Forwarder(ctx context.Context, id topology.ForwarderID, withSeries bool) (api.ForwarderDetail,
	error) {
	s := p.Snapshot()
	i := slices.IndexFunc(s.Overview.Forwarders, func(r api.ForwarderRow) bool { return r.ID == id })
	if i < 0 {
		return api.ForwarderDetail{}, fmt.Errorf("forwarder %q: %w: %s has no such forwarding node", id,
			api.ErrNotFound, s.Machine.Name)
	}
	d := api.ForwarderDetail{
		ForwarderRow: s.Overview.Forwarders[i],
		ClientNodes:  p.clients(s, id),
		Series:       map[string][]tsdb.Point{},
		PeersMedian:  peersMedian(s.Overview.Forwarders, id),
		Drained:      s.Situation.Excluded[id],
	}
	if p.cfg.Canary != nil {
		d.Canary = p.cfg.Canary(id)
	}
	addUnreported(p.cfg.Board, &d)
	d.Storage = p.storage(s, id)
	if d.BackEnd = string(s.Situation.Load[id].BackEnd); d.BackEnd != "" {
		if f, sick := s.Situation.SickBehind(id); sick {
			d.BackEnd = fmt.Sprintf("%s (%s: a forwarder in front of another one helps)", f.Sentence, f.ID)
		}
	}
	p.addPeers(s, &d)
	f, seen := p.cfg.Board.Frame(id.Node())
	if !seen {
		return d, nil
	}
	for _, sample := range f.Samples {
		if name := sample.Metric.String(); name != "" {
			d.Series[name] = []tsdb.Point{{TimeMillis: f.TimeMillis, Value: sample.Value}}
		}
	}
	if !withSeries {
		return d, nil
	}
	return d, p.addSeries(ctx, &d, s.Made.Add(maxAhead))
}

// addUnreported adds why numbers of a forwarder's page are missing. It goes by the newest second, also of the past:
// what kind of forwarder a node was is not kept.
func addUnreported(board *window.Board, d *api.ForwarderDetail) {
	board.Nodes([]topology.NodeID{d.ID.Node()}, func(_ int, n *window.Node) {
		d.Unreported, d.ClientsUnreported = kindOf(n).unreported(d.ID)
	})
	if slices.ContainsFunc(d.ClientNodes, func(r api.ClientRow) bool {
		return r.ReadBytesPerSec != nil || r.WriteBytesPerSec != nil
	}) {
		d.ClientsUnreported = ""
	}
}

// clients lists the compute nodes that are observed on a forwarder and those that have it by default, then those that
// spread their traffic over it and others. Traffic is a node's whole.
func (p *Picture) clients(s *Snapshot, id topology.ForwarderID) []api.ClientRow {
	ids, oldest := s.Situation.Used.Clients(id), oldestShown(s.Made)
	rows := make([]api.ClientRow, len(ids))
	for i, n := range ids {
		rows[i].ID = n
		_, observed := s.Situation.Observed[n]
		rows[i].Assumed = !observed
	}
	for _, n := range s.Situation.SpreadNodes() {
		for _, over := range s.Situation.SpreadOf(n) {
			if over.Forwarder == id {
				ids = append(ids, n)
				rows = append(rows, api.ClientRow{ID: n, Share: &over.Part,
					ShareAssumed: s.Situation.Routes[n].Assumed})
			}
		}
	}
	p.cfg.Board.Nodes(ids, func(i int, n *window.Node) {
		if n.TimeMillis >= oldest {
			rows[i].Job = topOf(&n.Frame).job
			fillClient(&rows[i], &n.Frame)
		}
	})
	nameJobs(rows, s.Situation.Jobs)
	return rows
}

// nameJobs names, of compute nodes that report no jobs, the one that the batch system has there; of several none.
func nameJobs(rows []api.ClientRow, jobs []remap.Job) {
	here := map[topology.NodeID][]topology.JobID{}
	for i := range rows {
		if rows[i].Job == "" {
			here[rows[i].ID] = nil
		}
	}
	for i := range jobs {
		for _, n := range jobs[i].Nodes {
			if on, ok := here[n]; ok {
				here[n] = append(on, jobs[i].ID)
			}
		}
	}
	for i := range rows {
		if on := here[rows[i].ID]; len(on) == 1 {
			rows[i].Job = on[0]
		}
	}
}

func fillClient(row *api.ClientRow, f *collector.Frame) {
	value := func(m collector.Metric) float64 { return valueOf(f.Samples, m) }
	row.ReadBytesPerSec, row.WriteBytesPerSec = known(value(collector.ReadBytes)), known(value(collector.WriteBytes))
	row.MetaOpsPerSec = known(value(collector.MetaOps))
	row.LatencySeconds = meanLatency(value(collector.ClientRead), value(collector.ClientWrite),
		value(collector.ReadOps), value(collector.WriteOps))
}

// valueOf is a metric's value, not a number where it is not known.
func valueOf(samples []collector.Sample, m collector.Metric) float64 {
	if v, ok := collector.SampleOf(samples, m); ok {
		return v
	}
	return math.NaN()
}

// Load sums the newest second of compute nodes: bytes/s read and written, and metadata operations/s;
// nil where none of them reports.
func (p *Picture) Load(nodes []topology.NodeID) (read, write, meta *float64) {
	oldest := oldestShown(p.Snapshot().Made)
	add := func(sum **float64, f *collector.Frame, m collector.Metric) {
		v, ok := f.Value(m)
		if !ok {
			return
		}
		if *sum == nil {
			*sum = new(float64)
		}
		**sum += v
	}
	p.cfg.Board.Nodes(nodes, func(_ int, n *window.Node) {
		if n.TimeMillis >= oldest {
			add(&read, &n.Frame, collector.ReadBytes)
			add(&write, &n.Frame, collector.WriteBytes)
			add(&meta, &n.Frame, collector.MetaOps)
		}
	})
	return read, write, meta
}

// meanLatency is the mean over reads and writes, weighted by their numbers where these are known.
func meanLatency(read, write, readOps, writeOps float64) *float64 {
	switch {
	case math.IsNaN(read):
		return known(write)
	case math.IsNaN(write):
		return known(read)
	case readOps+writeOps > 0:
		return known((read*readOps + write*writeOps) / (readOps + writeOps))
	}
	return known((read + write) / 2)
}

// peersMedian is the median of each column over the other forwarders that are healthy and not
// idle: what a busy one looks like.
func peersMedian(rows []api.ForwarderRow, me topology.ForwarderID) map[string]*float64 {
	out := make(map[string]*float64, len(api.ListedMetrics))
	for place, m := range api.ListedMetrics {
		var all []float64
		for i := range rows {
			r := &rows[i]
			if v := r.Values[place]; v != nil && r.ID != me &&
				(r.State == remap.ForwarderOK || r.State == remap.ForwarderDedicated) {
				all = append(all, *v)
			}
		}
		out[m.String()] = anomaly.KnownMedian(all)
	}
	return out
}

// Nodes returns the newest second of the nodes that pass keep, in the machine's order.
func (p *Picture) Nodes(keep func(topology.Node) bool) []api.NodeRow {
	s := p.Snapshot()
	rows, ids := []api.NodeRow{}, []topology.NodeID{}
	for _, n := range s.Machine.Nodes {
		if keep(n) {
			row := api.NodeRow{ID: n.ID, Role: n.Role, Rack: n.Rack, State: remap.ForwarderStale,
				Values: map[string]float64{}}
			if r, ok := s.Situation.Routes[n.ID]; ok && !r.Stale {
				row.Forwarder, row.Generation, row.Lost = r.Forwarder, r.Generation, r.Lost
				row.Shares, row.SharesAssumed = r.Shares, r.Assumed
			}
			rows, ids = append(rows, row), append(ids, n.ID)
		}
	}
	p.cfg.Board.Nodes(ids, func(i int, f *window.Node) {
		row := &rows[i]
		row.LastSeen = time.UnixMilli(f.TimeMillis + 1000).UTC()
		if s.Made.Sub(row.LastSeen) > remap.StaleAfter {
			return
		}
		row.State = remap.ForwarderOK
		if row.Role == topology.Forwarder {
			row.State = s.Situation.State(topology.ForwarderID(f.Node))
		}
		for _, m := range f.Samples {
			row.Values[m.Metric.String()] = m.Value
		}
	})
	return rows
}

// Sources returns what a node's agent last reported of its own sources.
func (p *Picture) Sources(n topology.NodeID) []collector.SourceStatus {
	f, _ := p.cfg.Board.Frame(n)
	return f.Sources
}
