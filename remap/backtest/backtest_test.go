package backtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap/policy/avoid"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/mckp"
	"fairway/tsdb/history"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// small is 8 compute nodes on 2 of 4 forwarders; a forwarder carries 2 nodes' I/O.
var small = Machine{Compute: 8, Forwarders: 4, DefaultRatio: 4, FwdBW: 200, CNBW: 100, SlowShare: 0.5}

var limits = dfra.Config{VMinBytes: 1000, NMin: 2}

func run(id int, app string, nodes int, from, to float64, volume float64, change func(*history.Profile)) history.Run {
	q := 0.0
	p := &history.Profile{WriteBytes: volume, IONodes: nodes, Mode: topology.ModeNN, MetaQueue: &q, Coverage: 1,
		From: "test"}
	if change != nil {
		change(p)
	}
	at := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }
	return history.Run{Job: topology.JobID(fmt.Sprint(id)), User: "u", App: app, Nodes: nodes, Start: at(from),
		End: at(to), Profile: p}
}

func replay(t *testing.T, m Machine, runs []history.Run, p Policy) *Result {
	t.Helper()
	r, err := Run(m, limits, runs, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

var policies = []Policy{FFM, {Name: "dfra", Decide: dfra.Decide},
	{Name: "mckp", Decide: mckp.Policy(0), Arbitrates: true}, {Name: "avoid", Decide: avoid.Decide}}

// Figure 12's shape: two jobs of four nodes side by side. Round robin spreads each over all four forwarders, where they
// meet; alone each would be twice as fast. By default each has one forwarder of its own.
func TestRoundRobinSpreadsAndDoesNotIsolate(t *testing.T) {
	two := []history.Run{run(1, "A", 4, 0, 10, 8000, nil), run(2, "B", 4, 0, 10, 8000, nil)}
	one := Policy{Name: "rr-1", RoundRobin: 1}
	for _, c := range []struct {
		policy Policy
		runs   []history.Run
		want   float64
	}{{FFM, two, 8000. / 200}, {one, two[:1], 8000. / 400}, {one, two, 8000. / 4 * 2 / 200}} {
		s := newSim(small, limits, c.policy)
		if err := s.load(c.runs); err != nil {
			t.Fatal(err)
		}
		s.play()
		for _, j := range s.jobs {
			near(t, c.policy.Name+": seconds of "+j.run.App, j.seconds, c.want)
			if on := len(j.on); c.policy.RoundRobin == 1 && on != 4 {
				t.Errorf("%s is on %d forwarders, want 4", j.run.App, on)
			}
		}
	}
}

// TestExpectedTimesByHand: a job of 4 nodes runs twice. By default it has one forwarder of 200 B/s for
// 400 B/s of nodes; the second time DFRA gives it two.
func TestExpectedTimesByHand(t *testing.T) {
	runs := []history.Run{run(1, "A", 4, 0, 100, 8000, nil), run(2, "A", 4, 200, 300, 8000, nil)}
	ffm := replay(t, small, runs, FFM)
	near(t, "FFM, both", ffm.seconds[0]+ffm.seconds[1], 40+40)
	near(t, "in use", ffm.MeanInUse, 200.0/300)
	d := replay(t, small, runs, policies[1])
	near(t, "DFRA, first", d.seconds[0], 40)
	near(t, "DFRA, second", d.seconds[1], 20)
	near(t, "in use", d.MeanInUse, 300.0/300)
	d.Compare(ffm)
	if d.Granted != 1 || d.Upgraded != 1 || d.CoreHours != 0.5 || d.PeakInUse != 2 || d.Against.Gain != 1 ||
		d.Against.Lose != 0 || d.Checked != 1 || d.Right != 1 {
		t.Errorf("%+v %+v", d, d.Against)
	}
	near(t, "saved", d.Against.NodeHoursSaved, 4*20.0/3600)
}

// TestSharedForwarderByHand: two jobs of 2 nodes share a forwarder. One asks 4000 B in 100 s of its
// 200 B/s: a fifth of its time, so the other's I/O takes a fifth longer.
func TestSharedForwarderByHand(t *testing.T) {
	runs := []history.Run{run(1, "A", 2, 0, 100, 4000, nil), run(2, "B", 2, 0, 100, 10000, nil)}
	r := replay(t, small, runs, FFM)
	near(t, "B", r.seconds[1], 10000.0/200*1.2)
	near(t, "A", r.seconds[0], 4000.0/200*1.5)
	// The neighbour is there half of the time only.
	runs[0].End = epoch.Add(50 * time.Second)
	runs[0].Profile.WriteBytes = 2000
	near(t, "B beside half of A", replay(t, small, runs, FFM).seconds[1], 10000.0/200*1.1)
}

func TestSlowForwardersAreAvoidedButByFFM(t *testing.T) {
	m := small
	m.Slow = 1
	runs := []history.Run{run(1, "A", 4, 0, 100, 4000, nil)}
	ffm, a := replay(t, m, runs, FFM), replay(t, m, runs, policies[3])
	near(t, "FFM on a forwarder at half speed", ffm.seconds[0], 40)
	near(t, "avoid", a.seconds[0], 20)
	if a.Steered != 1 || a.Granted != 1 || ffm.Granted != 0 {
		t.Errorf("%+v", a)
	}
}

func TestALoserIsNamed(t *testing.T) {
	// A policy that puts everybody on the last forwarder alone.
	bad := Policy{Name: "bad", Decide: func(c dfra.Case) dfra.Decision {
		return dfra.Decision{Action: dfra.Isolate, Remap: true, Forwarders: []topology.ForwarderID{"fwd003"}}
	}}
	wide := []history.Run{run(1, "A", 8, 0, 100, 4000, nil)}
	ffm, r := replay(t, small, wide, FFM), replay(t, small, wide, bad)
	r.Compare(ffm)
	if a := r.Against; a.Lose != 1 || len(a.Worst) != 1 || a.Worst[0].Job != "1" || a.Worst[0].Seconds != 20 ||
		a.Worst[0].DefaultSecond != 10 {
		t.Errorf("%+v", a)
	}
}

// history100k is a seeded history: kinds of jobs that come again and again, on a machine that is
// about half full.
func manyRuns(n int) []history.Run {
	r := rand.New(rand.NewPCG(7, 7))
	type kind struct {
		nodes   int
		volume  float64
		mode    topology.Mode
		seconds float64
	}
	kinds := make([]kind, 400)
	for i := range kinds {
		k := kind{nodes: 1 << r.IntN(11), volume: math.Exp(r.NormFloat64()*3 + 23), mode: topology.ModeNN,
			seconds: 600 + 7200*r.ExpFloat64()}
		if r.IntN(5) == 0 {
			k.mode = topology.ModeN1
		}
		kinds[i] = k
	}
	runs, at := make([]history.Run, 0, n), 0.0
	for i := range n {
		k := kinds[r.IntN(len(kinds))]
		at += r.ExpFloat64() * 75
		runs = append(runs, run(i, fmt.Sprint("app", k.nodes, k.volume), k.nodes, at, at+k.seconds*(0.5+r.Float64()),
			k.volume*(0.9+0.2*r.Float64()), func(p *history.Profile) { p.Mode = k.mode }))
	}
	return runs
}

// TestReplayKeepsItsBooks: at the end every node is free, no forwarder has a user, and at no time did
// two jobs share a dedicated forwarder.
func TestReplayKeepsItsBooks(t *testing.T) {
	runs := manyRuns(3000)
	for _, p := range policies {
		m := TaihuLight()
		m.Slow = 5
		s := newSim(m, dfra.Config{}, p)
		if err := s.load(runs); err != nil {
			t.Fatal(err)
		}
		if p.Decide != nil {
			decide := p.Decide
			s.policy.Decide = func(c dfra.Case) dfra.Decision {
				for i := range s.fwds {
					if f := &s.fwds[i]; f.alone && len(f.users) != 1 {
						t.Fatalf("%s: %s is dedicated and has %d jobs", p.Name, s.names[i], len(f.users))
					}
				}
				return decide(c)
			}
		}
		s.play()
		if len(s.nodes) != 1 || s.nodes[0] != (block{0, m.Compute}) || s.used != 0 {
			t.Errorf("%s: free nodes %v, %d forwarders in use", p.Name, s.nodes, s.used)
		}
		for i := range s.fwds {
			if f := &s.fwds[i]; len(f.users) > 0 || f.alone || f.load != 0 {
				t.Errorf("%s: %s is left with %+v", p.Name, s.names[i], f)
			}
		}
		res := s.result()
		if res.Jobs+res.Unplaced != len(runs) || res.Unplaced > len(runs)/10 || p.Name == "dfra" &&
			(res.Upgraded == 0 || res.Isolated == 0) {
			t.Errorf("%+v", res)
		}
		t.Logf("%s: %d upgraded, %d isolated, %d steered, %.1f forwarders", p.Name, res.Upgraded, res.Isolated,
			res.Steered, res.MeanInUse)
	}
}

// TestManyJobs replays 100,000 jobs where FAIRWAY_BACKTEST says so, else 5,000, and prints the time.
func TestManyJobs(t *testing.T) {
	n := 5000
	if os.Getenv("FAIRWAY_BACKTEST") != "" {
		n = 100_000
	}
	runs := manyRuns(n)
	for _, p := range policies {
		begun := cpu()
		r := replay(t, TaihuLight(), runs, p)
		t.Logf("%s: %d jobs in %s of CPU; %d granted, %.1f forwarders", p.Name, r.Jobs,
			(cpu() - begun).Round(time.Millisecond), r.Granted, r.MeanInUse)
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestBadInputIsNamed(t *testing.T) {
	for want, m := range map[string]Machine{
		"compute nodes = 0":  {},
		"forwarders = 1":     {Compute: 8, DefaultRatio: 4, Forwarders: 1, FwdBW: 1, CNBW: 1, SlowShare: 1},
		"slow forwarders at": {Compute: 8, DefaultRatio: 4, Forwarders: 2, FwdBW: 1, CNBW: 1, Slow: 3, SlowShare: 1},
		"bandwidths 0 and 1": {Compute: 8, DefaultRatio: 4, Forwarders: 2, CNBW: 1, SlowShare: 1},
	} {
		if _, err := Run(m, limits, nil, FFM); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Run(small, limits, nil, FFM); !errors.Is(err, ErrNoJobs) {
		t.Errorf("no jobs: %v", err)
	}
	r := replay(t, small, []history.Run{run(1, "A", 9, 0, 10, 1, nil), run(2, "A", 8, 0, 0, 1, nil)}, FFM)
	if r.Unplaced != 1 || r.Jobs != 1 {
		t.Errorf("%+v", r)
	}
}
