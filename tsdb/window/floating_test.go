package window

import (
	"fmt"
	"slices"
	"sync"
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
			want(s, "gw2 by 10.2.3.1")
		}
	}
	want(31, "gw2 by 10.2.3.1 stale")
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
	if n := len(b.tracker.holders) + len(b.tracker.held); n != 0 {
		t.Errorf("%d addresses are kept for ever", n)
	}
}

// TestAClaimedAddressIsNotStolen: a forwarder that says that it has another one's address does not get that one's
// clients, however often it says so, and hides them only as long as it goes on saying so.
func TestAClaimedAddressIsNotStolen(t *testing.T) {
	b := NewBoard(0)
	at := func(second int) time.Time { return t0.Add(time.Duration(second) * time.Second) }
	says := func(second int, f topology.ForwarderID, addresses ...string) {
		frame := collector.Frame{Node: f.Node(), Role: topology.Forwarder, TimeMillis: at(second - 1).UnixMilli()}
		for _, a := range addresses {
			frame.Routes = append(frame.Routes, collector.Route{Forwarder: f, Address: a})
		}
		b.Take([]collector.Frame{frame}, at(second))
	}
	route := func(second int) Route {
		t.Helper()
		says(second, "gw1", "10.2.3.1")
		b.Take([]collector.Frame{{Node: "cn1", Role: topology.Compute, TimeMillis: at(second - 1).UnixMilli(),
			Routes: []collector.Route{{Client: "cn1", Address: "10.2.3.1"}}}}, at(second))
		return b.Routes(at(second))["cn1"]
	}
	route(1)
	for s := 2; s < 40; s++ { // now and then
		if says(s, "evil", "10.9.9.9"); s%2 == 0 {
			says(s, "evil", "10.9.9.9", "10.2.3.1")
		}
		if r := route(s); r.Forwarder != "gw1" || r.Stale {
			t.Fatalf("second %d: %+v", s, r)
		}
	}
	hidden := 0
	for s := 40; s < 90; s++ {
		if s < 60 { // all the time, and then its agent ends
			says(s, "evil", "10.2.3.1")
		}
		r := route(s)
		if r.Forwarder != "gw1" {
			t.Fatalf("second %d: %+v", s, r)
		}
		if r.Stale {
			hidden++
		}
	}
	if hidden < 10 || hidden > 20 {
		t.Errorf("its clients were hidden for %d s of the 20 in which another one had the address, too", hidden)
	}
}

// TestRoutesOfBothKinds: what a node says of forwarders beside addresses is not changed by those who read its routes,
// who are several at a time.
func TestRoutesOfBothKinds(t *testing.T) {
	b := NewBoard(0)
	frame := collector.Frame{Node: "cn1", Role: topology.Compute, TimeMillis: t0.Add(-time.Second).UnixMilli()}
	for _, f := range []topology.ForwarderID{"x", "y", "z"} {
		frame.Routes = append(frame.Routes, collector.Route{Client: "cn1", Forwarder: f, Share: 0.3})
	}
	for n := range 2 * maxVias {
		frame.Routes = append(frame.Routes, collector.Route{Client: "cn1", Share: 0.1,
			Address: fmt.Sprint("10.2.3.", n)})
	}
	b.Take([]collector.Frame{frame}, t0)
	for n := range 2 {
		f := topology.ForwarderID(fmt.Sprint("gw", n))
		b.Take([]collector.Frame{{Node: f.Node(), Role: topology.Forwarder, TimeMillis: t0.UnixMilli(),
			Routes: []collector.Route{{Forwarder: f, Address: fmt.Sprint("10.2.3.", n)}}}}, t0)
	}
	if n := len(b.tracker.nodes["cn1"].mount.vias); n != maxVias {
		t.Errorf("%d addresses of one client are looked up", n)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 100 {
				if r := b.Routes(t0)["cn1"]; !slices.Equal(r.Shares, []topology.Share{{Forwarder: "gw0", Part: 0.5},
					{Forwarder: "gw1", Part: 0.5}}) {
					t.Errorf("%+v", r)
					return
				}
			}
		})
	}
	readers.Wait()
}
