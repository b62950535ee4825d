package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// TestAnAddressFloats: a client that reports addresses is where the forwarder is that reports them now; an address that
// two forwarders keep reporting, or nobody any more, makes its clients' routes stale; what no forwarder has had is not
// looked at.
func TestAnAddressFloats(t *testing.T) {
	b := NewBoard(0)
	at := func(second int) time.Time { return t0.Add(time.Duration(second) * time.Second) }
	client := func(second int, routes ...collector.Route) {
		for i := range routes {
			routes[i].Client = "cn1"
		}
		b.Take([]collector.Frame{{Node: "cn1", Role: topology.Compute, TimeMillis: at(second - 1).UnixMilli(),
			RoutesComplete: true, Routes: routes}}, at(second))
	}
	has := func(second int, f topology.ForwarderID, addresses ...string) {
		frame := collector.Frame{Node: f.Node(), Role: topology.Forwarder, TimeMillis: at(second - 1).UnixMilli()}
		for _, a := range addresses {
			frame.Routes = append(frame.Routes, collector.Route{Forwarder: f, Address: a})
		}
		b.Take([]collector.Frame{frame}, at(second))
	}
	want := func(second int, text string) {
		t.Helper()
		r, ok := b.Routes(at(second))["cn1"]
		got := fmt.Sprintf("%s by %s", r.Forwarder, r.Address)
		for _, s := range r.Shares {
			got += fmt.Sprintf(" %s:%.2f", s.Forwarder, s.Part)
		}
		if r.Assumed {
			got += " assumed"
		}
		if r.Stale {
			got += " stale"
		}
		if !ok {
			got = ""
		}
		if got != text {
			t.Errorf("second %d: %q, want %q", second, got, text)
		}
	}
	own := collector.Route{Address: "10.2.3.1"}
	home := collector.Route{Address: "10.9.9.9"}
	client(1, own)
	want(1, "")
	has(1, "gw1", "10.2.0.1", "10.2.3.1")
	want(1, "gw1 by 10.2.3.1")
	if since := b.Routes(at(1))["cn1"].Since; !since.Equal(at(1)) {
		t.Errorf("since %s", since)
	}
	if m := b.Learn(topology.Machine{}, at(1)); len(m.Nodes) != 2 {
		t.Errorf("nodes %+v", m.Nodes)
	}
	client(2, own, home)
	has(2, "gw1", "10.2.0.1")
	want(2, "")
	has(2, "gw2", "10.2.0.2", "10.2.3.1")
	want(2, "gw2 by 10.2.3.1")
	if since := b.Routes(at(2))["cn1"].Since; !since.Equal(at(2)) {
		t.Errorf("since %s", since)
	}
	for s := 3; s < 20; s++ {
		client(s, own)
		has(s, "gw2") // its source fails: it says nothing of addresses
	}
	want(12, "gw2 by 10.2.3.1")
	want(13, "gw2 by 10.2.3.1 stale")
	for s := 20; s < 32; s++ { // both report it
		client(s, own)
		has(s, "gw2", "10.2.3.1")
		has(s, "gw3", "10.2.3.1")
		if s == 20 {
			want(s, "gw3 by 10.2.3.1")
		}
	}
	want(31, "gw3 by 10.2.3.1 stale")
	if m := Mapping(b.Routes(at(31))); len(m) != 0 {
		t.Errorf("mapping %v", m)
	}
	has(32, "gw2", "10.2.0.2")
	want(32, "gw3 by 10.2.3.1")

	has(33, "gw2", "10.2.3.2", "10.2.3.3")
	client(33, collector.Route{Address: "10.2.3.1", Share: 0.5, Assumed: true},
		collector.Route{Address: "10.2.3.2", Share: 0.5, Assumed: true})
	want(33, " by  gw2:0.50 gw3:0.50 assumed")
	client(34, collector.Route{Address: "10.2.3.2", Share: 0.2}, collector.Route{Address: "10.2.3.3", Share: 0.8})
	want(34, "gw2 by ")
	if r := b.Routes(at(34))["cn1"]; !slices.Equal(r.Shares, nil) {
		t.Errorf("%+v", r)
	}
	b.Take([]collector.Frame{{Node: "x", TimeMillis: at(4000).UnixMilli()}}, at(4001))
	if n := len(b.tracker.holders); n != 0 {
		t.Errorf("%d addresses are kept for ever", n)
	}
}
