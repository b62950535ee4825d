package effect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"fairway/remap"
	"fairway/remap/effect"
)

const (
	worlds  = 200
	planAt  = 200.0
	lasting = 400
)

// drawn is a world whose size is drawn.
func drawn(r *rand.Rand, seed uint64) *world {
	return newWorld(seed, 8+r.IntN(6), 2+r.IntN(3), 1+r.IntN(3), lasting)
}

// TestShamPlans: plans that move nothing while the load changes, a fault heals, or a job goes over to another phase, at
// any time around the plan. At most 1 % count as helped, of FAIRWAY_SEEDS (200) from seed FAIRWAY_FIRST (0) on.
func TestShamPlans(t *testing.T) {
	kinds := []string{"nothing happens", "the load changes", "a neighbour ends", "a fault heals",
		"the fault of all heals", "a hung forwarder comes back", "the job asks for less", "the job's requests change",
		"the others become slow", "the others' fault heals"}
	verdicts := map[string]map[remap.Verdict]int{}
	helped := 0
	first, _ := strconv.ParseUint(os.Getenv("FAIRWAY_FIRST"), 10, 32)
	for i := range runs(worlds) {
		seed := first + uint64(i)
		r := rand.New(rand.NewPCG(seed, 1))
		w, kind := drawn(r, seed), kinds[i%len(kinds)]
		at := planAt - 60 + 150*r.Float64()
		by := math.Exp((r.Float64() - 0.5) * 2 * math.Log(6))
		everybody := i/len(kinds)%3 == 0
		job := w.nodes[0].job
		for _, n := range w.nodes {
			think := n.think(0)
			switch {
			case kind == "the load changes",
				kind == "a neighbour ends" && n.at == 0 && n.job != job:
				to := think * by
				if kind == "a neighbour ends" {
					to = 1e6
				}
				n.think = from(at, think, to)
			case kind == "the job asks for less" && n.job == job:
				n.think = from(at, think, think*(2+20*r.Float64()))
			case kind == "the job's requests change" && n.job == job:
				n.size = from(at, by, 1)
			}
		}
		switch kind {
		case "a fault heals":
			w.forwarders[0].slow = from(at, 1.5+8*r.Float64(), 1)
		case "the fault of all heals":
			for _, f := range w.forwarders {
				f.slow = from(at, 4, 1)
			}
		case "the others become slow", "the others' fault heals":
			at, by := planAt+10*r.Float64()-5, 2+20*r.Float64()
			if kind == "the others' fault heals" {
				by = 1 / by
			}
			for _, f := range w.forwarders[1:] {
				f.slow = from(at, max(1, 1/by), max(1, by))
			}
		case "a hung forwarder comes back":
			w.forwarders[0].hungFrom, w.forwarders[0].hungTo = at-40, at
		}
		w.run()
		e := measured(t, w, w.ask(planAt, everybody))
		if verdicts[kind] == nil {
			verdicts[kind] = map[remap.Verdict]int{}
		}
		verdicts[kind][e.Verdict]++
		if e.Verdict == remap.Helped || e.Verdict == remap.Worse {
			helped++
			t.Logf("sham %d (%s at %+.0f s, everybody %v): %s (%+v)", i, kind, at-planAt, everybody, e.Text(), e.Gain)
		}
	}
	t.Logf("%d of %d helped: %v", helped, runs(worlds), verdicts)
	if helped > runs(worlds)/100 {
		t.Errorf("%d of %d sham plans count as helped", helped, runs(worlds))
	}
}

// TestTrueGains: plans that take nodes off a forwarder at which requests take 1.5 times as long as where they go. At
// least 90 % of 200 count as helped, and the interval has the truth in 93 to 97 %.
func TestTrueGains(t *testing.T) {
	for _, slow := range []float64{1.7, 4} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			const layouts = 10
			helped, held, n := 0, 0, runs(worlds)
			var sides [layouts][2][2]float64 // requests and their seconds, before and after, by layout
			words := map[remap.Verdict]int{}
			all := make([]*remap.Effect, n)
			for i := range n {
				w := newWorld(uint64(i/layouts*100+i%layouts), 12, 3, 1+i%3, lasting)
				w.forwarders[0].slow = constant(slow)
				a := w.ask(planAt, false)
				w.moveAt = planAt
				w.nodes[0].then = len(w.forwarders) - 1
				w.run()
				for k := 20; k < lasting; k++ {
					to := &sides[i%layouts][0]
					if k > planAt+2 {
						to = &sides[i%layouts][1]
					}
					if k < planAt-2 || k > planAt+2 {
						to[0], to[1] = to[0]+w.nodes[0].ops[k], to[1]+w.nodes[0].took[k]
					}
				}
				all[i] = measured(t, w, a)
				words[all[i].Verdict]++
				if all[i].Verdict == remap.Helped {
					helped++
				}
			}
			truth := 0.0
			for i, e := range all {
				before, after := sides[i%layouts][0], sides[i%layouts][1]
				truth = before[1] / before[0] / (after[1] / after[0])
				if e.Gain != nil && e.Gain.Low <= truth && truth <= e.Gain.High {
					held++
				}
			}
			t.Logf("about %.2f times as fast: %d of %d helped %v, %d intervals hold", truth, helped, n, words, held)
			if 10*helped < 9*n {
				t.Errorf("%.2f times as fast: %d of %d helped", truth, helped, n)
			}
			if n == worlds && (100*held < 93*n || 100*held > 97*n) {
				t.Errorf("%d of %d intervals have the truth; want 93 to 97 %%", held, n)
			}
		})
	}
}

// runs is how many worlds a test draws: all of them with FAIRWAY_LONG, as make prove has it.
func runs(all int) int {
	if n, err := strconv.Atoi(os.Getenv("FAIRWAY_SEEDS")); err == nil {
		return n
	}
	if os.Getenv("FAIRWAY_LONG") == "" {
		return all / 5
	}
	return all
}

func measured(t *testing.T, w *world, a effect.Ask) *remap.Effect {
	t.Helper()
	e, err := effect.Measure(t.Context(), w, a)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
