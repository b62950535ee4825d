package webui_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// A job that runs is placed among the ended runs like it, with what it waited for and who its
// neighbours are; when it has ended it is one of them.
func TestAJobBesideTheRunsLikeIt(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 4, Compute: 64,
		Desk: func(set *desk.Settings) { set.HealthyFloor = 1 }})
	s.Run(5)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 64 })
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	ended := time.Now().Add(-48 * time.Hour).Truncate(time.Second).UTC()
	add := func(job string, n int, seconds float64, from string) {
		t.Helper()
		ended = ended.Add(time.Hour)
		err := s.History.End(history.Run{Job: topology.JobID(job), User: "wei", App: "ROMS", Nodes: n,
			Start: ended.Add(-50 * time.Minute), End: ended,
			Forwarders: []topology.ForwarderID{"fwd001"},
			Profile:    &history.Profile{WriteBytes: 6e11, IOSeconds: seconds, From: from}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		add(fmt.Sprint(i+1), len(nodes), float64(100*(i+1)), history.FromCollectors)
	}
	add("logs", len(nodes), 600, history.FromDarshan)
	add("smaller", len(nodes)/2, 1, history.FromCollectors)

	if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: "9", User: "wei", App: "ROMS",
		Nodes: nodes}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	eventually(t, "it is watched", func() bool {
		s.Run(1)
		v := get[api.JobView](s, "/api/v1/jobs/9")
		return v.SoFar != nil && v.SoFar.VolumeBytes() > 0
	})
	v := get[api.JobRuns](s, "/api/v1/jobs/9/runs")
	var ids []string
	for _, r := range v.Runs {
		ids = append(ids, string(r.Job))
	}
	if v.All != 6 || !slices.Equal(ids, []string{"logs", "5", "4", "3", "2", "1"}) {
		t.Errorf("%d: %v", v.All, ids)
	}
	sp := v.IOSeconds
	if sp == nil || sp.Min != 100 || sp.Q1 != 225 || sp.Median != 350 || sp.Q3 != 475 || sp.Max != 600 ||
		sp.Runs != 6 || sp.This == nil || sp.Below != 0 || sp.Above != 6 {
		t.Errorf("I/O time %+v", sp)
	}
	if v.This == nil || v.This.BytesPerSec == nil || v.BytesPerSec == nil ||
		*v.BytesPerSec.This != *v.This.BytesPerSec ||
		!slices.Equal(v.This.Forwarders, []topology.ForwarderID{"fwd001"}) {
		t.Errorf("this %+v, %+v", v.This, v.BytesPerSec)
	}
	if v.Runs[0].Remapped != nil || v.Runs[1].Remapped == nil || *v.Runs[1].Remapped {
		t.Errorf("moved: %v, %v", v.Runs[0].Remapped, v.Runs[1].Remapped)
	}
	if few := get[api.JobRuns](s, "/api/v1/jobs/9/runs?limit=2"); few.All != 6 || len(few.Runs) != 2 ||
		few.IOSeconds.Runs != 2 {
		t.Errorf("two of %d: %d", few.All, len(few.Runs))
	}
	if res, b := post(s, "/api/v1/jobs/9/end", simsite.HookSecret, nil); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	eventually(t, "its profile is there",
		func() bool { return get[api.JobView](s, "/api/v1/jobs/9").Profile != nil })
	v = get[api.JobRuns](s, "/api/v1/jobs/9/runs")
	if v.All != 6 || v.This == nil || v.This.End.IsZero() || len(v.Runs) != 6 ||
		slices.ContainsFunc(v.Runs, func(r api.RunRow) bool { return r.Job == "9" }) {
		t.Errorf("ended: %d, %+v", v.All, v.This)
	}
	if o := get[api.JobRuns](s, "/api/v1/jobs/5/runs"); o.All != 6 || o.IOSeconds.Runs != 6 {
		t.Errorf("run 5: %+v", o)
	}
	for path, want := range map[string]int{"/api/v1/jobs/99/runs": 404, "/api/v1/jobs/9/runs?limit=0": 400,
		"/api/v1/jobs/9/runs?limit=501": 400, "/api/v1/jobs/9/runs?limit=x": 400} {
		if res, b := s.Ask("GET", path, simsite.ViewerSecret, nil); res.StatusCode != want {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
}

// From the frames of a job's nodes to the sentence on its page: which part of its time was I/O, what its nodes used.
func TestRunTimeOfAJobWithoutLogs(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	nodes := s.Machine.Topo.Default.Clients("fwd001")[:2]
	start := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	run := history.Run{Job: "6", User: "wei", App: "ROMS", Nodes: 2, NodeList: nodes, Start: start,
		End: start.Add(400 * time.Second)}
	var frames []collector.Frame
	for second := range 401 {
		for i, n := range nodes {
			f := collector.Frame{Node: n, Role: topology.Compute, TimeMillis: start.UnixMilli() + int64(second)*1000}
			wrote := 0.0
			if i == 0 && second >= 100 && second < 112 {
				wrote = 1e8
			}
			f.Samples = []collector.Sample{{Metric: collector.ReadBytes}, {Metric: collector.WriteBytes, Value: wrote}}
			if second%10 == i && second > 0 {
				f.Samples = append(f.Samples,
					collector.Sample{Metric: collector.CPUBusyRatio, Value: 0.8 + 0.14*float64(i)},
					collector.Sample{Metric: collector.MemoryUsedRatio, Value: 0.34 - 0.2*float64(i)})
			}
			frames = append(frames, f)
		}
	}
	if err := s.Store.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	p, err := history.Build(t.Context(), s.Store, run, 0)
	if err != nil {
		t.Fatal(err)
	}
	run.Profile, run.NodeList = p, nil
	older := run
	older.Job, older.Profile = "5", &history.Profile{IOSeconds: 100, Coverage: 1, From: history.FromCollectors}
	if err := errors.Join(s.History.End(older), s.History.End(run)); err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string]string{
		"6": "I/O is 3 % of the run time (12 s of 400 s): do not bother. CPU of its nodes 87 %, highest memory 34 %.",
		"5": "I/O is up to 25 % of the run time (1m40 of 6m40). CPU of its nodes not known, highest memory not known.",
	} {
		v := get[api.JobView](s, "/api/v1/jobs/"+job)
		if v.RunTime != want || v.IOShare == nil || *v.IOShare != v.Profile.IOSeconds/400 {
			t.Errorf("job %s: %q of %v, want %q", job, v.RunTime, v.IOShare, want)
		}
	}
}
