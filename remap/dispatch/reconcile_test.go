package dispatch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

func listed(id topology.JobID, start time.Time, nodes []topology.NodeID) Listed {
	return Listed{Request: Request{Job: id, User: "wei", App: "ROMS", Nodes: nodes}, Start: start}
}

func (s *site) reconcile(t *testing.T, list ...Listed) Reconciled {
	t.Helper()
	r, err := s.d.Reconcile(t.Context(), time.Now(), list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReconcileEndsWhatIsGoneAndKnowsWhatBegan: a job without its end, one that runs on, one without its
// start, one on nodes of somebody else, and one whose hook is on its way.
func TestReconcileEndsWhatIsGoneAndKnowsWhatBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 3), remap.ModeAuto)
		s.past(t, "ROMS", 4, nil)
		a := s.dispatch(t, "1", "ROMS", cns(0, 4))
		began := time.Now()
		s.dispatch(t, "2", "OTHER", cns(4, 5))
		time.Sleep(3 * time.Second)
		s.wantState(t, a.Plan, remap.Verified)
		starting := listed("5", time.Now(), cns(6, 7))
		starting.Starting = true
		next := listed("3", time.Now(), cns(3, 4)) // on a node of job 1: that one was over by then
		time.Sleep(time.Minute)
		next.Standing = Standing{QOS: "high", Priority: 9}
		r := s.reconcile(t, listed("2", began, cns(4, 5)), next, listed("4", began, []topology.NodeID{"login1"}),
			starting)
		if fmt.Sprint(r) != "{[3] [1] []}" {
			t.Errorf("%+v", r)
		}
		if run, _, err := s.d.Job("1"); err != nil || run.End.IsZero() || !run.End.Equal(next.Start.UTC()) {
			t.Errorf("job 1 ended %s, %v; job 3 began %s", run.End, err, next.Start)
		}
		var ids []topology.JobID
		for _, j := range s.d.Running() {
			ids = append(ids, j.ID)
			if j.ID == "3" && (j.QOS != "high" || j.Priority != 9) {
				t.Errorf("job 3 has QOS %q and priority %g, listed with high and 9", j.QOS, j.Priority)
			}
		}
		if fmt.Sprint(ids) != "[2 3]" {
			t.Errorf("running %v", ids)
		}
		time.Sleep(5 * time.Second)
		s.wantState(t, a.Plan, remap.Restored)
		if r := s.reconcile(t, listed("2", began, cns(4, 5)), next); fmt.Sprint(r) != "{[] [] []}" {
			t.Errorf("again: %+v", r)
		}
		// A job whose dispatch came after the list was asked for is not in it and runs.
		asked := time.Now()
		time.Sleep(time.Second)
		s.dispatch(t, "6", "OTHER", cns(6, 7))
		if r, err := s.d.Reconcile(t.Context(), asked, nil); err != nil || fmt.Sprint(r.Ended) != "[2 3]" {
			t.Errorf("%+v %v", r, err)
		}
	})
}

// TestReconcileTakesBackWhatTheEndCouldNot: the nodes refuse at the job's end, and are asked again with
// growing pauses until they follow.
func TestReconcileTakesBackWhatTheEndCouldNot(t *testing.T) {
	testTakesBackAgain(t, func(t *testing.T, s *site) []topology.JobID { return s.reconcile(t).Again })
}

// Without a list of the batch system too, for the end was reported.
func TestPlansAreTakenBackAgainWithoutAList(t *testing.T) {
	testTakesBackAgain(t, func(t *testing.T, s *site) []topology.JobID {
		runs := len(s.d.Running())
		again, err := s.d.TakeBackAgain(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.d.Running()) != runs {
			t.Error("a job that runs was ended")
		}
		return again
	})
}

func testTakesBackAgain(t *testing.T, look func(*testing.T, *site) []topology.JobID) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 3), remap.ModeAuto)
		s.past(t, "ROMS", 4, nil)
		a := s.dispatch(t, "1", "ROMS", cns(0, 4))
		time.Sleep(3 * time.Second)
		s.wantState(t, a.Plan, remap.Verified)
		s.refuse(true)
		if _, err := s.d.End(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		tries := 0
		for range 30 {
			time.Sleep(time.Minute)
			tries += len(look(t, s))
		}
		s.wantState(t, a.Plan, remap.Partial)
		if tries < 3 || tries > 6 {
			t.Errorf("asked %d times in half an hour", tries)
		}
		s.refuse(false)
		for range 60 {
			time.Sleep(time.Minute)
			look(t, s)
		}
		s.wantState(t, a.Plan, remap.Restored)
		if len(s.d.again) != 0 {
			t.Errorf("still to be taken back: %v", s.d.again)
		}
	})
}
