package scenariotest

import (
	"math"
	"os"
	"testing"

	"fairway/anomaly/failslow"
	"fairway/anomaly/recorded"
)

// sample is the score over a few layers, closed and open, from a seed on.
func sample(first, few, many int) Score {
	var s Score
	add := func(c *Scenario) {
		events, labels := Play(c, recorded.DefaultSettings())
		s.Add("", labels, events, c.Nodes, epoch, epoch+int64(c.Seconds))
	}
	for seed := first; seed < first+few; seed++ {
		add(DrawLoops(uint64(seed), 80))
		add(DrawSized(uint64(seed), 80, Usual))
	}
	for seed := first; seed < first+many; seed++ {
		add(DrawLoops(uint64(seed), 8))
	}
	return s
}

// TestAblation prints what each threshold is for: recall, precision and false alarms with all of them, and without
// each. FAIRWAY_ABLATION=1 tries all, on layers of FAIRWAY_SEEDS (2) seeds from FAIRWAY_FIRST (201); else a few, on one
// layer.
func TestAblation(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("minutes of simulated forwarders")
	}
	all, few := os.Getenv("FAIRWAY_ABLATION") != "", number("FAIRWAY_SEEDS", 2)
	first, many := number("FAIRWAY_FIRST", 201), 12*few
	if !all {
		few, many = 0, 6
	}
	with := sample(first, few, many)
	t.Logf("%-22s %9s %-16s recall %.3f, delay %d s, false alarms %d", "all rules", "", "", with.Recall(),
		with.Delay(.5),
		with.False)
	for i, r := range failslow.Rules() {
		if !all && i%8 != 0 {
			continue
		}
		if !r.Ablate() {
			continue
		}
		got := sample(first, few, many)
		r.Restore()
		t.Logf("%-22s %9.4g %-16s recall %+.3f, delay %+d s, false alarms %+d: %s", r.Name, r.Value, r.Unit,
			got.Recall()-with.Recall(), got.Delay(.5)-with.Delay(.5), got.False-with.False, r.Why)
		if math.IsNaN(got.Recall()) {
			t.Error(r.Name, "scores nothing")
		}
	}
	if again := sample(first, few, many); again.Recall() != with.Recall() || again.False != with.False {
		t.Error("a rule was not restored")
	}
}
