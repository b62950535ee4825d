package daemontest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// idle is a job that does nothing.
const idle = "1003"

// effectWithin is how long what a move brought may take to be known.
const effectWithin = 5 * time.Minute

// TestRunningJobsSayWhatAMoveBrought draws moves: off faults, which help; of a job while everything behind the
// forwarders is slow, which cannot; and beside each of a job that does nothing. None is called what it is not.
func TestRunningJobsSayWhatAMoveBrought(t *testing.T) {
	cfg := testbed.Config{ComputeNodes: 12, Mapping: topology.Mapping{}}
	for i := range cfg.ComputeNodes {
		cfg.Mapping[topology.NodeID(fmt.Sprintf("cn%03d", i))] = topology.ForwarderID(fmt.Sprintf("fwd%03d", i/2%4))
	}
	onSites(t, cfg, func(e *evacuation, rounds, _ int) {
		e.report(idle, []topology.NodeID{"cn008", "cn009", "cn010", "cn011"})
		for range rounds {
			e.calm()
			f := e.drawFault([]testbed.Fault{{Kind: testbed.SlowData, Amount: 0.03}, {Kind: testbed.StopGo},
				{Kind: testbed.Hang}})
			still := e.moveByHand(e.elsewhere(f.Node, "cn008", "cn009", "cn010", "cn011"))
			if e.draw("move", []string{"off a fault", "in vain"}) == "in vain" {
				e.moveInVain()
			} else {
				e.fault(f)
			}
			p := e.effectOf(still)
			e.t.Logf("idle: %s: %s", p.ID, p.Effect.Text())
			if p.Effect.Verdict != remap.EffectUnknown {
				e.t.Errorf("%s moved a job that does nothing: %s", p.ID, p.Effect.Text())
			}
			e.takeBack(still)
		}
	})
}

// moveInVain moves a node that works while everything behind the forwarders is slow.
func (e *evacuation) moveInVain() {
	e.t.Helper()
	acts := len(e.acts())
	stop := e.slowBackEnd()
	time.Sleep(30 * time.Second)
	node, to := e.elsewhere("", nodesOf("1002")...)
	others := slices.DeleteFunc(nodesOf("1002"), func(n topology.NodeID) bool { return n == node })
	moved := time.Now()
	id := e.moveByHand(node, to)
	p := e.effectOf(id)
	before, after := e.waited([]topology.NodeID{node}, others, moved.Add(-25*time.Second), moved),
		e.waited([]topology.NodeID{node}, others, p.Effect.AfterFrom, p.Effect.AfterTo)
	truth := before.Ratio() / after.Ratio()
	e.t.Logf("in vain: %s: %s; beside its job's others %s takes %.2f of what it took", p.ID, p.Effect.Text(), node,
		1/truth)
	if p.Effect.Verdict == remap.Helped || p.Effect.Verdict == remap.Worse && truth > 0.9 {
		e.t.Errorf("%s moved a node while all forwarders were slow: %s (%+v)", p.ID, p.Effect.Text(), p.Effect.Gain)
	}
	if now := e.acts(); len(now) > acts {
		e.t.Errorf("all forwarders were slow, and a rule acted: %+v", now[0])
	}
	stop()
	e.takeBack(id)
}

// elsewhere draws one of some nodes and a forwarder that is not its own; both have nothing to do with another one.
func (e *evacuation) elsewhere(but topology.NodeID, nodes ...topology.NodeID) (topology.NodeID, topology.ForwarderID) {
	at := e.tb.Machine().Default
	nodes = e.atHome(but, nodes)
	for {
		node := nodes[e.rand.IntN(len(nodes))]
		to := topology.ForwarderID(fmt.Sprintf("fwd%03d", e.rand.IntN(4)))
		if to != at[node] && to.Node() != but {
			return node, to
		}
	}
}

// atHome waits until some of the nodes, of those that belong elsewhere than a forwarder, are where they belong and no
// plan has them.
func (e *evacuation) atHome(but topology.NodeID, nodes []topology.NodeID) (free []topology.NodeID) {
	e.t.Helper()
	for end := time.Now().Add(calmWithin); len(free) == 0; time.Sleep(time.Second) {
		at, taken := e.observed(), map[topology.NodeID]bool{}
		var rows []api.PlanRow
		e.ask("/api/v1/plans", nil, &rows)
		for _, r := range rows {
			if r.State.Final() || r.State == remap.Partial || r.State == remap.Failed {
				continue
			}
			var p api.PlanView
			e.ask("/api/v1/plans/"+r.ID, nil, &p)
			for _, m := range p.Moves {
				taken[m.Node] = true
			}
		}
		free = slices.DeleteFunc(slices.Clone(nodes), func(n topology.NodeID) bool {
			home := e.tb.Machine().Default[n]
			return taken[n] || at[n] != home || home.Node() == but
		})
		if time.Now().After(end) {
			e.t.Fatalf("none of %v is at home after %s: %v, taken %v", nodes, calmWithin, at, taken)
		}
	}
	return free
}

// moveByHand proposes and approves a move, and waits until it is verified.
func (e *evacuation) moveByHand(node topology.NodeID, to topology.ForwarderID) string {
	e.t.Helper()
	const reason = "what does that bring here"
	var v api.PlanView
	e.ask("/api/v1/plans", api.ManualRemap{Nodes: []topology.NodeID{node}, To: to, Reason: reason}, &v)
	e.ask("/api/v1/plans/"+v.ID+"/approve", api.Decision{PreviewHash: v.PreviewHash, Reason: reason}, nil)
	wantPlan(e.t, e.d, v.ID, remap.Verified)
	return v.ID
}

// effectOf waits until it is known what a plan brought.
func (e *evacuation) effectOf(id string) (p api.PlanView) {
	e.t.Helper()
	for end := time.Now().Add(effectWithin); ; time.Sleep(time.Second) {
		p = api.PlanView{}
		e.ask("/api/v1/plans/"+id, nil, &p)
		if p.Effect != nil && p.Effect.Verdict != remap.Measuring {
			return p
		}
		if time.Now().After(end) {
			e.t.Fatalf("after %s it is not known what %s brought: %+v", effectWithin, id, p.Effect)
		}
	}
}

// takeBack rolls a plan back. Where its node would go to a forwarder that is accused, it waits for that.
func (e *evacuation) takeBack(id string) {
	e.t.Helper()
	e.ask("/api/v1/plans/"+id+"/rollback", api.Decision{Reason: "that is known now"}, nil)
}
