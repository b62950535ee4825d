package consoletest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// Jobs is console.Records'; one job runs on three forwarders, two have ended.
func (f *Fake) Jobs(context.Context) ([]api.JobRow, error) {
	o, err := f.snapshot()
	if err != nil || len(o.Forwarders) < 4 {
		return nil, err
	}
	at := o.At
	var nodes []topology.NodeID
	for i := range 4 { // as Forwarder lists them
		nodes = append(nodes, topology.NodeID(fmt.Sprintf("fwd001-c%d", i)))
	}
	for i := range 476 {
		nodes = append(nodes, topology.NodeID(fmt.Sprintf("c%05d", 57856+i)))
	}
	row := func(id, app, user string, n int, ago, ran time.Duration) api.JobRow {
		r := api.JobRow{Job: remap.Job{ID: topology.JobID(id), App: app, User: user, Nodes: []topology.NodeID{},
			Start: at.Add(-ago)}, NodeCount: n}
		if ran > 0 {
			r.End = r.Start.Add(ran)
		}
		return r
	}
	running := row("88231", "ROMS", "wei", len(nodes), 33*time.Minute, 0)
	running.Nodes = nodes
	return []api.JobRow{running, row("88190", "NWCHEM", "sam", 64, 3*time.Hour, 50*time.Minute),
		row("87911", "WRF", "olga", 1024, 26*time.Hour, 4*time.Hour)}, nil
}

// Job is console.Records'.
func (f *Fake) Job(ctx context.Context, id topology.JobID) (api.JobView, error) {
	rows, err := f.Jobs(ctx)
	if err != nil {
		return api.JobView{}, err
	}
	for _, r := range rows {
		if r.ID == id {
			return f.jobView(r), nil
		}
	}
	return api.JobView{}, fmt.Errorf("job %q: %w; neither runs nor is in the history", id, api.ErrNotFound)
}

func (f *Fake) jobView(r api.JobRow) api.JobView {
	v := api.JobView{JobRow: r, Forwarders: map[topology.ForwarderID]int{}, Plans: []string{}}
	if r.End.IsZero() {
		read, write, meta := 120e6, 2.1e9, 410.0
		v.ReadBytesPerSec, v.WriteBytesPerSec, v.MetaOpsPerSec = &read, &write, &meta
		v.Forwarders = map[topology.ForwarderID]int{"fwd001": 200, "fwd002": 240, "fwd003": 40}
		if f.MetaJob {
			read, write, meta = 0, 0, 2210
		}
		v.Plans = []string{"P-000142"}
		v.WatchedSince = r.Start.Add(time.Second)
		v.SoFar = &history.Profile{ReadBytes: 3e9, WriteBytes: 58.4e9, Mode: history.ModeNN, MetaOps: 9021,
			IOSeconds: 614, Coverage: 0.99, From: history.FromWatching,
			Phases: []history.Phase{{AtSeconds: 300, Seconds: 200, WriteBytes: 19.2e9},
				{AtSeconds: 900, Seconds: 210, WriteBytes: 19.6e9}, {AtSeconds: 1700, Seconds: 204, WriteBytes: 19.6e9,
					ReadBytes: 3e9}},
			Waits: []history.Wait{{Forwarder: "fwd002", Share: 0.12}, {Forwarder: "fwd001", Share: 0.03},
				{Forwarder: "fwd003", Share: 0.001}}}
		if f.MetaJob {
			v.SoFar.ReadBytes, v.SoFar.WriteBytes, v.SoFar.MetaOps = 0, 0, 1.4e6
			for i := range v.SoFar.Phases {
				v.SoFar.Phases[i].ReadBytes, v.SoFar.Phases[i].WriteBytes, v.SoFar.Phases[i].MetaOps = 0, 0, 4.6e5
			}
		}
		takes, relief := 0.19, 0.81
		v.Neighbours = []api.Neighbour{{Job: "88260", App: "LAMMPS", On: []topology.ForwarderID{"fwd001"},
			ReadBytesPerSec: 90e6, WriteBytesPerSec: 15e6, Takes: &takes, Relief: &relief},
			{Job: "88261", On: []topology.ForwarderID{"fwd002", "fwd003"}, WriteBytesPerSec: 4e6}}
		v.Decision = &dispatch.Answer{Job: r.ID, Policy: "dfra", Plan: "P-000142", State: remap.Proposed,
			Decision: dfra.Decision{Action: dfra.Upgrade, Remap: true, Count: 15, Wanted: 15, Reasons: []dfra.Reason{
				{Rule: "history", Passed: true, Text: "41 earlier runs of ROMS by wei on 480 nodes"},
				{Rule: "volume", Passed: true, Text: "volume 58 GB > 20 GB"},
				{Rule: "metadata", Passed: true, Text: "mean metadata queue 0.9 < 32"},
			}, Interference: []dfra.Interference{{Job: "88260", Why: []string{"heavy metadata on fwd001"}}}},
			Prediction: &history.Prediction{Depth: 41, Own: history.Accuracy{Predicted: 40, Within: 35}}}
		return v
	}
	v.Served = []topology.ForwarderID{"fwd103", "fwd104"}
	if r.ID == "88190" {
		queue := 0.3
		v.Profile = &history.Profile{ReadBytes: 4.4e12, WriteBytes: 19.2e9, Mode: history.ModeNN, IONodes: 64,
			PeakBytesPerSec: 2.2e9, PeakNodeBytesPerSec: 61e6,
			Waits:         []history.Wait{{Forwarder: "fwd103", Share: 0.31}},
			PeakOpsPerSec: 40_100, MetaOps: 8123, MetaQueue: &queue, IOSeconds: 1310, Coverage: 0.998,
			From: "collectors", Phases: []history.Phase{
				{AtSeconds: 30, Seconds: 600, ReadBytes: 4.4e12, MetaOps: 4000},
				{AtSeconds: 1200, Seconds: 200, WriteBytes: 9.6e9}, {AtSeconds: 2500, Seconds: 450, WriteBytes: 9.6e9,
					ReadBytes: 8e9}}}
	}
	return v
}

// Audit is console.Records'.
func (f *Fake) Audit(_ context.Context, q api.AuditQuery) ([]api.AuditEntry, error) {
	o, err := f.snapshot()
	if err != nil {
		return nil, err
	}
	entry := func(seq uint64, ago time.Duration, actor, action, subject, result, reason string) api.AuditEntry {
		return api.AuditEntry{Seq: seq, At: o.At.Add(-ago), Actor: actor, Action: action, Subject: subject,
			Result: result, Reason: reason}
	}
	all := []api.AuditEntry{
		entry(1204, 3*time.Minute, "dfra", "proposed", "P-000142", "proposed",
			"58 GB to write, 15 idle healthy forwarders"),
		entry(1203, 22*time.Minute, "sam", "excluded", "fwd059", "", "disk errors since the night"),
		entry(1202, 40*time.Minute, "olga", "approved", "P-000140", "approved",
			"fwd012 is the only one left in its rack"),
	}
	from, _ := time.Parse(time.RFC3339, q.From)
	to, bounded := time.Parse(time.RFC3339, q.To)
	return slices.DeleteFunc(all, func(e api.AuditEntry) bool {
		return q.Actor != "" && q.Actor != e.Actor || q.Subject != "" && q.Subject != e.Subject || e.At.Before(from) ||
			bounded == nil && !e.At.Before(to)
	}), nil
}

// OverviewAt is console.Past's: the same layer with every rate halved, so that it is seen to be another second.
func (f *Fake) OverviewAt(_ context.Context, at time.Time) (api.Overview, error) {
	o, err := f.snapshot()
	o.At, o.Findings, o.Waiting = at, nil, nil
	o.NotKept = []string{"clients: those of now"}
	for i := range o.Forwarders {
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
			if v := o.Forwarders[i].Value(m); v != nil {
				half := *v / 2
				o.Forwarders[i].Values.Set(m, &half)
			}
		}
	}
	return o, err
}

// Occupancy is console.Past's: busy by day, quiet at night; the daemon was off for a while, and one
// forwarder's peak is not known.
func (f *Fake) Occupancy(_ context.Context, span, bucket time.Duration) (api.OccupancyView, error) {
	o, err := f.snapshot()
	v := api.OccupancyView{FromMillis: o.At.Add(-span).UnixMilli(), ToMillis: o.At.UnixMilli(),
		BucketMillis: bucket.Milliseconds(), Threshold: 0.8}
	if err != nil || len(o.Forwarders) < 2 {
		return v, err
	}
	v.NoPeak = []topology.NodeID{o.Forwarders[1].ID.Node()}
	n := int64(span / bucket)
	last := v.ToMillis / v.BucketMillis
	for i := last - n; i <= last; i++ {
		if ago := last - i; ago > n*3/4 || ago == n/3 {
			continue
		}
		high := 0.35 + 0.3*math.Sin(float64(i)/2)
		v.Layer = append(v.Layer, tsdb.LayerOccupancy{TimeMillis: i * v.BucketMillis, Nodes: len(o.Forwarders) - 1,
			Min: high / 20, Mean: high / 3, Max: high * 1.5, Imbalance: 0.4 + high/3})
	}
	return v, nil
}

// Marks is console.Past's: the beginnings of the findings of now, the making of the waiting plans, and an exclusion.
func (f *Fake) Marks(_ context.Context, from, to time.Time, _ int) ([]remap.Mark, error) {
	o, err := f.snapshot()
	var marks []remap.Mark
	for i := range o.Findings {
		g := &o.Findings[i]
		marks = append(marks, remap.Mark{At: g.Since, Kind: "finding", ID: g.ID, Node: string(g.Node),
			Text: string(g.State) + ": " + g.Sentence})
	}
	for i := range o.Waiting {
		marks = append(marks, remap.Mark{At: o.Waiting[i].Created, Kind: "plan", ID: o.Waiting[i].ID,
			Text: "proposed: " + o.Waiting[i].Title})
	}
	marks = append(marks, remap.Mark{At: o.At.Add(-10 * time.Minute), Kind: "exclusion", ID: "fwd059",
		Text: "excluded: disk errors since the night"},
		remap.Mark{At: o.At.Add(-5 * time.Minute), Kind: "job", ID: "88231", Text: "starts: ROMS, 480 nodes"})
	marks = slices.DeleteFunc(marks, func(m remap.Mark) bool { return m.At.Before(from) || !m.At.Before(to) })
	slices.SortStableFunc(marks, func(a, b remap.Mark) int { return a.At.Compare(b.At) })
	return marks, err
}

// ForwarderAt is console.Past's.
func (f *Fake) ForwarderAt(ctx context.Context, id topology.ForwarderID, _ time.Time) (api.ForwarderDetail, error) {
	d, err := f.Forwarder(ctx, id)
	d.ClientNodes = nil
	return d, err
}
