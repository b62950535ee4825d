package mckp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/policy/dfra"
)

// brute tries every combination.
func brute(claims []Claim, capacity int, harm float64) float64 {
	if len(claims) == 0 {
		return 0
	}
	best := math.Inf(-1)
	c := claims[0]
	for k, o := range c.Choices {
		if o.Forwarders > capacity || k > 0 && o.Seconds > (1+harm)*c.Choices[0].Seconds {
			continue
		}
		best = max(best, c.Weight*(c.Choices[0].Seconds-o.Seconds)+brute(claims[1:], capacity-o.Forwarders, harm))
	}
	return best
}

// TestSolveIsExact compares with brute force, and wants the capacity and the bound kept.
func TestSolveIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		claims := make([]Claim, 1+r.IntN(4))
		for i := range claims {
			claims[i] = Claim{Weight: float64(1 + r.IntN(9)), Choices: []Choice{{0, float64(r.IntN(50))}}}
			for range r.IntN(5) {
				claims[i].Choices = append(claims[i].Choices, Choice{1 + r.IntN(6), float64(r.IntN(60))})
			}
		}
		capacity, harm := r.IntN(12), float64(r.IntN(3))/10
		got, taken := 0.0, 0
		for i, k := range Solve(claims, capacity, harm) {
			c := claims[i]
			taken += c.Choices[k].Forwarders
			got += c.Weight * (c.Choices[0].Seconds - c.Choices[k].Seconds)
			if k > 0 && c.Choices[k].Seconds > (1+harm)*c.Choices[0].Seconds {
				t.Fatalf("job %d is harmed: %+v", i, c)
			}
		}
		if want := brute(claims, capacity, harm); math.Abs(got-want) > 1e-9 || taken > capacity {
			t.Fatalf("saves %g with %d of %d forwarders, the best is %g: %+v", got, taken, capacity, want, claims)
		}
	}
}

func TestSolveTakesNoForwarderForNothing(t *testing.T) {
	claims := []Claim{{1, []Choice{{0, 10}, {1, 5}, {4, 5}}}, {1, []Choice{{0, 10}, {3, 10}}}}
	if got := fmt.Sprint(Solve(claims, 20, 0)); got != "[1 0]" {
		t.Errorf("chosen %s", got)
	}
}

func run(app string, nodes, ioNodes int, volume float64) dfra.Run {
	return dfra.Run{App: app, User: "u", Nodes: dfra.NodeCount(nodes), VolumeBytes: volume, IONodes: float64(ioNodes),
		Mode: topology.ModeNN}
}

func job(app string, nodes int) dfra.Job {
	return dfra.Job{App: app, User: "u", Nodes: dfra.NodeCount(nodes), DefaultForwarders: []topology.ForwarderID{"d1"}}
}

func idle(n int) (out []topology.ForwarderID) {
	for i := range n {
		out = append(out, topology.ForwarderID(fmt.Sprint("i", i)))
	}
	return out
}

func TestAloneItIsDFRA(t *testing.T) {
	c := dfra.Case{Job: job("A", 256), History: []dfra.Run{run("A", 256, 256, 1e12)},
		Forwarders: dfra.Pool{Idle: idle(20)}}
	d, want := Policy(0)(c), dfra.Decide(c)
	if d.Action != dfra.Upgrade || d.Count != 8 || fmt.Sprint(d.Forwarders) != fmt.Sprint(want.Forwarders) || !d.Remap {
		t.Errorf("%+v, DFRA %+v", d, want)
	}
}

func TestForwardersGoWhereTheySaveMost(t *testing.T) {
	c := dfra.Case{Job: job("SMALL", 256), History: []dfra.Run{run("SMALL", 256, 256, 3e10)},
		Forwarders: dfra.Pool{Idle: idle(8)},
		Rivals:     []dfra.Rival{{Job: job("BIG", 512), History: []dfra.Run{run("BIG", 512, 256, 1e13)}}}}
	if d := Policy(0)(c); d.Action != dfra.Default || d.Remap || d.Wanted != 8 {
		t.Errorf("the small job takes what the big one needs: %+v", d)
	}
	c.Forwarders.Idle = idle(16)
	if d := Policy(0)(c); d.Count != 8 {
		t.Errorf("with room for both: %+v", d)
	}
	// The first forwarders of its own save nothing against an undisturbed default one.
	c.Rivals, c.Forwarders.Idle = nil, idle(1)
	if d := Policy(0)(c); d.Remap {
		t.Errorf("one forwarder for one: %+v", d)
	}
}

func TestIsolationAndNothing(t *testing.T) {
	c := dfra.Case{Job: job("A", 64), History: []dfra.Run{run("A", 64, 16, 1e9)},
		Forwarders: dfra.Pool{Idle: idle(3), Anomalous: []topology.ForwarderID{"i0"}},
		Neighbours: []dfra.Neighbour{{Job: "n", Forwarders: []topology.ForwarderID{"d1"},
			History: &dfra.Run{Mode: topology.ModeN1}}}}
	// Its 16 nodes need half a forwarder: sharing it with one neighbour costs nothing by bandwidth.
	if d := Policy(0)(c); d.Remap {
		t.Errorf("%+v", d)
	}
	c.History[0].IONodes = 32
	if d := Policy(0)(c); d.Action != dfra.Isolate || d.Count != 1 || d.Forwarders[0] != "i1" {
		t.Errorf("%+v", d)
	}
	c.History = nil
	c.Forwarders.Anomalous = []topology.ForwarderID{"d1"}
	if d := Policy(0)(c); d.Action != dfra.Default || !d.Remap || d.Forwarders[0] != "i0" ||
		*d.FirstFailed != "history" {
		t.Errorf("a slow default forwarder is kept: %+v", d)
	}
}

// Whatever the case, what a job gets is by the model at most harm slower than its default mapping.
func TestNoJobIsHarmedBeyondTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 34))
	moved := 0
	for range 3000 {
		harm := float64(r.IntN(3)) / 20
		draw := func(app string) (dfra.Job, []dfra.Run) {
			nodes := 1 << (3 + r.IntN(8))
			past := run(app, nodes, 1+r.IntN(nodes), math.Exp(20+10*r.Float64()))
			return job(app, nodes), []dfra.Run{past}
		}
		c := dfra.Case{Forwarders: dfra.Pool{Idle: idle(r.IntN(12))}}
		c.Job, c.History = draw("A")
		for i := range r.IntN(3) {
			rival := dfra.Rival{}
			rival.Job, rival.History = draw(fmt.Sprint("R", i))
			c.Rivals = append(c.Rivals, rival)
			c.Neighbours = append(c.Neighbours, dfra.Neighbour{Job: topology.JobID(fmt.Sprint(i)),
				Forwarders: []topology.ForwarderID{"d1"}, History: &dfra.Run{Mode: topology.ModeN1}})
		}
		d := Policy(harm)(c)
		if !d.Remap {
			continue
		}
		moved++
		wish := dfra.Wish(c)
		before, after := wish.Seconds(wish.Base, 1+len(wish.Interference)), wish.Seconds(d.Count, 1)
		if after > before*(1+harm)*(1+1e-12) || d.Count > len(c.Forwarders.Idle) {
			t.Fatalf("%d forwarders take %g s, the default mapping %g, harm %g: %+v", d.Count, after, before, harm, d)
		}
	}
	if moved < 100 {
		t.Errorf("%d of 3000 cases moved a job: too few to say anything", moved)
	}
}
