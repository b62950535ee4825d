package consoletest

import (
	"context"
	"fmt"
	"math"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// JobRuns is console.Records': the running job has 41 runs like it, most of them faster; of the ended
// ones one stands alone.
func (f *Fake) JobRuns(ctx context.Context, id topology.JobID, _ int) (api.JobRuns, error) {
	j, err := f.Job(ctx, id)
	if err != nil {
		return api.JobRuns{}, err
	}
	v := api.JobRuns{Job: id, User: j.User, App: j.App, Nodes: j.NodeCount, Runs: []api.RunRow{}}
	if p := j.Profile; p != nil {
		rate := p.VolumeBytes() / p.IOSeconds
		v.This = &api.RunRow{Job: id, Start: j.Start, End: j.End, ReadBytes: p.ReadBytes, WriteBytes: p.WriteBytes,
			IOSeconds: p.IOSeconds, BytesPerSec: &rate}
	}
	if !j.End.IsZero() {
		return v, nil
	}
	io, rate, ops := j.SoFar.IOSeconds, j.SoFar.VolumeBytes()/j.SoFar.IOSeconds, j.SoFar.MetaOps/j.SoFar.IOSeconds
	v.This = &api.RunRow{Job: id, Start: j.Start, ReadBytes: j.SoFar.ReadBytes, WriteBytes: j.SoFar.WriteBytes,
		MetaOps: j.SoFar.MetaOps, IOSeconds: io, BytesPerSec: &rate, MetaOpsPerSec: &ops}
	for i := range 41 {
		took := 420 + 90*math.Sin(float64(i*i)) + float64(i%5)*60
		bytes := 57e9 + 1e9*float64(i%7)
		mean, meta := bytes/took, 15*took
		if f.MetaJob {
			mean, bytes, meta = 0, 3e9, 1e6+3e4*float64(i%7)
		}
		ops := meta / took
		no := false
		start := j.Start.Add(-time.Duration(i+1) * 7 * time.Hour)
		r := api.RunRow{Job: topology.JobID(fmt.Sprint(88200 - 31*i)), Start: start,
			End:       start.Add(50*time.Minute + time.Duration(took)*time.Second),
			ReadBytes: 3e9, WriteBytes: bytes - 3e9, MetaOps: meta, Mode: history.ModeNN, IOSeconds: took,
			BytesPerSec: &mean, MetaOpsPerSec: &ops, Remapped: &no,
			Forwarders: []topology.ForwarderID{"fwd001", "fwd002", "fwd003"},
			Waits:      []history.Wait{{Forwarder: "fwd002", Share: 0.01 * float64(1+i%6)}}}
		switch {
		case i%10 == 3:
			yes := true
			r.Remapped, r.Plan, r.Forwarders = &yes, fmt.Sprintf("P-%06d", 90+i),
				[]topology.ForwarderID{"fwd200", "fwd201", "fwd202", "fwd203"}
		case i > 36: // from logs
			r.Remapped, r.Forwarders, r.Waits = nil, nil, nil
		}
		if f.MetaJob {
			r.ReadBytes, r.Mode = 0, ""
		}
		v.Runs = append(v.Runs, r)
	}
	v.All = len(v.Runs)
	v.Compare()
	return v, nil
}
