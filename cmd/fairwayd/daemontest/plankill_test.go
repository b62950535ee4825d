package daemontest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/webui/api"
)

// TestKilledAtRandomPointsOfPlans kills the real daemon with kill -9 at random instants while plans
// are proposed, approved, applied and rolled back, and wants legal states, no move made twice and
// an intact journal. FAIRWAY_KILLS=200 for the long run.
func TestKilledAtRandomPointsOfPlans(t *testing.T) {
	t.Parallel() // it mostly waits
	kills := kills(t, 6)
	d := newRealDaemon(t, selfApproved)
	var cns, all []*testAgent
	for i := range 8 {
		cns = append(cns, newAgent(t, d, topology.NodeID(fmt.Sprintf("cn%d", i)), topology.Compute, "fwd1"))
	}
	all = append(all, cns...)
	for _, f := range []topology.NodeID{"fwd1", "fwd2"} {
		all = append(all, newAgent(t, d, f, topology.Forwarder, ""))
	}
	stopFrames := everySecond(t, all)
	defer stopFrames()
	r := rand.New(rand.NewPCG(1, 2))
	p := &planner{ask: d.ask, to: "fwd2", from: "fwd1"}
	for i := range cns {
		p.nodes = append(p.nodes, cns[i].node)
	}
	for k := range kills {
		connected(t, cns) // else most kills would hit a daemon that waits for its agents
		p.drive(k, time.Now())
		after := time.Duration(r.IntN(1200)) * time.Millisecond
		if p.state.Moving() {
			after /= 20
		}
		killed := time.AfterFunc(after, func() { d.cmd.Process.Kill() })
		for end := time.Now().Add(after + 50*time.Millisecond); time.Now().Before(end); {
			p.step(k)
		}
		killed.Stop()
		p.killed()
		d.kill()
		d.start()
	}
	p.settle(t)
	checkAgents(t, p, cns)
	if sum, err := journal.Verify(filepath.Join(filepath.Dir(d.conf), "state", "journal")); err != nil {
		t.Error(err)
	} else {
		t.Logf("%d kills, %d of them while a plan moved nodes, %d plans, %d records", kills, p.amid, p.made,
			sum.Records)
	}
}

// connected waits until every agent has found the daemon again.
func connected(t *testing.T, agents []*testAgent) {
	t.Helper()
	for _, a := range agents {
		for end := time.Now().Add(aWhile); !a.client.State().Connected; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not find the daemon again: %+v", a.node, a.client.State())
			}
		}
	}
}

// everySecond makes the agents stream several frames a second, as the present ones.
func everySecond(t *testing.T, agents []*testAgent) (stop func()) {
	var wait sync.WaitGroup
	end := make(chan struct{})
	wait.Go(func() {
		for {
			for _, a := range agents {
				a.second(t, time.Now().UnixMilli()-1000, 1)
			}
			select {
			case <-end:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() { close(end); wait.Wait() }
}

// planner drives one plan after the other through its life over the API: to and fro.
type planner struct {
	ask      func(path, key string, body, into any) error
	nodes    []topology.NodeID
	from, to topology.ForwarderID
	id       string
	state    remap.PlanState // as it was seen last
	amid     int             // kills while a plan moved nodes
	made     int
	try      int
}

// drive takes the plan's steps until a time; every second round until it moves nodes, too.
func (p *planner) drive(round int, until time.Time) {
	last := until.Add(5 * time.Second)
	for time.Now().Before(until) || round%2 == 0 && !p.state.Moving() && time.Now().Before(last) {
		p.step(round)
	}
}

// killed counts a kill.
func (p *planner) killed() {
	if p.state.Moving() {
		p.amid++
	}
}

const planReason = "moved to see what a kill does"

// step does the next thing that a plan waits for; errors are the daemon's death, and it is asked
// again later under another key.
func (p *planner) step(round int) {
	p.try++
	key := fmt.Sprintf("k%d-%d", round, p.try)
	time.Sleep(5 * time.Millisecond)
	if p.id == "" {
		var v api.PlanView
		if p.ask("/api/v1/plans", key, api.ManualRemap{Nodes: p.nodes, To: p.to, Reason: planReason}, &v) == nil {
			p.id = v.ID
			p.made++
		}
		return
	}
	var v api.PlanView
	if p.ask("/api/v1/plans/"+p.id, "", nil, &v) != nil {
		return
	}
	p.state = v.State
	decide := func(verb string, hash string, then remap.PlanState) {
		if p.ask("/api/v1/plans/"+p.id+verb, key, api.Decision{PreviewHash: hash, Reason: planReason}, nil) == nil {
			p.state = then
		}
	}
	switch v.State {
	case remap.Proposed:
		decide("/approve", v.PreviewHash, remap.Approved)
	case remap.Verified:
		decide("/rollback", "", remap.RollingBack)
	case remap.Partial, remap.Failed:
		if v.Goal != "" {
			decide("/rollback", "", remap.RollingBack)
		} else {
			decide("/complete", "", remap.Applying)
		}
	case remap.RolledBack, remap.Withdrawn, remap.Expired, remap.Rejected:
		p.id = ""
	}
}

// settle lets the last plan end.
func (p *planner) settle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(aWhile); p.id != ""; {
		if p.step(1 << 20); time.Now().After(end) {
			var v api.PlanView
			err := p.ask("/api/v1/plans/"+p.id, "", nil, &v)
			t.Fatalf("long after the last kill %s is %s (%s), checks %v, %v", p.id, v.State, v.Error, v.Checks,
				err)
		}
	}
}

// checkAgents wants every node back, moved there and back at most once a plan.
func checkAgents(t *testing.T, p *planner, agents []*testAgent) {
	t.Helper()
	if p.made == 0 {
		t.Error("no plan was made")
	}
	for _, a := range agents {
		a.mu.Lock()
		if a.at != p.from || a.changes > 2*p.made || a.changes == 0 {
			t.Errorf("%s is on %s after %d changes of %d plans", a.node, a.at, a.changes, p.made)
		}
		a.mu.Unlock()
	}
}
