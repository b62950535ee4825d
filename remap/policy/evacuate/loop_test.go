package evacuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// paper is a desk that notes what it is asked for.
type paper struct {
	plans   []remap.Plan
	asked   []string
	reads   atomic.Int64
	changed chan string
	refuses error
}

func (d *paper) Propose(_ context.Context, by remap.Person, r remap.Request) (remap.Plan, error) {
	d.asked = append(d.asked, fmt.Sprintf("%s proposes for job %s to %s, rule %q, act %v, force %v", by.Name, r.Job,
		r.Moves[0].To, r.Rule, r.Act, r.Force))
	if d.refuses != nil {
		return remap.Plan{}, d.refuses
	}
	p := remap.Plan{ID: fmt.Sprint("P-", len(d.plans)+1), Job: topology.JobID(r.Job), Moves: r.Moves, Rule: r.Rule,
		Proposer: by.Name, State: remap.Proposed, Created: noon}
	if r.Act {
		p.State, p.Approvals = remap.Applying, []remap.Approval{{By: "rule " + r.Rule, Via: remap.ViaRule}}
	}
	d.plans = append(d.plans, p)
	return p, nil
}

func (d *paper) Withdraw(_ context.Context, _ remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	d.asked = append(d.asked, "withdraws "+id+": "+a.Reason)
	return remap.Plan{}, nil
}

func (d *paper) Restore(_ context.Context, _ remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	d.asked = append(d.asked, "restores "+id+": "+a.Reason)
	return remap.Plan{}, nil
}

func (d *paper) Complete(_ context.Context, _ remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	d.asked = append(d.asked, "completes "+id+": "+a.Reason)
	return remap.Plan{}, nil
}

func (d *paper) Plans(context.Context, int) ([]remap.Plan, error) {
	d.reads.Add(1)
	return slices.Clone(d.plans), nil
}

func (d *paper) Watch(int) (<-chan string, func())               { return d.changed, func() {} }
func (d *paper) Claims() map[topology.ForwarderID]topology.JobID { return nil }
func (d *paper) Promised() map[topology.ForwarderID]string       { return nil }

// TestLook: each thing is asked for once, and what waits or is done follows what becomes of the forwarders.
func TestLook(t *testing.T) {
	slow, later := site(anomaly.Slow, 10, "fwd0"), site(anomaly.Slow, 10, "fwd0")
	later.Findings[0].Steps[0].At = noon.Add(time.Minute)
	full := site(anomaly.Slow, 10, "fwd0")
	load := full.Load["fwd2"]
	load.LastSeen = time.Time{}
	full.Load["fwd2"] = load
	by := remap.PolicyPerson(Name).Name
	plan := func(state remap.PlanState) []remap.Plan {
		return []remap.Plan{{ID: "P-1", Proposer: by, Job: "1", State: state, Created: noon, Error: "no answer",
			Moves: []remap.Move{{Node: "cn00", From: "fwd0", To: "fwd2"}}, Ended: &remap.Ended{By: "sam"}}}
	}
	const moves = "policy evacuate proposes for job 1 to fwd2, rule "
	for _, c := range []struct {
		name    string
		s       *remap.Situation
		rules   []Rule
		plans   []remap.Plan
		refuses error
		asks    []string
		line    string // of the log
		acted   int
	}{
		{name: "no rule", s: slow, asks: []string{moves + `"", act false, force false`}, line: "where no other job is"},
		{name: "a rule acts", s: slow, rules: []Rule{{Name: "night", Action: Act}}, acted: 1,
			asks: []string{moves + `"night", act true, force false`}, line: "; rule night acts, 1 of at most 10"},
		{name: "a dead one is cut off", s: site(anomaly.Dead, 0, "fwd0"),
			asks: []string{moves + `"", act false, force true`}, line: "fwd0 is dead (F-0001)"},
		{name: "the desk refuses", s: slow, refuses: errors.New("a red check"), line: "not proposed: a red check",
			asks: []string{moves + `"", act false, force false`, moves + `"", act false, force false`}},
		{name: "what was carried out goes back when it is well", s: slow, plans: plan(remap.Verified),
			asks: []string{"restores P-1: its nodes go back when it is well",
				"restores P-1: its nodes go back when it is well", moves + `"", act false, force false`}},
		{name: "a plan waits", s: slow, plans: plan(remap.Proposed), line: "P-1 waits and moves these nodes"},
		{name: "its target is gone", s: full, plans: plan(remap.Proposed), line: "P-1 waits and moves these nodes",
			asks: []string{"withdraws P-1: fwd2 is silent now", "withdraws P-1: fwd2 is silent now"}},
		{name: "a person has refused", s: slow, plans: plan(remap.Rejected), line: "P-1 was ended by sam"},
		{name: "the one that was refused was about an earlier finding", s: later, plans: plan(remap.Rejected),
			asks: []string{moves + `"", act false, force false`}, line: "where no other job is"},
		{name: "it failed", s: slow, plans: plan(remap.Partial),
			line: "P-1 is partial: no answer; complete it or roll it back"},
		{name: "an act failed", s: slow, rules: []Rule{{Name: "night", Action: Act}}, acted: 1,
			plans: []remap.Plan{{ID: "P-1", Job: "1", Rule: "night", Proposer: by, State: remap.Failed, Created: noon,
				Changed: noon.Add(-tryEvery), Approvals: []remap.Approval{{Via: remap.ViaRule}}, Error: "no answer",
				Moves: []remap.Move{{Node: "cn00", From: "fwd0", To: "fwd2"}}}}, line: "P-1 is failed: no answer",
			asks: []string{"completes P-1: moves of a rule's plan failed: no answer",
				"completes P-1: moves of a rule's plan failed: no answer"}},
		{name: "its bound", s: slow, rules: []Rule{{Name: "night", Action: Act, AtMost: 1}}, acted: 1,
			plans: []remap.Plan{{ID: "P-1", Job: "7", Rule: "night", Proposer: by, State: remap.Restored,
				Created: noon.Add(-time.Hour), Approvals: []remap.Approval{{Via: remap.ViaRule}}}},
			asks: []string{moves + `"night", act false, force false`}, line: "rule night has acted 1 time in"},
	} {
		d := &paper{plans: c.plans, refuses: c.refuses}
		p := New(Config{Desk: d, Situation: func() *remap.Situation { return c.s }, Rules: c.rules,
			Demand: func(*remap.Job) *float64 { return new(2e8) }})
		for range 2 {
			if err := p.Look(t.Context()); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		slices.Sort(d.asked) // which of two things came first does not matter
		slices.Sort(c.asks)
		if !slices.Equal(d.asked, c.asks) {
			t.Errorf("%s: asked\n%s\nwant\n%s", c.name, strings.Join(d.asked, "\n"), strings.Join(c.asks, "\n"))
		}
		v := p.View()
		line := ""
		for _, l := range v.Log {
			line += l.Text + "\n"
		}
		acted := 0
		for _, r := range v.Rules {
			acted += r.Acted
		}
		if !strings.Contains(line, c.line) || acted != c.acted || c.refuses != nil && len(v.Log) != 1 {
			t.Errorf("%s: acted %d, log %+v; want %d and %q", c.name, acted, v.Log, c.acted, c.line)
		}
	}
}

// TestPlansAreReadWhenTheyChange: a look a second reads them once, and again when the desk says so or a minute has
// passed.
func TestPlansAreReadWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &paper{changed: make(chan string)}
		calm := site(anomaly.Slow, 0, "fwd0")
		p := New(Config{Desk: d, Situation: func() *remap.Situation { return calm },
			Demand: func(*remap.Job) *float64 { return new(2e8) }})
		ctx, stop := context.WithCancel(t.Context())
		go p.Run(ctx)
		for _, c := range []struct {
			notice bool
			after  time.Duration
			reads  int64
		}{{false, 1500 * time.Millisecond, 1}, {false, 30 * time.Second, 1}, {true, time.Second, 2},
			{false, 50 * time.Second, 2}, {false, 20 * time.Second, 3}} {
			if c.notice {
				d.changed <- "P-1"
			}
			time.Sleep(c.after)
			if synctest.Wait(); d.reads.Load() != c.reads {
				t.Errorf("after %s more: read %d times, want %d", c.after, d.reads.Load(), c.reads)
			}
		}
		stop()
		synctest.Wait()
	})
}
