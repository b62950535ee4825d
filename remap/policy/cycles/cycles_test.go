package cycles

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/tsdb/history"
)

var day = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// run computes for compute seconds and writes 10 GB in ten, n times; jitter moves both by that share.
func run(app string, nodes, n int, compute, jitter float64, at int) history.Run {
	r := rand.New(rand.NewPCG(uint64(at), 1))
	wobble := func(v float64) float64 { return v * (1 + jitter*(2*r.Float64()-1)) }
	out := history.Run{Job: "j", App: app, User: "wei", Nodes: nodes, Start: day.Add(time.Duration(at) * time.Hour),
		End:     day.Add(time.Duration(at+1) * time.Hour),
		Profile: &history.Profile{Peaks: history.Peaks{PeakNodeBytesPerSec: 2e9}}}
	t := 0.0
	for range n {
		t += wobble(compute)
		out.Profile.Phases = append(out.Profile.Phases,
			history.Phase{AtSeconds: t, Seconds: 10, WriteBytes: wobble(10e9)})
		// Between two checkpoints a line of a log.
		out.Profile.Phases = append(out.Profile.Phases, history.Phase{AtSeconds: t + 10 + compute/3, Seconds: 1,
			WriteBytes: 1e6})
		t += 10
	}
	return out
}

func TestPeriodicApplicationIsFound(t *testing.T) {
	cs := Of([]history.Run{run("wrf", 64, 20, 90, 0, 1), run("wrf", 64, 20, 90, 0.05, 2), run("wrf", 128, 2, 90, 0, 3),
		{Job: "x", App: "none", Nodes: 1, Start: day, End: day}}, Defaults())
	if len(cs) != 2 {
		t.Fatalf("%d groups: %+v", len(cs), cs)
	}
	short, c := cs[0], cs[1] // the newest first
	if short.Nodes != 128 || short.Periodic || !strings.Contains(short.Why, "not periodic: 2 phases") {
		t.Errorf("%+v", short)
	}
	if !c.Periodic || c.Runs != 2 || c.Cycles != 38 || math.Abs(c.Period.Median-100) > 2 ||
		math.Abs(c.Compute.Median-90) > 2 || c.IO.Median != 10 || math.Abs(c.Volume.Median/10e9-1) > 0.03 {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(c.Why, "38 cycles in 2 runs") {
		t.Error(c.Why)
	}
}

func TestLargeSpreadIsNotPeriodic(t *testing.T) {
	c := Of([]history.Run{run("loose", 4, 40, 90, 0.6, 1)}, Defaults())[0]
	if c.Periodic || !strings.Contains(c.Why, "not periodic: half of its 39 periods lie between") {
		t.Errorf("%+v", c)
	}
	r := run("uneven", 4, 40, 90, 0, 1)
	for i := range r.Profile.Phases {
		r.Profile.Phases[i].WriteBytes *= float64(1 + i%8)
	}
	if c := Of([]history.Run{r}, Defaults())[0]; c.Periodic || !strings.Contains(c.Why, "phases move between") {
		t.Errorf("%+v", c)
	}
	r = run("always", 4, 40, 90, 0, 1)
	for i := range r.Profile.Phases {
		r.Profile.Phases[i].Seconds = 100
	}
	if c := Of([]history.Run{r}, Defaults())[0]; c.Periodic || !strings.Contains(c.Why, "all the time") {
		t.Errorf("%+v", c)
	}
}

// Phases of 2 s every 8 are phases of their own, and checkpoints that stall for 4 s in the midst are one each.
func TestShortPhasesAndStallsArePeriodic(t *testing.T) {
	short := run("short", 4, 40, 6, 0, 1)
	short.Profile.Phases = nil
	stalls := short
	stalls.App, stalls.Profile = "stalls", &history.Profile{}
	for i := range 40 {
		at := float64(8 * i)
		short.Profile.Phases = append(short.Profile.Phases, history.Phase{AtSeconds: at, Seconds: 2, WriteBytes: 1e9})
		for _, part := range []float64{0, 6} {
			stalls.Profile.Phases = append(stalls.Profile.Phases,
				history.Phase{AtSeconds: 60*float64(i) + part, Seconds: 2, WriteBytes: 1e9})
		}
	}
	for _, c := range Of([]history.Run{short, stalls}, Defaults()) {
		want, moved := 8.0, 1e9
		if c.App == "stalls" {
			want, moved = 60, 2e9
		}
		if !c.Periodic || c.Period.Median != want || c.Volume.Median != moved {
			t.Errorf("%+v", c)
		}
	}
}
