package main

import (
	"bytes"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
)

// TestNodeWithoutItsForwarder: a mount that gets no answer has no forwarder, and both commands say so.
func TestNodeWithoutItsForwarder(t *testing.T) {
	n := console.NodeRow{ID: "cn1", Role: topology.Compute, State: remap.ForwarderOK, Forwarder: "fwd3", Generation: 4, Lost: true}
	var list, one bytes.Buffer
	if err := printNodes(&list, []console.NodeRow{n}); err != nil || !strings.Contains(list.String(), "none (fwd3 lost)") {
		t.Errorf("nodes: %v\n%s", err, &list)
	}
	if err := printNode(&one, n); err != nil || !strings.Contains(one.String(), "no forwarder: fwd3 does not answer its mount") || strings.Contains(one.String(), "uses fwd3") {
		t.Errorf("node: %v\n%s", err, &one)
	}
}
