package gateways

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// seeds are those of the courses that a soak takes: FAIRWAY_SEEDS of them (3) from FAIRWAY_FIRST (1) on.
func seeds(t *testing.T) (first, last uint64) {
	t.Helper()
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("skipped: takes minutes; make soak runs it")
	}
	number := func(name string, otherwise uint64) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 32)
		if err != nil || n == 0 {
			return otherwise
		}
		return n
	}
	first = number("FAIRWAY_FIRST", 1)
	return first, first + number("FAIRWAY_SEEDS", 3) - 1
}

// unrest are things that happen on a site without any gateway being at fault: a storage target or all of them become
// slow, a program's nodes stop and start again, nodes gather on one gateway. Each lasts a while and ends.
func (w *watched) unrest(t *testing.T, rng *rand.Rand) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	lasts := 20 + rng.IntN(180)
	switch rng.IntN(4) {
	case 0:
		name := fmt.Sprintf("ost%d", rng.IntN(len(w.disks)))
		must(w.Break(model.Fault{Kind: model.FaultDisk, Node: name, Value: 0.1 + 0.5*rng.Float64()}))
		w.run(t, lasts)
		must(w.Mend(name))
	case 1:
		left := 0.1 + 0.5*rng.Float64()
		for i := range w.disks {
			w.disks[i] = left
		}
		w.run(t, lasts)
		for i := range w.disks {
			w.disks[i] = 1
		}
	default:
		was := make([]*Gateway, len(w.Clients))
		var to *Gateway // nil: the program has ended
		if rng.IntN(2) == 0 {
			to = w.Gateways[rng.IntN(len(w.Gateways))]
		}
		for i, c := range w.Clients {
			if was[i] = c.on; rng.IntN(2) == 0 {
				must(w.use(c, to, true))
			}
		}
		w.run(t, lasts)
		for i, c := range w.Clients {
			must(w.use(c, was[i], true))
		}
	}
	w.run(t, 60+rng.IntN(120))
}

// TestSoakGateways counts gateways that are accused while none is sick, over courses of an hour of unrest: the figures
// of docs/layers.md.
func TestSoakGateways(t *testing.T) {
	first, last := seeds(t)
	const warm, hour = 120, 3600
	type course struct {
		layer Layer
		bare  bool // nothing of Lustre is read
	}
	courses := []course{{DVS, true}, {OldDVS, true}}
	for _, l := range Layers() {
		courses = append(courses, course{layer: l})
	}
	for _, c := range courses {
		l, name := c.layer, string(c.layer)
		if c.bare {
			name += " alone"
		}
		t.Run(name, func(t *testing.T) {
			hours, accused := 0.0, 0
			for seed := first; seed <= last; seed++ {
				var found []string // reported outside of the bubble: one that fails ends the soak
				synctest.Test(t, func(t *testing.T) {
					w := watchGateways(t, l, 1000+seed)
					if c.bare {
						w.withoutLustre()
					}
					rng := rand.New(rand.NewPCG(seed, 17))
					for w.run(t, warm); w.second < hour; {
						w.unrest(t, rng)
					}
					hours += float64(len(w.Gateways)*w.second) / time.Hour.Seconds()
					for what, says := range w.accused() {
						found = append(found, fmt.Sprintf("%s is found after %d s: %s", what, w.first[what], says))
					}
				})
				accused += len(found)
				for _, what := range found {
					t.Errorf("%s, seed %d: %s", name, seed, what)
				}
				t.Logf("| %s | %d courses | %d in %.1f gateway-hours |", name, seed-first+1, accused, hours)
			}
		})
	}
}
