package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/tsdb/history"
)

// life is one random life of a site: jobs start and end, forwarders become busy, slow and healthy
// again, plans are approved, rejected and rolled back.
type life struct {
	*site
	t    *testing.T
	r    *rand.Rand
	free []topology.NodeID
	jobs map[topology.JobID][]topology.NodeID
	next int
}

var apps = []string{"ROMS", "WRF", "POST", "NEW"}

func (l *life) step() {
	switch k := l.r.IntN(10); {
	case k < 4:
		l.startJob()
	case k < 6:
		l.endJob()
	case k < 7:
		l.mu.Lock()
		f := topology.ForwarderID(fmt.Sprintf("f%d", l.r.IntN(9)))
		l.busy[f] = !l.busy[f]
		l.mu.Unlock()
	case k < 8:
		l.accuse()
	default:
		l.answer()
	}
	time.Sleep(time.Duration(l.r.IntN(1500)) * time.Millisecond)
}

func (l *life) startJob() {
	n := 1 + l.r.IntN(4)
	if len(l.free) < n {
		return
	}
	l.r.Shuffle(len(l.free), func(i, j int) { l.free[i], l.free[j] = l.free[j], l.free[i] })
	nodes := append([]topology.NodeID(nil), l.free[:n]...)
	l.free = l.free[n:]
	l.next++
	id := topology.JobID(fmt.Sprint(l.next))
	if _, err := l.d.Dispatch(l.t.Context(), Request{Job: id, User: "wei", App: apps[l.r.IntN(len(apps))],
		Nodes: nodes}); err != nil {
		l.t.Fatal(err)
	}
	l.jobs[id] = nodes
}

func (l *life) endJob() {
	for id, nodes := range l.jobs {
		e, err := l.d.End(l.t.Context(), id)
		if err != nil || len(e.Failed) > 0 {
			l.t.Fatalf("end of %s: %+v, %v", id, e, err)
		}
		delete(l.jobs, id)
		// Slurm gives the nodes to the next job when the end hook has returned, not when they are back.
		l.free = append(l.free, nodes...)
		return
	}
}

func (l *life) accuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finds = nil
	if l.r.IntN(2) == 0 {
		l.finds = []anomaly.Finding{{ID: "F-1", Node: topology.NodeID(fmt.Sprintf("f%d", l.r.IntN(9))),
			Kind: anomaly.FailSlow, State: anomaly.Confirmed}}
	}
}

// answer is a person at the desk.
func (l *life) answer() {
	plans, err := l.desk.Plans(l.t.Context(), 0)
	if err != nil || len(plans) == 0 {
		return
	}
	p := plans[l.r.IntN(len(plans))]
	by := remap.Person{Name: "olga", Role: remap.Operator, Via: "unix"}
	switch a := (remap.Answer{Reason: "a random act of a person"}); l.r.IntN(3) {
	case 0:
		if v, err := l.desk.Preview(l.t.Context(), by, p.ID); err == nil {
			a.Hash = v.Hash
			_, _ = l.desk.Approve(l.t.Context(), by, p.ID, a)
		}
	case 1:
		_, _ = l.desk.Reject(l.t.Context(), by, p.ID, a)
	case 2:
		_, _ = l.desk.RollBack(l.t.Context(), by, p.ID, a)
	}
}

// check holds at every instant.
func (l *life) check() {
	plans, err := l.desk.Plans(l.t.Context(), 0)
	if err != nil {
		l.t.Fatal(err)
	}
	owner := map[topology.ForwarderID]topology.JobID{}
	for _, p := range plans {
		under := p.State != remap.Proposed && p.State != remap.Rejected && p.State != remap.Withdrawn &&
			p.State != remap.Expired
		if under && len(p.Approvals) == 0 {
			l.t.Fatalf("plan %s is %s without an approval", p.ID, p.State)
		}
		if !p.Dedicated || !under || p.State == remap.Restored || p.State == remap.RolledBack {
			continue
		}
		for _, m := range p.Moves {
			if o, taken := owner[m.To]; taken && o != p.Job {
				l.t.Fatalf("%s is dedicated to job %s and to job %s", m.To, o, p.Job)
			}
			owner[m.To] = p.Job
		}
	}
	if healthy := 9 - len(owner); healthy < 6 {
		l.t.Fatalf("%d forwarders are dedicated, the floor is 6 of 9", len(owner))
	}
}

// TestAnyLifeOfASiteIsLawful: never fewer forwarders for everybody than the floor, never two jobs with
// the same dedicated forwarder, no plan without an approval, every node back where it belongs when
// all jobs have ended, and a journal that replays into the same plans.
func TestAnyLifeOfASiteIsLawful(t *testing.T) {
	lives, steps := 20, 60
	if os.Getenv("FAIRWAY_LIVES") != "" {
		lives, steps = 300, 150
	}
	verified := 0
	for seed := range lives {
		synctest.Test(t, func(t *testing.T) {
			mode := remap.ModeAuto
			if seed%3 == 0 {
				mode = remap.ModeApprove
			}
			s := newSite(t, newMachine(16, 4, 5), mode, func(set *desk.Settings) {
				set.HealthyFloor,
					set.TwoPersons = 6, false
			})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.d.Run(ctx) }()
			s.past(t, "ROMS", 4, nil)
			s.past(t, "WRF", 2, func(p *history.Profile) { p.Mode = topology.ModeN1 })
			s.past(t, "POST", 3, func(p *history.Profile) { p.WriteBytes = 1 })
			l := &life{site: s, t: t, r: rand.New(rand.NewPCG(uint64(seed), 5)), free: cns(0, 16),
				jobs: map[topology.JobID][]topology.NodeID{}}
			for range steps {
				l.step()
				l.check()
			}
			for len(l.jobs) > 0 {
				l.endJob()
			}
			time.Sleep(time.Minute)
			if got := s.mapping(); fmt.Sprint(got) != fmt.Sprint(s.topo.Default) {
				t.Errorf("seed %d: in the end the mapping is %v", seed, got)
			}
			plans, err := s.desk.Plans(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				if p.State == remap.Restored || p.State == remap.RolledBack {
					verified++
				}
			}
			stop()
			<-done
			l.replays(plans)
		})
	}
	if verified < lives {
		t.Errorf("only %d plans were applied and taken back in %d lives", verified, lives)
	}
	t.Logf("%d plans were applied and taken back in %d lives", verified, lives)
}

// replays opens the journal's bytes anew and wants the same plans.
func (l *life) replays(want []remap.Plan) {
	b, err := os.ReadFile(l.journal)
	if err != nil {
		l.t.Fatal(err)
	}
	copied := l.journal + ".copy"
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		l.t.Fatal(err)
	}
	desk, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: copied, Driver: l.machine,
		Situation: l.situation})
	if err != nil {
		l.t.Fatal(err)
	}
	defer desk.Close()
	got, err := desk.Plans(l.t.Context(), 0)
	if err != nil || !bytes.Equal(fmt.Append(nil, brief(got)), fmt.Append(nil, brief(want))) {
		l.t.Errorf("the replayed journal says %v, the desk had %v, %v", brief(got), brief(want), err)
	}
}

func brief(plans []remap.Plan) (out []string) {
	for _, p := range plans {
		out = append(out, fmt.Sprint(p.ID, p.State, p.Moves, len(p.Approvals), p.Dedicated))
	}
	return out
}
