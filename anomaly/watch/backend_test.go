package watch

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// gateways is a layer of 4 gateways in turn in front of 2 back ends, 2 compute nodes behind each gateway.
type gateways struct {
	board *window.Board
	d     *Detectors
	m     *Machine
	rnd   *rand.Rand
	now   time.Time
	// What is wrong: by how many times a node takes longer.
	slow map[topology.NodeID]float64
	// The nodes with an alarm of a kind since the start.
	alarms map[string]bool
}

func newGateways(seed uint64) *gateways {
	g := &gateways{board: window.NewBoard(0), rnd: rand.New(rand.NewPCG(seed, 2)),
		m: &Machine{Mapping: topology.Mapping{}}, slow: map[topology.NodeID]float64{}, alarms: map[string]bool{},
		now: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)}
	g.d = NewDetectors(g.board, failslow.DefaultSettings())
	for i := range 4 {
		g.m.Forwarders = append(g.m.Forwarders, topology.ForwarderID(fmt.Sprintf("gw%d", i)))
	}
	for i := range 8 {
		g.m.Mapping[topology.NodeID(fmt.Sprintf("cn%d", i))] = g.m.Forwarders[i/2]
	}
	return g
}

func (g *gateways) times(id topology.NodeID) float64 { return max(1, g.slow[id]) }

// took is a time with the noise of a second.
func (g *gateways) took(s float64) float64 { return s * math.Exp(0.2*g.rnd.NormFloat64()) }

// run lets seconds pass: every node writes requests of 256 KiB, four of the back end's each.
func (g *gateways) run(seconds int) {
	for range seconds {
		var frames []collector.Frame
		add := func(id topology.NodeID, role topology.Role, s []collector.Sample) *collector.Frame {
			frames = append(frames, collector.Frame{Node: id, Role: role, TimeMillis: g.now.UnixMilli(), Samples: s})
			return &frames[len(frames)-1]
		}
		const perNode, size = 40.0, 256 << 10
		for b := range 2 {
			id := topology.NodeID(fmt.Sprintf("be%d", b))
			add(id, topology.Storage, samples(collector.WriteOps, 16*perNode, collector.WriteBytes, 4*perNode*size,
				collector.WriteExec, g.took(1.2e-3*g.times(id)), collector.AnswerTime, g.took(1e-3)))
		}
		for i := range 4 {
			id, behind := topology.NodeID(fmt.Sprintf("gw%d", i)), topology.NodeID(fmt.Sprintf("be%d", i%2))
			f := add(id, topology.Forwarder, samples(collector.WriteOps, 8*perNode, collector.WriteBytes,
				2*perNode*size,
				collector.AnswerTime, g.took(1e-3)))
			f.Targets = []collector.TargetSamples{{Target: topology.TargetID(behind)}}
			for k := range 2 {
				cn := topology.NodeID(fmt.Sprintf("cn%d", 2*i+k))
				own := g.times(cn) // it waits for each request before the next
				wait := g.took((3e-3 + 1.2e-3*g.times(behind)) * g.times(id) * own)
				add(cn, topology.Compute, samples(collector.WriteOps, perNode/own, collector.WriteBytes,
					perNode*size/own,
					collector.ClientWrite, wait))
			}
		}
		g.now = g.now.Add(time.Second)
		g.board.Take(frames, g.now)
		for _, v := range g.d.Verdicts(g.now, g.m) {
			if v.Level == anomaly.Alarm {
				g.alarms[fmt.Sprintf("%s %s", v.Node, v.Kind)] = true
			}
		}
	}
}

func TestAGatewayAndItsBackEndAreKeptApart(t *testing.T) {
	for _, c := range []struct {
		slow topology.NodeID
		by   float64
		want string
	}{
		{"be0", 15, "be0 target_slow"}, {"gw0", 5, "gw0 fail_slow"}, {"", 0, ""}, {"cn0", 10, ""},
	} {
		t.Run(string(c.slow), func(t *testing.T) {
			for seed := range uint64(3) {
				g := newGateways(seed)
				g.run(120)
				g.slow[c.slow] = c.by
				g.run(120)
				if len(g.alarms) > 1 || c.want != "" && !g.alarms[c.want] || c.want == "" && len(g.alarms) > 0 {
					t.Errorf("seed %d: alarms %v, want %q alone", seed, g.alarms, c.want)
				}
			}
		})
	}
}

// After a restart a sick back end is not taken for what is usual.
func TestABackEndIsKnownAfterARestart(t *testing.T) {
	g := newGateways(1)
	g.run(120)
	g.slow["be0"] = 15
	g.run(60)
	state, err := g.d.State(g.now)
	if err != nil {
		t.Fatal(err)
	}
	g.d = NewDetectors(g.board, failslow.DefaultSettings())
	if _, err := g.d.LoadState(bytes.NewReader(state), g.now, time.Hour); err != nil {
		t.Fatal(err)
	}
	clear(g.alarms)
	g.run(10)
	if !g.alarms["be0 target_slow"] || len(g.alarms) != 1 {
		t.Errorf("alarms %v after the restart, want be0's", g.alarms)
	}
}
