package webui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// TestAJobsAnswerReadsABoundedPast: of a job with thousands of findings in its time the newest are looked at, and its
// answer says since when.
func TestAJobsAnswerReadsABoundedPast(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	if _, err := s.Jobs.Dispatch(t.Context(), dispatch.Request{Job: "8", User: "wei", App: "ROMS",
		Nodes: nodes}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job runs", func() bool { return len(get[[]api.JobRow](s, "/api/v1/jobs")) == 1 })
	for _, c := range []struct {
		more  int
		wants bool
	}{{100, false}, {500, true}} {
		var changes []anomaly.Change
		for i := range c.more {
			changes = append(changes, anomaly.Change{At: time.Now(), Finding: anomaly.Finding{
				ID: fmt.Sprint("F-", c.more+i), Node: "fwd001", Kind: anomaly.FailSlow, State: anomaly.Returned,
				Since: time.Now(), Impact: []anomaly.Impact{{Job: "8", CostSeconds: 1}}}})
		}
		if err := s.Desk.RecordFindings(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		v := get[api.JobView](s, "/api/v1/jobs/8")
		if got := strings.Contains(v.Answer, "is not counted"); got != c.wants || !strings.Contains(v.Answer, "lost") {
			t.Errorf("after %d findings more: %q", c.more, v.Answer)
		}
	}
}

// TestAJobThroughTheSchedulersDoor reports a job's start and end as the batch system's hooks do.
func TestAJobThroughTheSchedulersDoor(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	queue := 1.0
	end := time.Now().Add(-time.Hour)
	err := s.History.End(history.Run{Job: "7", User: "wei", App: "ROMS", Nodes: len(nodes), Start: end.Add(-time.Hour),
		End:     end,
		Profile: &history.Profile{WriteBytes: 1e12, IONodes: len(nodes), MetaQueue: &queue, Coverage: 1, From: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	ask := dispatch.Request{Job: "8", User: "wei", App: "ROMS", Nodes: nodes}
	for secret, want := range map[string]int{"": http.StatusUnauthorized, simsite.ViewerSecret: http.StatusForbidden,
		simsite.AgentSecret: http.StatusForbidden} {
		if res, b := post(s, "/api/v1/dispatch", secret, ask); res.StatusCode != want {
			t.Errorf("dispatch by %q: %d %s", secret, res.StatusCode, b)
		}
	}
	for _, path := range []string{"/api/v1/plans", "/api/v1/plans/P-000001/approve"} {
		if res, b := post(s, path, simsite.HookSecret, api.Decision{}); res.StatusCode != http.StatusForbidden {
			t.Errorf("the hook at %s: %d %s", path, res.StatusCode, b)
		}
	}
	var a dispatch.Answer
	res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, ask)
	if err := json.Unmarshal(b, &a); err != nil || res.StatusCode != 200 || a.Prediction.Depth != 1 ||
		a.Policy != "dfra" {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	if len(a.Decision.Reasons) < 4 || a.Decision.Reasons[0].Rule != "history" || a.Decision.Wanted != (len(nodes)+1)/2 {
		t.Errorf("decision %+v", a.Decision)
	}
	eventually(t, "the job's nodes are seen",
		func() bool { return get[api.JobView](s, "/api/v1/jobs/8").Forwarders["fwd001"] == len(nodes) })
	if v := get[api.JobView](s, "/api/v1/jobs/8"); v.App != "ROMS" || v.NodeCount != len(nodes) ||
		len(v.Plans) > 1 {
		t.Errorf("job %+v", v)
	}
	eventually(t, "the job is listed", func() bool {
		rows := get[[]api.JobRow](s, "/api/v1/jobs")
		return len(rows) == 1 && rows[0].ID == "8"
	})
	if p := get[api.ProfileView](s, "/api/v1/jobs/7/profile"); p.Profile == nil || p.Profile.WriteBytes != 1e12 {
		t.Errorf("profile %+v", p)
	}
	if res, b := post(s, "/api/v1/jobs/8/end", simsite.HookSecret, nil); res.StatusCode != 200 ||
		!strings.Contains(string(b), `"known":true`) {
		t.Errorf("end: %d %s", res.StatusCode, b)
	}
	eventually(t, "the profile is there",
		func() bool { return !get[api.ProfileView](s, "/api/v1/jobs/8/profile").Pending })
	if p := get[api.ProfileView](s, "/api/v1/jobs/8/profile"); p.Profile == nil || p.Profile.Coverage <= 0 ||
		p.Profile.From != history.FromCollectors {
		t.Errorf("profile %+v", p.Profile)
	}
	if rows := get[[]api.JobRow](s, "/api/v1/jobs?state=ended"); len(rows) != 2 || rows[0].ID != "8" {
		t.Errorf("ended %+v", rows)
	}
	for path, want := range map[string]int{"/api/v1/jobs/99": 404, "/api/v1/jobs/99/profile": 404,
		"/api/v1/jobs?state=x": 400, "/api/v1/jobs?limit=0": 400} {
		if res, b := s.Ask("GET", path, simsite.ViewerSecret, nil); res.StatusCode != want {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
	if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret,
		map[string]any{"job": "9", "nodes": []string{"nowhere"}}); res.StatusCode != 400 ||
		!strings.Contains(string(b), "nowhere") {
		t.Errorf("an unknown node: %d %s", res.StatusCode, b)
	}
	if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, map[string]any{"jobb": "9"}); res.StatusCode != 400 ||
		!strings.Contains(string(b), "jobb") {
		t.Errorf("an unknown key: %d %s", res.StatusCode, b)
	}
}

// TestDispatchIsQuick prints how long a dispatch takes over HTTP, with a history and a machine of 240
// forwarders and 4,096 compute nodes.
func TestDispatchIsQuick(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 4096})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 4096 })
	took := make([]time.Duration, 0, 40)
	for i := range cap(took) {
		nodes := s.Machine.Topo.Default.Clients(s.Machine.Topo.Default[s.Machine.Topo.Nodes[240+i*17*5].ID])
		begun := time.Now()
		res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: "j", App: fmt.Sprint("a", i),
			Nodes: nodes})
		took = append(took, time.Since(begun))
		var a dispatch.Answer
		if err := json.Unmarshal(b, &a); err != nil || res.StatusCode != 200 || a.Decision.Action != dfra.Default {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
	}
	slowest, sum := time.Duration(0), time.Duration(0)
	for _, d := range took {
		slowest, sum = max(slowest, d), sum+d
	}
	t.Logf("%d dispatches: mean %s, slowest %s", len(took), sum/time.Duration(len(took)), slowest)
}
