package plan

import (
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// TestTargetsKeepTheirOrder: the rows are those that the server named, in its order, whatever their load becomes under
// a key that is already on its way; each says why it stands where it does.
func TestTargetsKeepTheirOrder(t *testing.T) {
	p, s := NewProposal("a", "", nil), &screen.State{}
	p.on.Value.Targets = []advise.Target{{Forwarder: "c", Why: "the best of 2: idle"},
		{Forwarder: "b", Why: "busy 9 %"}}
	for _, shown := range [][]topology.ForwarderID{{"a", "b", "c"}, {"d", "c", "b", "a"}} {
		s.Shown.Forwarders, s.Shown.Needs = nil, nil
		for _, id := range shown {
			s.Shown.Forwarders = append(s.Shown.Forwarders, api.ForwarderRow{ID: id})
		}
		order := ""
		for _, r := range p.targets(s) {
			order += string(r.ID) + p.why(r.ID)
		}
		if order != "c c: the best of 2: idle.b b: busy 9 %." {
			t.Errorf("of %v: %q", shown, order)
		}
	}
}

// TestTargetsAreAskedForUntilThereAreSome: a daemon that has just begun knows of no forwarder that is well.
func TestTargetsAreAskedForUntilThereAreSome(t *testing.T) {
	s := &screen.State{Now: time.Unix(1e9, 0)}
	for _, c := range []struct {
		targets []advise.Target
		role    remap.Role
		asks    bool
	}{{nil, remap.Operator, true}, {nil, remap.Viewer, false},
		{[]advise.Target{{Forwarder: "b"}}, remap.Operator, false}} {
		p := NewProposal("a", "", []topology.NodeID{"c1"})
		p.on.Have, p.on.Value.Targets, s.Shown.Role = true, c.targets, string(c.role)
		if asks := p.Refresh(s) != nil; asks != c.asks {
			t.Errorf("%v of the role %s: asked %t", c.targets, c.role, asks)
		}
	}
}
