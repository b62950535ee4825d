package desk

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// testQueues keep limits a second after they were set; those of fwd1 are gone.
type testQueues struct {
	mu   sync.Mutex
	kept map[topology.NodeID]map[topology.JobID]float64
}

func (q *testQueues) CanLimit(n topology.NodeID) string {
	if n == "fwd1" {
		return "fwd1 has taken no table of jobs"
	}
	return ""
}

func (q *testQueues) Settle(_ context.Context, p remap.Plan, report func(remap.Result)) error {
	time.Sleep(time.Second)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range p.Moves {
		if q.kept[m.Node] == nil {
			q.kept[m.Node] = map[topology.JobID]float64{}
		}
		q.kept[m.Node][p.Job] = m.Limit
		report(remap.Result{Node: m.Node, OK: true, At: time.Now()})
	}
	return nil
}

func (q *testQueues) Keeps(n topology.NodeID, job topology.JobID, limit float64, since time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept[n][job] == limit && time.Since(since) > time.Second
}

// A limit goes the way of every plan: checked, approved, verified when its queue says that it keeps it, in force over a
// restart, and taken back; nothing is moved. Two jobs' limits at one forwarder do not hinder each other.
func TestALimitIsAPlan(t *testing.T) {
	m := newTestMachine(4, 2)
	synctest.Test(t, func(t *testing.T) {
		q := &testQueues{kept: map[topology.NodeID]map[topology.JobID]float64{}}
		jobs := []remap.Job{{ID: "7", Nodes: nodes(0)}, {ID: "8", Nodes: nodes(1)}, {ID: "9", Nodes: nodes(2)}}
		path := t.TempDir() + "/journal"
		open := func() *Desk {
			set := DefaultSettings()
			set.Mode = remap.ModeAuto // which is of moves: a limit needs a person
			here := func() *remap.Situation {
				s := m.situation()
				s.Jobs = jobs
				return s
			}
			d, _, err := Open(Config{Settings: set, Path: path, Driver: m, Queues: q, Situation: here})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := open()
		limit := func(job string, x float64, at ...topology.NodeID) remap.Request {
			r := remap.Request{Job: job, Reason: "it fills the forwarder"}
			for _, n := range at {
				r.Moves = append(r.Moves, remap.Move{Node: n, Limit: x})
			}
			return r
		}
		for _, bad := range []remap.Request{limit("70", .05, "fwd0"), limit("7", .001, "fwd0"), limit("7", 1, "fwd0"),
			limit("7", .05, "cn0"), limit("7", .05, "fwd0", "fwd0"), limit("", .05, "fwd0")} {
			_, err := d.Propose(t.Context(), sam, bad)
			wantErr(t, err, remap.ErrInvalid)
		}
		for job, at := range map[string]topology.NodeID{"9": "fwd0", "7": "fwd1"} {
			p := propose(t, d, sam, limit(job, .05, at))
			v, err := d.Preview(t.Context(), olga, p.ID)
			if err != nil || red(v.Checks) == "" || v.MayApprove == "" {
				t.Errorf("job %s at %s: %+v %v", job, at, v.Checks, err)
			}
		}
		one, two := propose(t, d, sam, limit("7", .05, "fwd0")), propose(t, d, sam, limit("8", .1, "fwd0"))
		if again := propose(t, d, sam, limit("7", .05, "fwd0")); again.ID != one.ID || one.ID == two.ID {
			t.Errorf("%s, %s and again %s", one.ID, two.ID, again.ID)
		}
		approve(t, d, olga, one.ID)
		approve(t, d, olga, two.ID)
		time.Sleep(5 * time.Second)
		p := wantState(t, d, one.ID, remap.Verified)
		wantState(t, d, two.ID, remap.Verified)
		if got := remap.Title(&p); got != "limit job 7 to 5 % of fwd0" {
			t.Errorf("title %q", got)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open()
		if got := d.Limits()["fwd0"]; !maps.Equal(got, map[topology.JobID]float64{"7": .05, "8": .1}) {
			t.Errorf("after a restart the limits are %v", got)
		}
		if _, err := d.RollBack(t.Context(), olga, one.ID, remap.Answer{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		wantState(t, d, one.ID, remap.RolledBack)
		got := d.Limits()["fwd0"]
		if !maps.Equal(got, map[topology.JobID]float64{"8": .1}) || q.kept["fwd0"]["7"] != 0 {
			t.Errorf("after the way back the limits are %v, the queue keeps %v", got, q.kept)
		}
		if m.orders > 0 || len(d.Promises()) > 0 || slices.Contains(slices.Collect(maps.Keys(d.Promised())), "") {
			t.Errorf("nodes were moved: %d orders, promised %v", m.orders, d.Promised())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
