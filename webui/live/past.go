package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
	"fairway/tsdb"
)

// pastMetrics are what a row of the overview shows.
var pastMetrics = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.QueueLen, collector.MetaWait, collector.ServerTime, collector.MetaOps, collector.Errors}

// OverviewAt is the layer as it was in the second that began at at, out of the store. A forwarder is
// stale that had not reported for the time after which live data is; findings, exclusions and plans of
// that time are not shown. Errors wrap console.ErrInvalid for a time to come.
func (p *Picture) OverviewAt(ctx context.Context, at time.Time) (console.Overview, error) {
	s := p.Snapshot()
	if at.After(s.Made) {
		return console.Overview{}, fmt.Errorf("%w: %s is not past", console.ErrInvalid, at.UTC().Format(time.RFC3339))
	}
	at = at.Truncate(time.Second).UTC()
	o := console.Overview{Machine: s.Machine.Name, At: at, Simulated: p.cfg.Simulated, ComputeNodes: s.Overview.ComputeNodes, Findings: []anomaly.Finding{}, Waiting: []console.PlanRow{}}
	nodes := s.Machine.ByRole(topology.Forwarder)
	ids := make([]topology.NodeID, len(nodes))
	place := make(map[topology.NodeID]int, len(nodes))
	peaks := make(map[topology.NodeID]float64, len(nodes))
	o.Forwarders = make([]console.ForwarderRow, len(nodes))
	for i, n := range nodes {
		ids[i], place[n.ID], peaks[n.ID] = n.ID, i, n.PeakBytesPerSec
		o.Forwarders[i] = console.ForwarderRow{ID: topology.ForwarderID(n.ID), Rack: n.Rack, PeakBytesPerSec: n.PeakBytesPerSec, State: console.StateStale}
	}
	for _, m := range pastMetrics {
		series, err := p.cfg.Store.Select(ctx, tsdb.Query{Nodes: ids, Metric: m, FromMillis: at.Add(-remap.StaleAfter).UnixMilli(), ToMillis: at.Add(time.Second).UnixMilli(), StepMillis: 1000})
		if err != nil {
			return o, err
		}
		for _, one := range series {
			fillPast(&o.Forwarders[place[one.Node]], m, one.Points, at)
		}
	}
	return o, p.pastOccupancy(ctx, &o, tsdb.OccupancyQuery{Nodes: ids, FromMillis: at.Add(-time.Hour).UnixMilli(), ToMillis: at.Add(time.Second).UnixMilli(), PeakBytesPerSec: peaks}, place)
}

// fillPast takes the newest point of the last seconds: as live, the newest is shown until it is stale.
func fillPast(row *console.ForwarderRow, m collector.Metric, points []tsdb.Point, at time.Time) {
	if len(points) == 0 {
		return
	}
	newest := points[len(points)-1]
	if seen := time.UnixMilli(newest.TimeMillis).UTC().Add(time.Second); seen.After(row.LastSeen) {
		row.LastSeen = seen
	}
	fill(row, &collector.Frame{Samples: []collector.Sample{{Metric: m, Value: newest.Value}}})
	if row.State == console.StateStale {
		row.State = console.StateIdle
	}
	if newest.Value > 0 && (m == collector.ReadBytes || m == collector.WriteBytes || m == collector.MetaOps) {
		row.State = console.StateOK
	}
}

func (p *Picture) pastOccupancy(ctx context.Context, o *console.Overview, q tsdb.OccupancyQuery, place map[topology.NodeID]int) error {
	answers, err := p.cfg.Store.Occupancy(ctx, q)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if row := &o.Forwarders[place[a.Node]]; len(a.Buckets) > 0 && row.State != console.StateStale {
			share := a.Buckets[0].Share()
			row.Occupancy = &share
		}
	}
	return nil
}

// ForwarderAt is one forwarder as it was in the second that began at at, with the five minutes before.
// Its clients then are not kept. Errors are those of OverviewAt and console.ErrNotFound.
func (p *Picture) ForwarderAt(ctx context.Context, id topology.ForwarderID, at time.Time) (console.ForwarderDetail, error) {
	o, err := p.OverviewAt(ctx, at)
	if err != nil {
		return console.ForwarderDetail{}, err
	}
	i := slices.IndexFunc(o.Forwarders, func(r console.ForwarderRow) bool { return r.ID == id })
	if i < 0 {
		return console.ForwarderDetail{}, fmt.Errorf("forwarder %q: %w: %s has no such forwarding node", id, console.ErrNotFound, o.Machine)
	}
	d := console.ForwarderDetail{ForwarderRow: o.Forwarders[i], ClientNodes: []console.ClientRow{}, Series: map[string][]console.Point{}, PeersMedian: peersMedian(o.Forwarders, id)}
	return d, p.addSeries(ctx, &d, o.At.Add(time.Second))
}

// addSeries adds the last five minutes before to of every metric that the forwarder reported.
func (p *Picture) addSeries(ctx context.Context, d *console.ForwarderDetail, to time.Time) error {
	for m := collector.Metric(1); int(m) < collector.MetricCount; m++ {
		series, err := p.cfg.Store.Select(ctx, tsdb.Query{
			Nodes: []topology.NodeID{d.ID.Node()}, Metric: m,
			FromMillis: to.Add(-detailSpan).UnixMilli(), ToMillis: to.UnixMilli(), StepMillis: 1000,
		})
		if err != nil {
			return err
		}
		if len(series) > 0 && len(series[0].Points) > 0 {
			d.Series[m.String()] = points(series[0].Points)
		}
	}
	return nil
}
