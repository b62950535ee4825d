package daemontest

import (
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestMountWithoutItsForwarder kills the forwarder under a real mount: the agent goes on and names
// both, the node has no forwarder, its neighbours do, and it can still be moved off the dead one.
func TestMountWithoutItsForwarder(t *testing.T) {
	t.Parallel() // it mostly waits
	tb, d := newRealLayer(t, testbed.Config{})
	wantObserved(t, d, topology.Mapping{"cn000": "fwd000", "cn001": "fwd000", "cn002": "fwd001", "cn003": "fwd001"})
	wantNode(t, d, "cn000", func(n api.NodeView) bool { return !n.Lost && n.Forwarder == "fwd000" })
	if err := tb.Inject(t.Context(), testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}); err != nil {
		t.Fatal(err)
	}
	lost := wantNode(t, d, "cn000", func(n api.NodeView) bool { return n.Lost })
	if lost.Forwarder != "fwd000" || lost.Values["read_bytes"]+lost.Values["write_bytes"] != 0 {
		t.Errorf("without its forwarder the node shows %+v", lost.NodeRow)
	}
	wantNode(t, d, "cn000", func(n api.NodeView) bool {
		for _, s := range n.Sources {
			if s.Name == "mount" && strings.Contains(s.Err, "/pfs") && strings.Contains(s.Err, "fwd000 at ") {
				return n.LastSeen.After(lost.LastSeen.Add(2 * time.Second))
			}
		}
		return false
	})
	wantNode(t, d, "cn002", func(n api.NodeView) bool {
		return !n.Lost && n.Forwarder == "fwd001" && n.State == remap.ForwarderOK
	})

	v := decide(t, d, "", api.ManualRemap{Nodes: []topology.NodeID{"cn000"}, To: "fwd001", Force: true,
		Reason: "its forwarder is dead"})
	if v.MayApprove != "" {
		t.Fatalf("the plan cannot be approved: %s; checks %+v", v.MayApprove, v.Checks)
	}
	decide(t, d, v.ID+"/approve", api.Decision{PreviewHash: v.PreviewHash, Reason: "its forwarder is dead"})
	wantPlan(t, d, v.ID, remap.Verified)
	wantNode(t, d, "cn000", func(n api.NodeView) bool { return !n.Lost && n.Forwarder == "fwd001" })
	if out, err := tb.Exec(t.Context(), "cn000", "sh", "-c", "echo back > /pfs/back; cat /pfs/back"); err != nil ||
		!strings.Contains(string(out), "back") {
		t.Errorf("after the move: %s, %v", out, err)
	}
}

// wantNode waits until a node's view is as wanted.
func wantNode(t *testing.T, d *realDaemon, id string, want func(api.NodeView) bool) api.NodeView {
	t.Helper()
	for end := time.Now().Add(aWhile); ; time.Sleep(100 * time.Millisecond) {
		var n api.NodeView
		if err := d.ask("/api/v1/nodes/"+id, "", nil, &n); err == nil && want(n) {
			return n
		}
		if time.Now().After(end) {
			t.Fatalf("node %s stays %+v", id, n)
		}
	}
}
