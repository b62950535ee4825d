package sitefiles

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"fairway/cmd/fairway-demo/sitefiles/model"
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
	var kind, node string
	_, _ = fmt.Sscan(what, &kind, &node)
	return kind == "fail_slow" || kind == "silent"
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
