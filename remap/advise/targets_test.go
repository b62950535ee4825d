package advise_test

import (
	"fmt"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
)

// Where nodes can go, and why: the least busy first, what a plan fills or a slow back end serves last, and who
// is accused, drained or silent not at all.
func TestTargetsBestFirstWithWhy(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	m := &topology.Machine{}
	load := map[topology.ForwarderID]remap.Load{}
	add := func(id topology.ForwarderID, moves float64, back topology.NodeID) {
		m.Nodes = append(m.Nodes, topology.Node{ID: id.Node(), Role: topology.Forwarder})
		half, none := moves/2, 0.0
		load[id] = remap.Load{LastSeen: now, PeakBytesPerSec: 100, ReadBytesPerSec: &half, WriteBytesPerSec: &half,
			MetaOpsPerSec: &none, BackEnd: back}
	}
	for id, moves := range map[topology.ForwarderID]float64{"slow": 50, "busy": 40, "crowded": 0, "idle": 0,
		"filled": 0, "drained": 0, "accused": 0} {
		add(id, moves, "")
	}
	add("sick", 0, "be1")
	m.Nodes = append(m.Nodes, topology.Node{ID: "silent", Role: topology.Forwarder},
		topology.Node{ID: "blind", Role: topology.Forwarder})
	load["blind"] = remap.Load{LastSeen: now}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m, Load: load,
		Excluded: map[topology.ForwarderID]string{"drained": "new cables"},
		Findings: []anomaly.Finding{
			{ID: "F-1", Node: "accused", Kind: anomaly.FailSlow, State: anomaly.Confirmed},
			{ID: "F-2", Node: "be1", Kind: anomaly.TargetSlow, State: anomaly.Confirmed}}})
	sit.Clients = map[topology.ForwarderID]int{"crowded": 64, "idle": 1}
	got := ""
	for _, target := range advise.Targets(sit, "slow", map[topology.ForwarderID]string{"filled": "P-1"}) {
		got += fmt.Sprintf("%s: %s\n", target.Forwarder, target.Why)
	}
	const want = "idle: the best of 6: idle, serves 1 compute node\n" +
		"crowded: idle, serves 64 compute nodes\n" +
		"busy: busy 40 %, serves 0 compute nodes\n" +
		"blind: its load is not known, serves 0 compute nodes\n" +
		"filled: idle, serves 0 compute nodes, but P-1 sends nodes there\n" +
		"sick: idle, serves 0 compute nodes, but its back end be1 is slow\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
