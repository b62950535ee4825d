package lists

import (
	"bytes"
	"strings"
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestNodeWithoutItsForwarder: a mount that gets no answer has no forwarder, and both commands say so.
func TestNodeWithoutItsForwarder(t *testing.T) {
	n := api.NodeRow{ID: "cn1", Role: topology.Compute, State: remap.ForwarderOK, Forwarder: "fwd3", Generation: 4,
		Lost: true}
	var list, one bytes.Buffer
	if err := printNodes(&list, []api.NodeRow{n}); err != nil ||
		!strings.Contains(list.String(), "none (fwd3 lost)") {
		t.Errorf("nodes: %v\n%s", err, &list)
	}
	sick := []collector.SourceStatus{{Name: "procfs"}, {Name: "mount", Failures: 7, Err: "no answer from fwd3"}}
	if err := printNode(&one, api.NodeView{NodeRow: n, Sources: sick}); err != nil ||
		!strings.Contains(one.String(), "last seen -\n") ||
		!strings.Contains(one.String(), "no forwarder: fwd3 does not answer its mount") ||
		strings.Contains(one.String(), "uses fwd3") ||
		!strings.Contains(one.String(),
			"source mount fails (7 times since the agent's start): no answer from fwd3") ||
		strings.Contains(one.String(), "procfs") {
		t.Errorf("node: %v\n%s", err, &one)
	}
}

// TestHowLateNodesAre: the list says of each node with an agent how late its newest second came.
func TestHowLateNodesAre(t *testing.T) {
	var nodes bytes.Buffer
	rows := []api.NodeRow{{ID: "cn1", Way: &api.NodeWay{LateSeconds: 6.25}}, {ID: "cn3"}}
	if err := printNodes(&nodes, rows); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[string]string{"cn1": "6.2", "cn3": "-"} {
		found := false
		for line := range strings.Lines(nodes.String()) {
			fields := strings.Fields(line)
			found = found || fields[0] == n && fields[len(fields)-1] == want
		}
		if !found {
			t.Errorf("%s does not end with %q:\n%s", n, want, &nodes)
		}
	}
}
