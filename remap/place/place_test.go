package place

import (
	"fmt"
	"testing"

	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Each question about a node has one answer, whatever of the three mappings is known.
func TestWhereANodeIs(t *testing.T) {
	spread := []topology.Share{{Forwarder: "fwd8", Part: 0.5}, {Forwarder: "fwd9", Part: 0.5}}
	for _, c := range []struct {
		name               string
		byDefault          topology.ForwarderID
		route              *window.Route
		promised           topology.ForwarderID
		over, on, homeward string
	}{
		{name: "nothing is known", over: "[]", on: "[]", homeward: "[]"},
		{name: "never seen", byDefault: "fwd1", over: "[{fwd1 1}]", on: "[fwd1]", homeward: "[fwd1]"},
		{name: "seen elsewhere", byDefault: "fwd1", route: &window.Route{Forwarder: "fwd2"}, over: "[{fwd2 1}]",
			on: "[fwd2]", homeward: "[fwd1]"},
		{name: "without a default", route: &window.Route{Forwarder: "fwd2"}, over: "[{fwd2 1}]", on: "[fwd2]",
			homeward: "[fwd2]"},
		{name: "not seen any more", byDefault: "fwd1", route: &window.Route{Forwarder: "fwd2", Stale: true}, over: "[]",
			on: "[fwd1]", homeward: "[fwd1]"},
		{name: "spread", byDefault: "fwd1", route: &window.Route{Shares: spread}, over: "[{fwd8 0.5} {fwd9 0.5}]",
			on: "[fwd8 fwd9]", homeward: "[fwd1]"},
		{name: "on its way", byDefault: "fwd1", route: &window.Route{Forwarder: "fwd2"}, promised: "fwd3",
			over: "[{fwd2 1}]", on: "[fwd3]", homeward: "[fwd1]"},
	} {
		byDefault, promised, routes := topology.Mapping{}, topology.Mapping{}, map[topology.NodeID]window.Route{}
		if c.byDefault != "" {
			byDefault["cn1"] = c.byDefault
		}
		if c.promised != "" {
			promised["cn1"] = c.promised
		}
		if c.route != nil {
			routes["cn1"] = *c.route
		}
		p := New(byDefault, routes, promised)
		got := fmt.Sprint(p.Over("cn1"), p.On("cn1"), p.Home("cn1"))
		if want := fmt.Sprint(c.over, " ", c.on, " ", c.homeward); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}
