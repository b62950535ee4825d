package webui_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/remap/policy/periodic"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

const twoWriters = "{\"procs\":200,\"b\":0.01,\"B\":1,\"kprime\":2,\"eps\":0.01," +
	"\"apps\":[{\"name\":\"a\",\"w\":10,\"vol\":10," +
	"\"beta\":100},{\"name\":\"b\",\"w\":10,\"vol\":10,\"beta\":100}]}"

func TestSharesOfRunningJobs(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	s.StartTwo()
	if v := get[api.SharesView](s, "/api/v1/shares"); v.Policy != "size-fair" || v.Jobs[0].Job != "8" ||
		v.Jobs[0].Share != .75 || v.Jobs[1].Share != .25 {
		t.Errorf("three nodes and one: %+v", v)
	}
	if v := get[api.SharesView](s, "/api/v1/shares?policy=user-fair"); v.Policy != "user-job-fair" ||
		v.Jobs[0].Share != .5 {
		t.Errorf("a job each: %+v", v)
	}
	if v := get[api.SharesView](s, "/api/v1/shares?forwarder=nosuch"); len(v.Jobs) != 0 {
		t.Errorf("a forwarder without jobs: %+v", v)
	}
	for _, policy := range []string{"node-fair", "priority-fair"} {
		if res, b := s.Ask("GET", "/api/v1/shares?policy="+policy, simsite.OperatorSecret, nil); res.StatusCode != 400 {
			t.Errorf("%s: %d %s", policy, res.StatusCode, b)
		}
	}
}

func TestPeriodicWhatIf(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	v := get[api.PatternView](s, "/api/v1/periodic?set="+url.QueryEscape(twoWriters))
	if v.T != 20 || v.SysEfficiency != .5 || len(v.Apps) != 2 || v.Set.TMin != 20 || v.Unplanned.Dilation < 1.4 {
		t.Errorf("two that take turns: %+v", v)
	}
	for set, says := range map[string]string{
		"": "missing", "{": "ends inside the object", strings.Replace(twoWriters, "procs", "proc", 1): "unknown field",
		// short, but still little work
		strings.Replace(twoWriters, `"w":10,"vol":10`, `"w":0.01,"vol":0.01`, 1):              "",
		strings.Replace(twoWriters, `"kprime":2,"eps":0.01`, `"kprime":1000,"eps":0.0001`, 1): "raise eps",
	} {
		res, b := s.Ask("GET", "/api/v1/periodic?set="+url.QueryEscape(set), simsite.OperatorSecret, nil)
		if (res.StatusCode == 200) != (says == "") || !strings.Contains(string(b), says) {
			t.Errorf("%s: %d %s", set, res.StatusCode, b)
		}
	}
}

// The pattern is of the jobs that run: none without one, and of two with an earlier run each the one that was periodic.
func TestPatternOfRunningJobs(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	if v := get[dispatch.RunningPattern](s, "/api/v1/windows"); v.Pattern != nil || v.InForce ||
		!strings.Contains(v.Problem, "none is known to be periodic") {
		t.Errorf("without jobs: %+v", v)
	}
	s.PeriodicRuns()
	s.StartTwo()
	v := get[dispatch.RunningPattern](s, "/api/v1/windows")
	if len(v.Jobs) != 2 || v.Jobs[0].Cycle == nil || v.Jobs[0].Cycle.PeriodSeconds != 100 || v.Jobs[1].Cycle != nil {
		t.Fatalf("%+v", v.Jobs)
	}
	// 32 nodes of 0.2 GB/s each are configured.
	if v.Set.Procs != 32 || v.Set.Link != 0.2 || len(v.Set.Apps) != 1 || v.Pattern == nil || v.Unplanned == nil ||
		v.Set.Apps[0] != (periodic.App{Name: "8", Work: 80, Volume: 40, Procs: 3}) {
		t.Errorf("%+v", v)
	}
}

// TestSlowdownsFromHistory: a run beside another application on its forwarder against one alone there.
func TestSlowdownsFromHistory(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	if v := get[[]history.Slowdown](s, "/api/v1/slowdowns"); v == nil || len(v) != 0 {
		t.Errorf("an empty history: %+v, want []", v)
	}
	end := time.Now().Add(-time.Hour)
	for i, r := range []struct {
		app    string
		before time.Duration
		took   float64
	}{{"ROMS", 5 * time.Hour, 100}, {"ROMS", time.Hour, 300}, {"WRF", time.Hour, 50}} {
		if err := s.History.End(history.Run{Job: topology.JobID(fmt.Sprint(i)), User: "wei", App: r.app, Nodes: 4,
			Start: end.Add(-r.before), End: end.Add(time.Hour/2 - r.before),
			Forwarders: []topology.ForwarderID{"fwd001"}, Profile: &history.Profile{
				WriteBytes: 1e12, IONodes: 4, IOSeconds: r.took, Coverage: 1, From: "test"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	v := get[[]history.Slowdown](s, "/api/v1/slowdowns")
	if want := []history.Slowdown{{App: "ROMS", Beside: "WRF", Times: 3, Runs: 1, Alone: 1}}; !slices.Equal(v, want) {
		t.Errorf("%+v, want %+v", v, want)
	}
}
