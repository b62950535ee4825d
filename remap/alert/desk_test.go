package alert

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/driver"
)

// openDesk opens a desk over the journal in dir, of a machine with one compute node and two forwarders.
func openDesk(t testing.TB, dir string) *desk.Desk {
	t.Helper()
	m := &topology.Machine{Name: "test", Default: topology.Mapping{"cn1": "fwd1"}, Nodes: []topology.Node{
		{ID: "cn1", Role: topology.Compute}, {ID: "fwd1", Role: topology.Forwarder},
		{ID: "fwd2", Role: topology.Forwarder}}}
	d, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: filepath.Join(dir, "journal"),
		Driver: driver.Unassigned{}, Situation: func() *remap.Situation {
			return remap.BuildSituation(remap.SituationParts{At: time.Now(), Machine: m})
		}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// finding is one of a forwarder, as the detectors leave it.
func finding(i int, state anomaly.State, at time.Time) anomaly.Change {
	id := fmt.Sprintf("F-%04d", i)
	return anomaly.Change{At: at, Why: "a test", Finding: anomaly.Finding{ID: id, Node: "fwd1", Kind: anomaly.FailSlow,
		State: state, Since: at, Changed: at, Sentence: id + ": fwd1 is 10x slow at writing: 36 ms, peers 3.5 ms",
		Impact: []anomaly.Impact{{Job: "31", Share: .77}}}}
}

func olga(topology.JobID) string { return "olga" }

// eventually waits for a condition that other processes make true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}
