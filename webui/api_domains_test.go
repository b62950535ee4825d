package webui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

func TestFileDomains(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	v := get[api.DomainsView](s, "/api/v1/jobs/9/domains")
	if len(v.Files) != 1 || v.Files[0].Name != "/scratch/out" || v.Case == nil || v.Case.Servers != 1 ||
		v.Case.Aggregators != 64 || v.Case.End != 14e9 || len(v.Methods) != 6 || v.Advice == nil || v.Caveat == "" {
		t.Fatalf("%+v", v)
	}
	// The page shows what the command says of the same case.
	c := *v.Case
	for _, m := range v.Methods {
		c.Method = m.Method
		if a := filedomain.Divide(c); a.LockRequests != m.TotalLocks() || a.AggregatorsUsed != m.AggregatorsUsed ||
			len(m.Owners) != v.Window.Stripes {
			t.Errorf("%s: %+v, the command says %d locks by %d", m.Method, m, a.LockRequests, a.AggregatorsUsed)
		}
	}
	if v = get[api.DomainsView](s,
		"/api/v1/jobs/9/domains?servers=4&aggregators=8&stripe_size=4194304"); v.Case.Servers != 4 ||
		v.Case.Aggregators != 8 || v.Case.StripeSize != 4<<20 || !strings.Contains(strings.Join(v.Assumed, " "),
		"given in the question") {
		t.Errorf("%+v: %v", v.Case, v.Assumed)
	}
	for path, want := range map[string]int{
		"/api/v1/jobs/9/domains?servers=x":            http.StatusBadRequest,
		"/api/v1/jobs/9/domains?file=1":               http.StatusBadRequest,
		"/api/v1/jobs/9/domains?aggregators=99999999": http.StatusBadRequest,
		"/api/v1/jobs/10/domains":                     http.StatusNotFound,
	} {
		if res, b := s.Ask("GET", path, simsite.ViewerSecret, nil); res.StatusCode != want {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
}

// Without a log the profile of a run is used, and what it lacks is named.
func TestFileDomainsOfARunWithoutALog(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	end := time.Now().Add(-time.Minute).Truncate(time.Second)
	for job, mode := range map[topology.JobID]topology.Mode{"21": topology.ModeN1, "22": topology.ModeNN} {
		err := s.History.End(history.Run{Job: job, User: "wei", App: "wrf", Nodes: 8, Start: end.Add(-time.Hour),
			End: end,
			Profile: &history.Profile{Mode: mode, WriteBytes: 6e9, IONodes: 8, IOSeconds: 60, Coverage: 1,
				From: "csv"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	v := get[api.DomainsView](s, "/api/v1/jobs/21/domains")
	if len(v.Files) != 1 || v.Files[0].From != "profile" || v.Case != nil || !strings.Contains(v.Problem, "servers=N") {
		t.Errorf("%+v", v)
	}
	v = get[api.DomainsView](s, "/api/v1/jobs/21/domains?servers=4")
	if v.Case == nil || v.Case.Aggregators != 8 || v.Case.End != 6e9 || !strings.Contains(strings.Join(v.Assumed, " "),
		"1 MiB") || !strings.Contains(v.Caveat, "not known") {
		t.Errorf("%+v", v)
	}
	if v = get[api.DomainsView](s, "/api/v1/jobs/22/domains"); len(v.Files) != 0 || v.Case != nil ||
		v.Methods == nil {
		t.Errorf("an N-N job: %+v", v)
	}
}
