package sitefiles

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/sitefiles/model"
	"fairway/remap/node/lnet"
)

// soak skips what takes minutes.
func soak(t *testing.T) {
	t.Helper()
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("skipped: takes minutes; make soak runs it")
	}
}

// seeds are those of the courses that a soak takes: FAIRWAY_SEEDS of them (3) from FAIRWAY_FIRST (1) on.
func seeds(t *testing.T) (first, last uint64) {
	t.Helper()
	soak(t)
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

// TestSoakLargeSite drains a router of 1,000 clients and 32 servers, and gives every table back.
func TestSoakLargeSite(t *testing.T) {
	soak(t)
	s := newSite(t, Options{Model: model.Large(1)})
	s.model.Run(2 * time.Second)
	was, movers := map[string]string{}, map[string]*lnet.Mover{}
	for _, n := range s.model.Nodes {
		if n.Role != model.Router {
			was[n.Name], movers[n.Name] = rowsOf(s, n.Name), moverOf(s, n.Name, "")
		}
	}
	order := func(what string, routers ...string) {
		begun := time.Now()
		var wg sync.WaitGroup
		for name, m := range movers {
			wg.Go(func() {
				o := avoid()
				if len(routers) > 0 {
					o = avoid("rtr2")
				}
				if _, err := m.Avoid(t.Context(), o); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		t.Logf("%d nodes %s in %s", len(movers), what, time.Since(begun).Round(time.Millisecond))
	}
	before := shares(s, 2*time.Second)["rtr2"]
	order("avoid a router", "rtr2")
	s.model.Run(s.model.Now() + time.Second)
	if got := shares(s, 2*time.Second)["rtr2"]; got > 0.001 || before < 0.03 {
		t.Errorf("%.4f of the bytes cross the drained router, %.4f before", got, before)
	}
	order("have their routes back")
	for name, rows := range was {
		if rowsOf(s, name) != rows {
			t.Errorf("%s has another table than before", name)
		}
	}
}

// TestSoakSeeds: over many seeds and every fault of a router, transit time and bytes move as they must: the sick router
// is the slowest, and after its end the site routes what it did.
func TestSoakSeeds(t *testing.T) {
	soak(t)
	for seed := uint64(100); seed < 150; seed++ {
		for _, f := range []model.Fault{{Kind: model.FaultLink, Node: "rtr3", Value: 0.5},
			{Kind: model.FaultCPU, Node: "rtr3", Value: 0.05}, {Kind: model.FaultLoss, Node: "rtr3", Value: 0.05}} {
			cfg := model.Small(seed)
			cfg.Load = 0.3 + float64(seed%5)*0.1
			s := newSite(t, Options{Model: cfg})
			s.model.Run(5 * time.Second)
			if err := s.model.Break(f); err != nil {
				t.Fatal(err)
			}
			before := map[string]model.Truth{}
			for _, r := range s.model.Of(model.Router) {
				before[r.Name] = r.Truth
			}
			s.model.Run(25 * time.Second)
			worst, most := "", 0.0
			for _, r := range s.model.Of(model.Router) {
				b := before[r.Name]
				if x := float64(r.Truth.Inside-b.Inside) / float64(max(1, r.Truth.Left-b.Left)); x > most {
					worst, most = r.Name, x
				}
			}
			if worst != "rtr3" {
				t.Errorf("seed %d, %s: %s has the longest transit time", seed, f.Kind, worst)
			}
		}
	}
}
