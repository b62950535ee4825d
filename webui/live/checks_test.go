package live

import (
	"strings"
	"testing"

	"fairway/collector/observed"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
)

func TestMappingCheck(t *testing.T) {
	machine := &topology.Machine{Nodes: []topology.Node{{ID: "cn1", Role: topology.Compute}, {ID: "cn2", Role: topology.Compute}}}
	well := observed.Route{Forwarder: "fwd1"}
	for _, c := range []struct {
		name  string
		cn1   observed.Route
		level console.CheckLevel
		says  string
	}{
		{"well", well, console.CheckOK, "every one of 2"},
		{"stale", observed.Route{Forwarder: "fwd1", Stale: true}, console.CheckWarned, "1 of 2 compute nodes' forwarders are not observed: cn1"},
		{"lost", observed.Route{Forwarder: "fwd1", Lost: true}, console.CheckFailed, "1 of 2 compute nodes have no forwarder, theirs does not answer: cn1"},
	} {
		s := &Snapshot{Machine: machine, Situation: &remap.Situation{Routes: map[topology.NodeID]observed.Route{"cn1": c.cn1, "cn2": well}}}
		if got := mappingCheck(s); got.Level != c.level || !strings.Contains(got.Text, c.says) || (got.Level != console.CheckOK) != (got.Fix != "") {
			t.Errorf("%s: %+v, want %s with %q", c.name, got, c.level, c.says)
		}
	}
}
