package webui_test

import (
	"slices"
	"testing"
	"time"

	"fairway/cmd/fairway-demo/simsite"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// The help desk sees which jobs wait, how much, and for what; those that wait the most come first.
func TestJobsThatWaitComeFirst(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
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
}
