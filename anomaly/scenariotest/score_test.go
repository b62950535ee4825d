package scenariotest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"fairway/anomaly/recorded"
)

// seeds is how many drawn scenarios are scored; FAIRWAY_SEEDS asks for more.
func seeds(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("FAIRWAY_SEEDS"), 10, 16)
	if err != nil {
		n = 3
		if underRace {
			n = 1
		}
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
		events, labels := Play(s, recorded.DefaultSettings())
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
