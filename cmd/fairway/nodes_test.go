package main

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

// TestThroughWhomNodesSpeak: the list says it of each node, and the gatherers are a list of their own.
func TestThroughWhomNodesSpeak(t *testing.T) {
	var nodes, gatherers bytes.Buffer
	if err := printNodes(&nodes, []api.NodeRow{
		{ID: "cn1", Way: &api.NodeWay{Gatherer: "rack1", Address: "ws://rack1:7119", LateSeconds: 6.25}},
		{ID: "cn2", Way: &api.NodeWay{LateSeconds: 0.3}}, {ID: "cn3"}}); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[string]string{"cn1": "rack1 6.2", "cn2": "itself 0.3", "cn3": "- -"} {
		found := false
		for line := range strings.Lines(nodes.String()) {
			fields := strings.Fields(line)
			found = found || fields[0] == n && strings.HasSuffix(strings.Join(fields, " "), want)
		}
		if !found {
			t.Errorf("%s does not end with %q:\n%s", n, want, &nodes)
		}
	}
	if err := printGatherers(&gatherers, []api.Gatherer{{Node: "rack1", Remote: "10.0.0.1:999", Nodes: 512,
		LateSeconds: 0.41}}); err != nil || !strings.Contains(gatherers.String(), "rack1") ||
		!strings.Contains(gatherers.String(), "512") || !strings.Contains(gatherers.String(), "0.4") {
		t.Errorf("%v\n%s", err, &gatherers)
	}
}
