package scenariotest

import (
	"os"
	"runtime"
	"testing"

	"fairway/anomaly/failslow"
	"fairway/anomaly/recorded"
)

// sample is a few layers, drawn once for all rules: closed loops of 24 and of 8 forwarders, and open ones of each mix.
func sample(first, many int) (out []*Recording) {
	for seed := first; seed < first+many; seed++ {
		out = append(out, Record(DrawLoops(uint64(seed), 24)), Record(DrawLoops(uint64(seed), 8)))
	}
	for i, mix := range []Mix{Usual, Shared, Storms, Dear} {
		if i < many {
			out = append(out, Record(DrawSized(uint64(first), 24, mix)))
		}
	}
	return out
}

// scoreAll is the score over those layers with the rules as they are.
func scoreAll(layers []*Recording) (s Score) {
	for _, r := range layers {
		s.Add("", r.Labels(), r.Play(recorded.DefaultSettings()), r.Scenario.Nodes, epoch,
			epoch+int64(r.Scenario.Seconds))
	}
	return s
}

// TestAblation prints, as a table for the documentation, what each threshold is for: recall, delay and false alarms
// with all of them, and without each. FAIRWAY_ABLATION=1 tries all, on layers of FAIRWAY_SEEDS (6) seeds from
// FAIRWAY_FIRST (2001); else a few, on one.
func TestAblation(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("minutes of simulated forwarders")
	}
	every, many := 1, number("FAIRWAY_SEEDS", 6)
	if os.Getenv("FAIRWAY_ABLATION") == "" {
		every, many = 8, 1
	}
	layers := sample(number("FAIRWAY_FIRST", 2001), many)
	runtime.GC() // of what drawing left
	with := scoreAll(layers)
	t.Logf("%d layers, %d faults, %.1f healthy node-days: recall %.3f, mean delay %.0f s, false alarms %d", len(layers),
		with.Observable, with.NodeDays, with.Recall(), with.MeanDelay(), with.False)
	t.Log("| rule | value | found | mean delay | false alarms | fault time excluded |")
	for i, r := range failslow.Rules() {
		if i%every != 0 || !r.Ablate() {
			continue
		}
		got := scoreAll(layers)
		r.Restore()
		t.Logf("| %s | %.4g %s | %+d | %+.0f s | %+d | %+.3f |", r.Name, r.Value, r.Unit, got.Found-with.Found,
			got.MeanDelay()-with.MeanDelay(), got.False-with.False, got.Coverage()-with.Coverage())
	}
	if again := scoreAll(layers); again.Found != with.Found || again.False != with.False {
		t.Error("a rule was not restored")
	}
}
