package sitefiles

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/sitefiles/model"
)

// TestSoakFaults says of each fault, at three loads and over several seeds, what is found of it and when: the figures
// of docs/layers.md. It fails where a node is accused that is not the sick one, or nothing is found of a router at half
// its speed.
func TestSoakFaults(t *testing.T) {
	soak(t)
	const warm, within = 180, 120
	for _, c := range []struct {
		fault model.Fault
		what  string
		sure  bool
	}{
		{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.1}, "fail_slow rtr2", true},
		{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.5}, "fail_slow rtr2", true},
		{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.75}, "fail_slow rtr2", false},
		{model.Fault{Kind: model.FaultLoss, Node: "rtr2", Value: 0.01}, "fail_slow rtr2", false},
		{model.Fault{Kind: model.FaultCPU, Node: "rtr2", Value: 0.05}, "fail_slow rtr2", true},
		{model.Fault{Kind: model.FaultCPU, Node: "rtr2", Value: 0.1}, "fail_slow rtr2", false},
		{model.Fault{Kind: model.FaultBuffers, Node: "rtr2", Value: 2}, "buffers_exhausted rtr2", false},
		{model.Fault{Kind: model.FaultLink, Node: "cn3", Value: 0.02}, "client_slow cn3", false},
		{model.Fault{Kind: model.FaultLink, Node: "cn3", Value: 0.2}, "client_slow cn3", false},
		{model.Fault{Kind: model.FaultLink, Node: "oss1", Value: 0.1}, "receiver_slow 10.1.0.1@o2ib", false},
		{model.Fault{Kind: model.FaultDisk, Node: "oss1", Value: 0.1}, "", false},
	} {
		atLoads(t, c.fault, func(t *testing.T, load float64) {
			found, runs, latest := 0, 0, 0
			for seed := uint64(201); seed <= 204; seed++ {
				synctest.Test(t, func(t *testing.T) {
					site := model.Small(seed)
					site.Load = load
					w := watchSite(t, site)
					defer w.close()
					w.run(t, warm)
					if err := w.model.Break(c.fault); err != nil {
						t.Fatal(err)
					}
					w.run(t, within)
					runs++
					for what, at := range w.first {
						switch {
						case what == c.what && at > warm:
							found, latest = found+1, max(latest, at-warm)
						case accuses(what):
							t.Errorf("%+v, load %g, seed %d: %s is found: %s", c.fault, load, seed, what, w.says[what])
						}
					}
				})
			}
			t.Logf("| %s %g of %s | %g | %d of %d | %d |", c.fault.Kind, c.fault.Value, c.fault.Node, load, found, runs,
				latest)
			if c.sure && found < runs {
				t.Errorf("%+v, load %g: found in %d of %d", c.fault, load, found, runs)
			}
		})
	}
}

// atLoads runs a test of a fault at three loads, each a test that -run can name: seconds and minutes of CPU.
func atLoads(t *testing.T, f model.Fault, run func(t *testing.T, load float64)) {
	t.Helper()
	name := strings.TrimSpace(fmt.Sprintf("%s %g %s", f.Kind, f.Value, f.Node))
	if f.Kind == "" {
		name = "no fault"
	}
	for _, load := range []float64{0.3, 0.6, 1} {
		t.Run(fmt.Sprintf("%s/load %g", name, load), func(t *testing.T) { run(t, load) })
	}
}

// accuses says whether a finding holds a router responsible.
func accuses(what string) bool {
	kind, _, _ := strings.Cut(what, " ")
	return anomaly.Kind(kind).Accuses()
}

// TestSoakHealthy counts routers that are accused while none is sick: nothing is, a server's disk or a server's link.
func TestSoakHealthy(t *testing.T) {
	soak(t)
	const warm, after = 120, 480
	for _, fault := range []model.Fault{{}, {Kind: model.FaultDisk, Node: "oss1", Value: 0.1},
		{Kind: model.FaultLink, Node: "oss1", Value: 0.1}} {
		atLoads(t, fault, func(t *testing.T, load float64) {
			hours, accused := 0.0, 0
			for seed := uint64(301); seed <= 303; seed++ {
				synctest.Test(t, func(t *testing.T) {
					site := model.Small(seed)
					site.Load = load
					w := watchSite(t, site)
					defer w.close()
					w.run(t, warm)
					if fault.Kind != "" {
						if err := w.model.Break(fault); err != nil {
							t.Fatal(err)
						}
					}
					w.run(t, after)
					hours += float64(len(w.machine.Forwarders)*(warm+after)) / 3600
					for what, at := range w.first {
						if accuses(what) {
							accused++
							t.Errorf("%+v, load %g, seed %d: %s is found after %d s: %s", fault, load, seed, what, at,
								w.says[what])
						}
					}
				})
			}
			t.Logf("| %s %s | %g | %d in %.1f router-hours |", fault.Kind, fault.Node, load, accused, hours)
		})
	}
}

// unrestful is a site of its own kind for each seed: how much is asked for, whether routes are static, whether a router
// has older hardware, whether its jobs pause between phases.
func unrestful(t *testing.T, seed uint64, rng *rand.Rand) *watched {
	c := model.Small(seed)
	c.Load = 0.2 + 0.8*rng.Float64()
	if rng.IntN(3) == 0 {
		c.Groups = 2
	}
	c.Older = rng.IntN(3) / 2
	w := watchSite(t, c)
	for _, j := range w.model.Jobs {
		if rng.IntN(2) == 0 {
			j.Mix.On, j.Mix.Off = time.Duration(5+rng.IntN(60))*time.Second, time.Duration(5+rng.IntN(60))*time.Second
		}
		if rng.IntN(4) == 0 {
			j.Mix.Metadata = 0.8
		}
	}
	return w
}

// unrest are things that happen on a site without any router being at fault: a server's disk or link, a compute node's
// link, a router that starts its counters anew, a program that ends and one that begins. Each lasts a while and ends.
func (w *watched) unrest(t *testing.T, rng *rand.Rand) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	lasts, f := 20+rng.IntN(160), model.Fault{Value: 0.05 + 0.6*rng.Float64()}
	switch rng.IntN(5) {
	case 0:
		f.Kind, f.Node = model.FaultDisk, fmt.Sprintf("oss%d", 1+rng.IntN(2))
	case 1:
		f.Kind, f.Node = model.FaultLink, fmt.Sprintf("oss%d", 1+rng.IntN(2))
	case 2:
		f.Kind, f.Node = model.FaultLink, fmt.Sprintf("cn%d", 1+rng.IntN(8))
	case 3:
		r := fmt.Sprintf("rtr%d", 1+rng.IntN(4))
		w.events = append(w.events, fmt.Sprintf("at %d s %s is started anew", w.seconds, r))
		w.reboot(r)
	default:
		j, mix := w.model.Jobs[rng.IntN(4)], model.Mixes()[rng.IntN(len(model.Mixes()))]
		mix.Think = w.model.Think(mix, w.Model().Load)
		w.events = append(w.events, fmt.Sprintf("at %d s clients %v begin %+v", w.seconds, j.Clients, mix))
		must(w.model.Start(model.Job{ID: fmt.Sprint(2000 + w.seconds), Clients: j.Clients, Mix: mix}))
	}
	if f.Kind != "" {
		w.events = append(w.events, fmt.Sprintf("at %d s %s of %s at %.2f for %d s", w.seconds, f.Kind, f.Node, f.Value,
			lasts))
		must(w.model.Break(f))
		w.run(t, lasts)
		must(w.model.Mend(f.Node))
	}
	w.run(t, 40+rng.IntN(80))
}

// TestSoakRouters counts routers that are accused while none is sick, over courses of half an hour of unrest: the
// figures of docs/layers.md.
func TestSoakRouters(t *testing.T) {
	first, last := seeds(t)
	const warm, whole = 120, 1800
	hours, accused := 0.0, 0
	for seed := first; seed <= last; seed++ {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 17))
			w := unrestful(t, 2000+seed, rng)
			defer w.close()
			for w.run(t, warm); w.seconds < whole; {
				w.unrest(t, rng)
			}
			hours += float64(len(w.machine.Forwarders)*w.seconds) / time.Hour.Seconds()
			for what, at := range w.first {
				if accuses(what) {
					accused++
					t.Errorf("seed %d, %+v: %s is found after %d s: %s; before that:\n%s", seed, w.Model(), what, at,
						w.says[what], strings.Join(w.events, "\n"))
				}
			}
		})
		t.Logf("| %d courses | %d in %.1f router-hours |", seed-first+1, accused, hours)
	}
}
