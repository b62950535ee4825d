package incident

import (
	"fmt"
	"testing"

	"fairway/collector/topology"
	"fairway/remap"
)

// A gateway is compared with gateways, its back end with the other back ends by all nodes behind their gateways, and
// a server that is neither with nobody.
func TestBackEndsAreComparedWithBackEnds(t *testing.T) {
	m := &topology.Machine{Nodes: []topology.Node{{ID: "be1", Role: topology.Storage}}}
	load := map[topology.ForwarderID]remap.Load{}
	for f, server := range map[topology.ForwarderID]topology.NodeID{"gw1": "be1", "gw2": "be2", "gw3": "be1"} {
		m.Nodes = append(m.Nodes, topology.Node{ID: f.Node(), Role: topology.Forwarder})
		load[f] = remap.Load{BackEnd: server}
	}
	s := remap.BuildSituation(remap.SituationParts{Machine: m, Load: load})
	s.Used = topology.Mapping{"cn1": "gw1", "cn2": "gw3", "cn3": "gw2"}
	for node, want := range map[topology.NodeID]string{
		"gw1": "map[gw1:[cn1] gw2:[cn3] gw3:[cn2]]", "be1": "map[be1:[cn1 cn2] be2:[cn3]]", "oss1": "map[]"} {
		if got := fmt.Sprint(clients(s, node)); got != want {
			t.Errorf("beside %s: %s, want %s", node, got, want)
		}
	}
}
