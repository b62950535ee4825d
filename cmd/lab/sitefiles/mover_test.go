package sitefiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node/lnet"
)

// moverOf is the agent's mover on a node of the site.
func moverOf(s *Site, name, journal string) *lnet.Mover {
	n := s.model.Node(name)
	m := &lnet.Mover{Kernel: lnet.Kernel{Net: model.ServerNet, Gateways: map[topology.ForwarderID]string{}},
		Journal: journal}
	side := 0
	if n.Role != model.Client {
		m.Net, side = model.ClientNet, 1
	}
	for _, r := range s.model.Of(model.Router) {
		m.Gateways[topology.ForwarderID(r.Name)] = r.NIs[side].NID
	}
	m.Run = func(ctx context.Context, argv ...string) ([]byte, error) {
		a := s.Lnetctl(name, argv[1:])
		switch {
		case a.Hang:
			<-ctx.Done()
			return nil, ctx.Err()
		case a.Code != 0:
			return nil, fmt.Errorf("%s: exit status %d: %s", strings.Join(argv, " "), a.Code, a.Err)
		}
		return []byte(a.Out), nil
	}
	return m
}

// rowsOf are a node's routes in the order of their text: the kernel's order of equal routes means nothing.
func rowsOf(s *Site, name string) string {
	rows := strings.Split(format.Routes(false, s.model.Node(name).Table.Routes), "\n")
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

func avoid(names ...topology.ForwarderID) wire.AvoidOrder { return wire.AvoidOrder{Forwarders: names} }

// shares are the routers' parts of the bytes that are routed in d.
func shares(s *Site, d time.Duration) map[string]float64 {
	before, all := map[string]uint64{}, 0.0
	for _, r := range s.model.Of(model.Router) {
		before[r.Name] = r.LNet.RoutedBytes
	}
	s.model.Run(s.model.Now() + d)
	out := map[string]float64{}
	for _, r := range s.model.Of(model.Router) {
		out[r.Name] = float64(r.LNet.RoutedBytes - before[r.Name])
		all += out[r.Name]
	}
	for r := range out {
		out[r] /= all
	}
	return out
}

// TestDrainMovesTheTraffic: in every release, once all nodes avoid a router nothing crosses it, and afterwards every
// table is as it was.
func TestDrainMovesTheTraffic(t *testing.T) {
	for _, release := range format.Releases {
		s := newSite(t, Options{Release: release})
		s.model.Run(time.Second)
		was := map[string]string{}
		movers := map[string]*lnet.Mover{}
		for _, n := range s.model.Nodes {
			if n.Role != model.Router {
				was[n.Name], movers[n.Name] = rowsOf(s, n.Name), moverOf(s, n.Name, "")
			}
		}
		for range 2 { // to repeat it changes nothing
			for name, m := range movers {
				if a, err := m.Avoid(t.Context(), avoid("rtr2")); err != nil || len(a.Forwarders) != 1 {
					t.Fatalf("%s of %s: %v, %v", name, release, a, err)
				}
			}
		}
		s.model.Run(s.model.Now() + time.Second)
		if got := shares(s, 5*time.Second)["rtr2"]; got > 0.001 {
			t.Errorf("%s: %.3f of the bytes cross the drained router", release, got)
		}
		for name, m := range movers {
			if a, err := m.Avoid(t.Context(), avoid()); err != nil || len(a.Forwarders) != 0 {
				t.Errorf("%s: %v, %v", name, a, err)
			}
			if got := rowsOf(s, name); got != was[name] {
				t.Errorf("%s of %s: after the roll back\n%s\nbefore\n%s", name, release, got, was[name])
			}
		}
		if got := shares(s, 5*time.Second)["rtr2"]; got < 0.15 {
			t.Errorf("%s: %.3f of the bytes cross the router that was returned", release, got)
		}
	}
}

// TestJobsAreAsFastAfterADrain: with the slow router drained the jobs move at least 95 % of what they did before.
func TestJobsAreAsFastAfterADrain(t *testing.T) {
	s := newSite(t, Options{})
	rate := func() float64 {
		const seconds = 40
		var before, after uint64
		for _, r := range s.model.Of(model.Router) {
			before += r.LNet.RoutedBytes
		}
		s.model.Run(s.model.Now() + seconds*time.Second)
		for _, r := range s.model.Of(model.Router) {
			after += r.LNet.RoutedBytes
		}
		return float64(after-before) / seconds
	}
	s.model.Run(time.Second)
	healthy := rate()
	if err := s.model.Break(model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.1}); err != nil {
		t.Fatal(err)
	}
	sick := rate()
	for _, n := range s.model.Nodes {
		if n.Role == model.Router {
			continue
		}
		if _, err := moverOf(s, n.Name, "").Avoid(t.Context(), avoid("rtr2")); err != nil {
			t.Fatal(err)
		}
	}
	s.model.Run(s.model.Now() + 2*time.Second)
	drained := rate()
	t.Logf("%.0f MB/s, %.0f with the slow router, %.0f without it", healthy/1e6, sick/1e6, drained/1e6)
	if drained < 0.95*healthy || drained < sick {
		t.Errorf("%.0f MB/s, %.0f with the slow router, %.0f without it", healthy/1e6, sick/1e6, drained/1e6)
	}
}

// TestDrainKeepsOut: what cannot be done without a hole is not done, and says why.
func TestDrainKeepsOut(t *testing.T) {
	s := newSite(t, Options{})
	m := moverOf(s, "oss1", "")
	was := rowsOf(s, "oss1")
	refused := func(what string, o wire.AvoidOrder, words string) {
		t.Helper()
		if _, err := m.Avoid(t.Context(), o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", what, err, words)
		}
	}
	refused("all routers", avoid("rtr1", "rtr2", "rtr3", "rtr4"), "no other usable router")
	s.model.Node("oss1").Table.DropAsym = true
	for mode, words := range map[string]string{TrickBusy: "errno: -16", TrickIgnore: "reported success"} {
		if err := s.Trick(Trick{Node: "oss1", Mode: mode, Command: "set drop_asym_route"}); err != nil {
			t.Fatal(err)
		}
		refused("drop_asym_route cannot be changed", avoid("rtr2"), "drop_asym_route is 1")
		refused("drop_asym_route cannot be changed", avoid("rtr2"), words)
		if got := rowsOf(s, "oss1"); got != was || !s.model.Node("oss1").Table.DropAsym {
			t.Errorf("drop_asym_route cannot be changed, and the table is\n%s\nit was\n%s", got, was)
		}
		if err := s.Trick(Trick{}); err != nil {
			t.Fatal(err)
		}
	}
	s.model.Node("oss1").Table.DropAsym = false
	for mode, words := range map[string]string{TrickBusy: "errno: -16", TrickIgnore: "reported success"} {
		if err := s.Trick(Trick{Node: "oss1", Mode: mode, Command: "route add"}); err != nil {
			t.Fatal(err)
		}
		refused(mode, avoid("rtr3"), words)
		if err := s.Trick(Trick{}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Avoid(t.Context(), avoid()); err != nil { // repairs what was cut off
			t.Errorf("%s: %v", mode, err)
		}
		if got := rowsOf(s, "oss1"); got != was {
			t.Errorf("%s: the table is\n%s\nit was\n%s", mode, got, was)
		}
	}
	// Somebody else changes the route meanwhile: it stays theirs.
	if _, err := m.Avoid(t.Context(), avoid("rtr3")); err != nil {
		t.Fatal(err)
	}
	n, gw := s.model.Node("oss1"), s.model.Node("rtr3").NIs[1].NID
	if err := errors.Join(n.DelRoute(model.ClientNet, gw), n.AddRoute(model.ClientNet, gw, -1, 5)); err != nil {
		t.Fatal(err)
	}
	refused("a foreign change", avoid(), "somebody else changed it")
	if !strings.Contains(rowsOf(s, "oss1"), "5      up "+gw) {
		t.Error("the foreign route was changed:\n" + rowsOf(s, "oss1"))
	}
}

// TestDrainSurvivesACrash: an agent that died between two commands finishes at the next order, from its journal.
func TestDrainSurvivesACrash(t *testing.T) {
	s := newSite(t, Options{})
	was := rowsOf(s, "cn1")
	journal := filepath.Join(t.TempDir(), "changes.json")
	m := moverOf(s, "cn1", journal)
	run := m.Run
	ctx, crash := context.WithCancel(t.Context())
	dead := false
	m.Run = func(ctx context.Context, argv ...string) ([]byte, error) {
		if dead {
			return nil, errors.New("killed")
		}
		out, err := run(ctx, argv...)
		if argv[2] == "del" {
			dead = true
			crash()
		}
		return out, err
	}
	if _, err := m.Avoid(ctx, avoid("rtr4")); err == nil {
		t.Fatal("it survived")
	}
	if got := len(s.model.Node("cn1").Table.Routes); got != 3 {
		t.Fatalf("%d routes after the crash", got)
	}
	m = moverOf(s, "cn1", journal)
	if a, err := m.Avoid(t.Context(), avoid("rtr4")); err != nil || len(a.Forwarders) != 1 {
		t.Fatal(a, err)
	}
	m = moverOf(s, "cn1", journal)
	if _, err := m.Avoid(t.Context(), avoid()); err != nil || rowsOf(s, "cn1") != was {
		t.Errorf("%v\n%s", err, rowsOf(s, "cn1"))
	}
	// One that died while the node accepted everything has it drop again what it did.
	s.model.Node("cn1").Table.DropAsym = true
	dead = false
	m = moverOf(s, "cn1", journal)
	m.Run = func(ctx context.Context, argv ...string) ([]byte, error) {
		if dead = dead || argv[2] == "del"; dead {
			return nil, errors.New("killed")
		}
		return run(ctx, argv...)
	}
	if _, err := m.Avoid(t.Context(), avoid("rtr4")); err == nil || s.model.Node("cn1").Table.DropAsym {
		t.Fatal(err, "it survived")
	}
	m = moverOf(s, "cn1", journal)
	if _, err := m.Avoid(t.Context(), avoid()); err != nil || rowsOf(s, "cn1") != was ||
		!s.model.Node("cn1").Table.DropAsym {
		t.Errorf("%v\n%s", err, rowsOf(s, "cn1"))
	}
	if err := os.WriteFile(journal, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := moverOf(s, "cn1", journal).Avoid(t.Context(), avoid()); err == nil ||
		!strings.Contains(err.Error(), "compare it with lnetctl route show") {
		t.Errorf("a damaged journal: %v", err)
	}
}

// TestNothingIsDroppedWhereAsymmetricRoutesAre: where nodes drop what comes over a router that they have no route over,
// a router is drained and returned and a job is steered while messages cross it between any two commands; none is lost,
// and every node drops again what it did.
func TestNothingIsDroppedWhereAsymmetricRoutesAre(t *testing.T) {
	s := newSite(t, Options{})
	s.model.Run(time.Second)
	movers := map[string]*lnet.Mover{}
	for _, n := range s.model.Nodes {
		n.Table.DropAsym = true
		if n.Role == model.Router {
			continue
		}
		m := moverOf(s, n.Name, "")
		run := m.Run
		m.Run = func(ctx context.Context, argv ...string) ([]byte, error) {
			s.model.Run(s.model.Now() + 20*time.Millisecond)
			return run(ctx, argv...)
		}
		movers[n.Name] = m
	}
	dropped := func() (n uint32) {
		for _, node := range s.model.Nodes {
			n += node.LNet.Dropped
		}
		return n
	}
	before, was := dropped(), rowsOf(s, "cn1")
	drain := func(routers ...topology.ForwarderID) {
		t.Helper()
		for name, m := range movers {
			if a, err := m.Avoid(t.Context(), avoid(routers...)); err != nil || !slices.Equal(a.Forwarders, routers) {
				t.Fatalf("%s: %v, %v", name, a, err)
			}
			if !s.model.Node(name).Table.DropAsym {
				t.Errorf("%s accepts everything now", name)
			}
		}
		s.model.Run(s.model.Now() + time.Second)
	}
	drain("rtr2")
	if got := shares(s, 5*time.Second)["rtr2"]; got > 0.001 {
		t.Errorf("%.3f of the bytes cross the drained router", got)
	}
	drain([]topology.ForwarderID{}...)
	if now := rowsOf(s, "cn1"); now != was {
		t.Errorf("routes of cn1 are\n%s\nthey were\n%s", now, was)
	}
	if n := dropped() - before; n != 0 {
		t.Errorf("the drain dropped %d messages", n)
	}
	client, to := moverOf(s, "cn1", ""), s.model.Node("cn1").NID()
	for _, server := range []string{"oss1", "oss2", "mds1"} {
		order := wire.SteerOrder{To: []string{to}, Forwarder: "rtr3"}
		if err := moverOf(s, server, "").Steer(t.Context(), order); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := client.Move(t.Context(), wire.RemapOrder{Node: "cn1", Forwarder: "rtr3"}); err != nil ||
		a.Forwarder != "rtr3" || len(s.model.Node("cn1").Table.Rules) != 1 {
		t.Errorf("%+v, %v; rules %+v", a, err, s.model.Node("cn1").Table.Rules)
	}
	s.model.Run(s.model.Now() + 5*time.Second)
	all := []topology.ForwarderID{"rtr1", "rtr2", "rtr3", "rtr4"}
	if a, err := client.Spread(t.Context(), all); err != nil || !slices.Equal(a.Spread, all) ||
		len(s.model.Node("cn1").Table.Rules) != 0 {
		t.Errorf("back: %+v, %v; rules %+v", a, err, s.model.Node("cn1").Table.Rules)
	}
	if now := rowsOf(s, "cn1"); now != was {
		t.Errorf("routes of cn1 are\n%s\nthey were\n%s", now, was)
	}
	if n := dropped() - before; n != 0 {
		t.Errorf("%d messages were dropped", n)
	}
}

// TestARuleThatCameTooLateIsOurs: an order that ran out of time while lnetctl added its rule is given again, finds the
// rule and takes it for its own.
func TestARuleThatCameTooLateIsOurs(t *testing.T) {
	s := newSite(t, Options{})
	s.model.Node("cn1").Table.DropAsym = true
	m := moverOf(s, "cn1", "")
	run := m.Run
	ctx, end := context.WithCancel(t.Context())
	m.Run = func(c context.Context, argv ...string) ([]byte, error) {
		out, err := run(c, argv...)
		if slices.Contains(argv, "udsp") && slices.Contains(argv, "add") {
			end()
			return nil, errors.New("killed")
		}
		return out, err
	}
	to := wire.RemapOrder{Node: "cn1", Forwarder: "rtr3"}
	if _, err := m.Move(ctx, to); err == nil {
		t.Fatal("an order whose time is over was carried out")
	}
	m.Run = run
	if a, err := m.Move(t.Context(), to); err != nil || a.Forwarder != "rtr3" ||
		len(s.model.Node("cn1").Table.Rules) != 1 {
		t.Errorf("%+v, %v; rules %+v", a, err, s.model.Node("cn1").Table.Rules)
	}
}

// TestSteer: a client's data crosses one router once the servers prefer it for the client, and by the traffic at the
// routers that can be seen; a lie of lnetctl shows there too.
func TestSteer(t *testing.T) {
	for _, discovery := range []bool{false, true} {
		cfg := model.Small(11)
		cfg.Discovery = discovery
		s := newSite(t, Options{Model: cfg})
		s.model.Run(time.Second)
		client := s.model.Node("cn1").NID()
		traffic := func() map[string]wire.PeerTraffic {
			out := map[string]wire.PeerTraffic{}
			for _, r := range s.model.Of(model.Router) {
				a, err := moverOf(s, r.Name, "").Traffic(t.Context(), wire.TrafficOrder{NIDs: []string{client}})
				if err != nil {
					t.Fatal(err)
				}
				out[r.Name] = a.Peers[client]
			}
			return out
		}
		share := func() (data, requests float64) {
			before := traffic()
			s.model.Run(s.model.Now() + 5*time.Second)
			var allData, allRequests uint64
			after := traffic()
			for r, a := range after {
				allData += a.Data - before[r].Data
				allRequests += a.Requests - before[r].Requests
			}
			return float64(after["rtr3"].Data-before["rtr3"].Data) / float64(allData),
				float64(after["rtr3"].Requests-before["rtr3"].Requests) / float64(allRequests)
		}
		movers := map[string]*lnet.Mover{}
		for _, n := range s.model.Nodes {
			if n.Role != model.Router {
				movers[n.Name] = moverOf(s, n.Name, "")
			}
		}
		look, err := movers["cn1"].Look(t.Context())
		if err != nil || !look.Rules || !slices.Equal(look.NIDs, []string{client}) {
			t.Fatalf("%+v, %v", look, err)
		}
		servers := []string{"oss1", "oss2", "mds1"}
		if err := movers["cn1"].Steer(t.Context(),
			wire.SteerOrder{To: []string{look.Net}, Forwarder: "rtr3"}); err != nil {
			t.Fatal(err)
		}
		s.model.Run(s.model.Now() + time.Second)
		if data, requests := share(); requests < 0.99 || data > 0.5 {
			t.Errorf("the client alone: %.2f of the data and %.2f of the requests are on rtr3", data, requests)
		}
		for _, o := range servers {
			if err := movers[o].Steer(t.Context(), wire.SteerOrder{To: look.NIDs, Forwarder: "rtr3"}); err != nil {
				t.Fatal(err)
			}
		}
		s.model.Run(s.model.Now() + time.Second)
		if data, requests := share(); requests < 0.99 || data < 0.99 {
			t.Errorf("both ends: %.2f of the data and %.2f of the requests are on rtr3", data, requests)
		}
		for name, m := range movers {
			to := look.NIDs
			if !slices.Contains(servers, name) {
				to = []string{look.Net}
			}
			if err := m.Steer(t.Context(), wire.SteerOrder{To: to}); err != nil {
				t.Fatal(err)
			}
			if n := len(s.model.Node(name).Table.Rules); n != 0 {
				t.Errorf("%s has %d rules after the roll back", name, n)
			}
		}
		if data, _ := share(); data > 0.6 {
			t.Errorf("after the roll back %.2f of the data are on rtr3", data)
		}
	}
}

// TestSteerLeavesForeignRulesAlone: a destination that somebody else's rule covers is refused, and nothing changes.
func TestSteerLeavesForeignRulesAlone(t *testing.T) {
	s := newSite(t, Options{})
	n := s.model.Node("oss1")
	foreign := []model.Rule{{Dst: "10.0.0.[1-4]@tcp", Rte: s.model.Node("rtr1").NIs[1].NID}}
	if err := n.AddRule(foreign[0], -1); err != nil {
		t.Fatal(err)
	}
	m := moverOf(s, "oss1", "")
	err := m.Steer(t.Context(), wire.SteerOrder{To: []string{"10.0.0.2@tcp"}, Forwarder: "rtr3"})
	if err == nil || !strings.Contains(err.Error(), "somebody else's") || !slices.Equal(n.Table.Rules, foreign) {
		t.Errorf("%v, rules %+v", err, n.Table.Rules)
	}
	old := newSite(t, Options{Release: 12})
	err = moverOf(old, "oss1", "").Steer(t.Context(), wire.SteerOrder{To: []string{"10.0.0.2@tcp"}, Forwarder: "rtr3"})
	if err == nil || !strings.Contains(err.Error(), "2.15") {
		t.Error(err)
	}
}
