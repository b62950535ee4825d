package scenariotest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// seeds is how many drawn scenarios are scored; FAIRWAY_SEEDS asks for more.
func seeds(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("FAIRWAY_SEEDS"), 10, 16)
	if err != nil {
		n = 3
	}
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	return n
}

func TestScoreOfDrawnLayers(t *testing.T) {
	var total Score
	for seed := range seeds(t) {
		s := Draw(seed + 1)
		events, labels := Play(s, asDaemon())
		total.Add(fmt.Sprintf("seed %d", seed+1), labels, events, s.Nodes, epoch, epoch+int64(s.Seconds))
	}
	t.Log(total.String())
	for _, f := range total.FalseAlarms {
		t.Log("false: ", f)
	}
	for _, f := range total.NotFound {
		t.Log("missed:", f)
	}
	if total.Precision() < 0.9 || total.Recall() < 0.8 {
		t.Errorf("precision %.2f, recall %.2f", total.Precision(), total.Recall())
	}
}

// TestCappedLinkAmongItsJobsForwarders: two links whose caps show only by comparison with the node's own
// past and with the other forwarders of its jobs: under small writes, and while a storage pool is slow.
func TestCappedLinkAmongItsJobsForwarders(t *testing.T) {
	if testing.Short() {
		t.Skip("an hour of simulated forwarders, twice")
	}
	for seed, node := range map[uint64]string{104: "fwd037", 108: "fwd056"} {
		s := Draw(seed)
		events, labels := Play(s, asDaemon())
		var total Score
		total.Add("", labels, events, s.Nodes, epoch, epoch+int64(s.Seconds))
		if len(total.FalseAlarms) > 0 {
			t.Errorf("seed %d: %v", seed, total.FalseAlarms)
		}
		for _, missed := range total.NotFound {
			if strings.Contains(missed, node) {
				t.Errorf("seed %d: not found: %s", seed, missed)
			}
		}
	}
}
