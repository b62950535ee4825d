package tsdb_test

import (
	"testing"

	"fairway/collector/topology"
	"fairway/tsdb"
)

// TestMeanOverCountsEachNodesRequests: the lists of nodes need not be alike, nor in one order.
func TestMeanOverCountsEachNodesRequests(t *testing.T) {
	at := func(v float64) []tsdb.Point { return []tsdb.Point{{TimeMillis: 1000, Value: v}} }
	got := tsdb.MeanOver([]tsdb.Series{{Node: "cn1", Points: at(1)}, {Node: "cn2", Points: at(4)},
		{Node: "cn3", Points: at(9)}}, []tsdb.Series{{Node: "cn2", Points: at(2)}, {Node: "cn1", Points: at(1)}},
		func(topology.NodeID) bool { return true })[true]
	if len(got) != 1 || got[1000] != 3 { // cn3 counted nothing
		t.Errorf("the mean is %v, want 3", got)
	}
}
