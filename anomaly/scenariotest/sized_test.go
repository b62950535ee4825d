package scenariotest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
)

// number reads an environment variable; usual where it is not set.
func number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// TestScoreOfSizes plays layers of FAIRWAY_NODES forwarders (8), FAIRWAY_SEEDS (6) of each mix from seed FAIRWAY_FIRST
// (2001) on; FAIRWAY_MIX chooses one of them. At a site of eight most forwarders are hidden behind streaming jobs, now
// and then all of them.
func TestScoreOfSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	nodes, count, first := number("FAIRWAY_NODES", 8), number("FAIRWAY_SEEDS", 6), number("FAIRWAY_FIRST", 2001)
	var all Score
	for _, mix := range []Mix{Usual, Shared, Storms, Dear, Rack} {
		if only := os.Getenv("FAIRWAY_MIX"); only != "" && only != string(mix) || mix == Rack && nodes < 40 {
			continue // most of the layer
		}
		var one Score
		for seed := first; seed < first+count; seed++ {
			s := DrawSized(uint64(seed), nodes, mix)
			events, labels := Play(s, asDaemon())
			name := fmt.Sprintf("%s, seed %d", mix, seed)
			one.Add(name, slices.Clone(labels), slices.Clone(events), nodes, epoch, epoch+int64(s.Seconds))
			all.Add(name, labels, events, nodes, epoch, epoch+int64(s.Seconds))
		}
		t.Logf("%d forwarders, %s: %s", nodes, mix, one.String())
	}
	t.Logf("%d forwarders: %s", nodes, all.String())
	for _, f := range all.FalseAlarms {
		t.Log("false: ", f)
	}
	for _, f := range all.NotFound {
		t.Log("missed:", f)
	}
	if all.Precision() < 0.9 || all.Recall() < 0.8 {
		t.Errorf("precision %.2f, recall %.2f", all.Precision(), all.Recall())
	}
}
