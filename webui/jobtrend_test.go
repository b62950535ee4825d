package webui_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// The help desk sees which jobs wait, how much, and for what; those that wait the most come first, and each has its
// series.
func TestJobsThatWaitComeFirst(t *testing.T) { synctest.Test(t, jobsThatWaitComeFirst) }

func jobsThatWaitComeFirst(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{Offline: true})
	jobs := s.Machine.Sim.Jobs()
	for _, j := range jobs {
		if _, err := s.Jobs.Dispatch(t.Context(), dispatch.Request{Job: j.ID, User: j.User, App: j.App,
			Nodes: j.Nodes}); err != nil {
			t.Fatal(err)
		}
	}
	for range 30 {
		s.Later()
	}
	var rows []api.JobRow
	eventually(t, "the jobs are listed", func() bool {
		rows = get[[]api.JobRow](s, "/api/v1/jobs")
		return len(rows) == len(jobs) && rows[0].Now != nil && rows[0].Now.Wait != nil && rows[0].Now.Forwarders > 0
	})
	first := rows[0].Now
	if !first.Waiting || *first.Wait < 0.3 || len(first.Moved) != 60 || first.MovedBytesPerSec == nil {
		t.Errorf("the first of %d jobs: %+v", len(rows), first)
	}
	if first.Cause != "forwarder" && first.Cause != "neighbour" && first.Cause != "own pattern" {
		t.Errorf("it waits for %q", first.Cause)
	}
	if (first.Cause == "forwarder") != (first.Slow == string(slow)) {
		t.Errorf("it waits for %q, which is %q, not %q", first.Cause, first.Slow, slow)
	}
	last := 1.0
	for _, r := range rows {
		if r.Now == nil || r.Now.Wait == nil || *r.Now.Wait > last {
			t.Fatalf("job %s is out of order: %+v", r.ID, r.Now)
		}
		last = max(*r.Now.Wait, 0.01)
	}
	v := get[api.JobView](s, "/api/v1/jobs/"+string(rows[0].ID))
	if v.Forwarders[slow] == 0 || v.Waits == nil || len(v.Waits.Moved) != 180 || len(v.Waits.Causes) != 4 ||
		v.Waits.End.Before(time.Now().Add(-time.Hour)) {
		t.Fatalf("job %s on %v: %+v", v.ID, v.Forwarders, v.Waits)
	}
	at := slices.IndexFunc(v.Waits.Causes, func(c api.WaitCause) bool { return c.Cause == first.Cause })
	if at < 0 || v.Waits.Causes[at].Now == nil || *v.Waits.Causes[at].Now < 0.3 ||
		len(v.Waits.Causes[at].Waits) != 180 {
		t.Errorf("by cause: %+v", v.Waits.Causes)
	}
	seriesOfAJob(t, s, jobs[0].ID, jobs[0].Nodes)
	if _, err := s.Jobs.End(t.Context(), rows[0].ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an ended job keeps its columns", func() bool {
		ended := get[[]api.JobRow](s, "/api/v1/jobs?state=ended")
		if len(ended) == 0 {
			return false // its profile is being made
		}
		did := ended[0].Whole
		return ended[0].Now == nil && did != nil && did.MovedBytesPerSec != nil && did.Wait != nil &&
			*did.Wait > 0.05 && did.Cause == first.Cause && len(did.Moved) == 60 && !did.Waiting
	})
	v = get[api.JobView](s, "/api/v1/jobs/"+string(rows[0].ID))
	a := get[api.JobSeries](s, "/api/v1/jobs/"+string(v.ID)+"/series")
	if len(v.Nodes) == 0 || !slices.Equal(v.Nodes, rows[0].Nodes) || a.OfNodes != len(v.Nodes) {
		t.Errorf("the ended job had %v, its series %+v", v.Nodes, a)
	}
}

// seriesOfAJob: what a job did over time is the sum over its nodes, as far as it ran in the range. An unknown job has
// no series.
func seriesOfAJob(t *testing.T, s *simsite.Site, job topology.JobID, nodes []topology.NodeID) {
	f, _ := s.Board.Frame(s.Machine.Topo.ByRole(topology.Forwarder)[0].ID)
	span := fmt.Sprintf("?from=%d&to=%d", f.TimeMillis-20_000, f.TimeMillis)
	a := get[api.JobSeries](s, "/api/v1/jobs/"+string(job)+"/series"+span)
	sum := map[int64]float64{}
	for _, n := range nodes {
		one := get[api.SeriesAnswer](s, "/api/v1/series"+span+"&metric=write_bytes&node="+string(n))
		for _, of := range one.Series {
			for _, p := range of.Points {
				if p.Value != nil {
					sum[p.TimeMillis] += *p.Value
				}
			}
		}
	}
	if len(sum) < 5 || len(a.Series["write_bytes"]) != len(sum) {
		t.Fatalf("%d seconds of its nodes, of the job %+v", len(sum), a)
	}
	for _, p := range a.Series["write_bytes"] {
		if math.Abs(*p.Value-sum[p.TimeMillis]) > 1e-6*sum[p.TimeMillis] {
			t.Errorf("at %d its nodes wrote %g, the job %g", p.TimeMillis, sum[p.TimeMillis], *p.Value)
		}
	}
	if res, body := s.Ask("GET", "/api/v1/jobs/none/series", simsite.ViewerSecret, nil); res.StatusCode != 404 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// Of a job with more nodes than one answer may read, some are read in equal steps, and the answer says how many.
func TestSeriesOfAVeryLargeJob(t *testing.T) {
	s := simsite.New(t, simsite.Options{Steady: true})
	s.Run(60)
	real := s.Machine.Topo.Default.Clients("fwd001")
	const nodes = 3 * 4096
	begin := func(job topology.JobID, at func(i int) int) {
		r := history.Run{Job: job, User: "wei", App: "ROMS", Nodes: nodes, Start: time.Now().Add(-time.Hour)}
		for i := range nodes {
			r.NodeList = append(r.NodeList, topology.NodeID(fmt.Sprintf("far%05d", i)))
		}
		for i, n := range real {
			r.NodeList[at(i)] = n
		}
		if err := s.History.Begin(r); err != nil {
			t.Fatal(err)
		}
	}
	begin("51", func(i int) int { return nodes / 4 * i }) // among those that are read
	begin("52", func(i int) int { return nodes/4*i + 1 }) // beside them
	begin("53", func(i int) int { return 3 * (4096 - 1 - i) })
	for job, want := range map[string]bool{"51": true, "52": false, "53": true} {
		a := get[api.JobSeries](s, "/api/v1/jobs/"+job+"/series?step=30s&from=-5m")
		if a.Nodes != 4096 || a.OfNodes != nodes || (len(a.Series["write_bytes"]) > 0) != want {
			t.Errorf("job %s: of %d of %d nodes %v, want any: %v", job, a.Nodes, a.OfNodes, a.Series, want)
		}
	}
}
