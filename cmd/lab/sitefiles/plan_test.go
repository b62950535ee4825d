package sitefiles

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/node"
)

// planned is a driver over the agents of a site that lives with the clock.
type planned struct {
	*Site
	*agent.Driver
	agents *drivertest.Agents
	stop   chan struct{}
	ended  chan struct{}
}

func planSite(t *testing.T, cfg model.Config) *planned {
	t.Helper()
	s := newSite(t, Options{Model: cfg, Dir: "unused"})
	handlers := map[topology.NodeID]map[string]stream.OrderHandler{}
	for _, n := range s.model.Nodes {
		m := moverOf(s, n.Name, "")
		h := m.Handlers(true)
		for kind, do := range node.Handlers(m, true) {
			h[kind] = do
		}
		handlers[topology.NodeID(n.Name)] = h
	}
	p := &planned{Site: s, agents: drivertest.NewAgents(handlers), stop: make(chan struct{}),
		ended: make(chan struct{})}
	addr := func(topology.ForwarderID) (string, bool) { return "-", true }
	p.Driver = agent.New(p.agents, addr, driver.Fan{Parallel: 4, Tries: 1, Timeout: 5 * time.Second})
	p.SetRouters(func() []topology.NodeID { return []topology.NodeID{"rtr1", "rtr2", "rtr3", "rtr4"} })
	go func() {
		defer close(p.ended)
		for begun := time.Now(); ; {
			select {
			case <-p.stop:
				return
			case <-time.After(100 * time.Millisecond):
				s.mu.Lock()
				s.model.Run(time.Since(begun))
				s.mu.Unlock()
			}
		}
	}()
	return p
}

func (p *planned) end() {
	close(p.stop)
	<-p.ended
}

// apply carries a plan out, or takes it back, and returns what became of each node.
func (p *planned) apply(t *testing.T, do func(context.Context, remap.Plan, func(remap.Result)) error,
	plan remap.Plan) map[topology.NodeID]remap.Result {
	t.Helper()
	var mu sync.Mutex
	got := map[topology.NodeID]remap.Result{}
	if err := do(t.Context(), plan, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		got[r.Node] = r
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// avoid has nodes avoid routers, as drains do.
func (p *planned) avoid(t *testing.T, nodes []topology.NodeID, routers ...topology.ForwarderID) {
	t.Helper()
	body, err := json.Marshal(wire.AvoidOrder{Forwarders: routers})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		r, err := p.agents.Order(t.Context(), n, wire.Order{Kind: wire.OrderAvoid, Body: body})
		if err != nil || !r.OK {
			t.Errorf("%s: %+v, %v", n, r, err)
		}
	}
}

// tables are every node's routes and rules.
func (p *planned) tables() (text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.model.Nodes {
		text += fmt.Sprintf("%s\n%s\n%v\n", n.Name, rowsOf(p.Site, n.Name), n.Table.Rules)
	}
	return text
}

// TestAPlanSteersBothEnds: a job's nodes are moved to two routers, the servers prefer these for its data, which by the
// traffic crosses nothing else; a server that has no agent leaves the plan partly done, with the share of the data that
// goes elsewhere; an excluded router is not steered to any more; and all tables are given back.
func TestAPlanSteersBothEnds(t *testing.T) {
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := model.Small(11)
			p := planSite(t, cfg)
			defer p.end()
			servers := []topology.NodeID{"oss1", "oss2", "mds1"}
			p.SetServers(func() []topology.NodeID { return servers })
			if alone {
				p.agents.Break(t, "oss2")
			}
			was := p.tables()
			plan := remap.Plan{ID: "P-1", Moves: []remap.Move{
				{Node: "cn1", Spread: "rtr1,rtr2,rtr3,rtr4", To: "rtr3"},
				{Node: "cn2", Spread: "rtr1,rtr2,rtr3,rtr4", To: "rtr4"}}}
			lines, err := p.Preview(t.Context(), plan)
			want := "3 of 3 servers get a rule"
			if alone {
				want = "2 of 3 servers get a rule"
			}
			if err != nil || len(lines) != 1 || !strings.Contains(lines[0], want) {
				t.Errorf("the preview is %q, %v; want %q", lines, err, want)
			}
			for n, r := range p.apply(t, p.Apply, plan) {
				if alone && (r.OK || !strings.Contains(r.Error, "data still crosses") ||
					!strings.Contains(r.Error, "oss2")) || !alone && !r.OK {
					t.Errorf("%s, a server without an agent %v: %+v", n, alone, r)
				}
			}
			if alone {
				p.agents.Mend(t, "oss2")
			} else {
				p.avoid(t, servers, "rtr3")
				rules := p.tables()
				if rtr3 := p.model.Node("rtr3").NIs[1].NID; strings.Contains(rules, " "+rtr3+"}") {
					t.Errorf("servers that avoid rtr3 (%s) still prefer it by a rule:\n%s", rtr3, rules)
				}
				p.avoid(t, servers)
			}
			for n, r := range p.apply(t, p.Restore, plan) {
				if !r.OK {
					t.Errorf("back: %s: %+v", n, r)
				}
			}
			if now := p.tables(); now != was {
				t.Errorf("the tables are\n%s\nthey were\n%s", now, was)
			}
		})
	}
}

// TestAClientsRouteAloneIsNeverDone: a plan that replaces a client's route ends with what its data still crosses, and
// an idle client's with that nothing was seen.
func TestAClientsRouteAloneIsNeverDone(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := model.Small(11)
			if idle {
				cfg.Jobs = []model.Job{}
			}
			d := planSite(t, cfg)
			defer d.end()
			p := remap.Plan{ID: "P-1", Moves: []remap.Move{{Node: "cn1", From: "rtr1", To: "rtr3"}}}
			lines, err := d.Preview(t.Context(), p)
			if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "servers still choose the router") {
				t.Errorf("the preview is %q, %v", lines, err)
			}
			got := d.apply(t, d.Apply, p)["cn1"]
			want := "data still crosses rtr"
			if idle {
				want = "quiet"
			}
			if got.OK || !strings.Contains(got.Error, want) {
				t.Errorf("idle %v: %+v; want %q", idle, got, want)
			}
		})
	}
}
