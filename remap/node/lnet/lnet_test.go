package lnet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/node"
)

var update = flag.Bool("update", false, "rewrite golden files")

var gateways = map[topology.ForwarderID]string{"fwd1": "10.0.0.1@tcp", "fwd2": "10.0.0.2@tcp", "fwd3": "10.0.0.3@tcp"}

// kernel is one node's LNet behind an lnetctl.
type kernel struct {
	mu     sync.Mutex // guards everything that follows
	routes []route
	orders []string // every command that changes something
	refuse string   // commands with this word fail
}

func (k *kernel) lnetctl(ctx context.Context, argv ...string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := strings.Join(argv, " ")
	flags := map[string]string{}
	for i := 3; i+1 < len(argv); i++ {
		flags[argv[i]] = argv[i+1]
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case line == "lnetctl global show":
		return []byte("global:\n    drop_asym_route: 0\n"), nil
	case argv[0] != "lnetctl" || argv[1] != "route" || flags["--net"] != "o2ib1":
		return nil, fmt.Errorf("%s: no such command", line)
	case k.refuse != "" && strings.Contains(line, k.refuse):
		return nil, fmt.Errorf("%s: exit status 1: add: - route: errno: -22", line)
	case argv[2] == "show":
		text := "route:\n"
		for _, r := range k.routes {
			text += fmt.Sprintf(
				"    - net: o2ib1\n      gateway: %s\n      hop: -1\n      priority: %d\n      health_sensitivity: "+
					"1\n      state: up\n      type: single-hop\n", r.gateway, r.priority)
		}
		return []byte(text), nil
	}
	k.orders = append(k.orders, line)
	at := -1
	for i, r := range k.routes {
		if r.gateway == flags["--gateway"] {
			at = i
		}
	}
	switch argv[2] {
	case "add":
		if at >= 0 {
			return nil, errors.New("errno: -17") // EEXIST
		}
		r := route{gateway: flags["--gateway"]}
		_, err := fmt.Sscan(flags["--priority"], &r.priority)
		k.routes = append(k.routes, r)
		return nil, err
	case "del":
		if at < 0 {
			return nil, errors.New("errno: -2") // ENOENT
		}
		k.routes = append(k.routes[:at:at], k.routes[at+1:]...)
	}
	return nil, nil
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		kernels, handlers := map[topology.NodeID]*kernel{}, map[topology.NodeID]map[string]stream.OrderHandler{}
		var moves []remap.Move
		for i := range 12 {
			n := topology.NodeID(fmt.Sprintf("cn%d", i))
			kernels[n] = &kernel{routes: []route{{gateway: gateways["fwd1"]}}}
			handlers[n] = node.Handlers(&Mover{Kernel: Kernel{"o2ib1", gateways, kernels[n].lnetctl}}, true)
			moves = append(moves, remap.Move{Node: n, From: "fwd1", To: "fwd2"})
		}
		agents := drivertest.NewAgents(handlers)
		addr := func(f topology.ForwarderID) (string, bool) { a, ok := gateways[f]; return a, ok }
		return drivertest.Subject{
			Driver: agent.New(agents, addr, driver.Fan{Parallel: 8, Tries: 2, Backoff: time.Millisecond,
				Timeout: 5 * time.Second}),
			Moves: moves,
			At: func(t *testing.T) topology.Mapping {
				at := topology.Mapping{}
				for n, k := range kernels {
					best := used(k.routes)
					if len(best) != 1 {
						t.Errorf("%s has routes %+v", n, k.routes)
					}
					at[n], _ = node.ByAddress(gateways, best[0].gateway)
				}
				return at
			},
			Changes: func() (n int) {
				for _, k := range kernels {
					n += len(k.orders)
				}
				return n
			},
			Break: agents.Break, Mend: agents.Mend, Hang: agents.Hang,
		}
	})
}

// TestCommands is the golden text of what the kernel gets.
func TestCommands(t *testing.T) {
	var text strings.Builder
	for _, c := range []struct {
		name   string
		routes []route
		to     topology.ForwarderID
		refuse string
	}{
		{"from one router to another", []route{{gateway: gateways["fwd1"]}}, "fwd2", ""},
		{"already there", []route{{gateway: gateways["fwd2"]}}, "fwd2", ""},
		{"no route yet", nil, "fwd1", ""},
		{"there at a lower priority, among others",
			[]route{{gateway: gateways["fwd1"]}, {gateway: gateways["fwd2"], priority: 10},
				{gateway: gateways["fwd3"], priority: 10}}, "fwd2", ""},
		{"a router that is not ours stays", []route{{gateway: "10.9.9.9@tcp"}, {gateway: gateways["fwd1"]}}, "fwd2",
			""},
		{"the new route is refused", []route{{gateway: gateways["fwd1"]}}, "fwd2", "add"},
		{"one of several alike", []route{{gateway: gateways["fwd1"]}, {gateway: gateways["fwd2"]},
			{gateway: gateways["fwd3"]}}, "fwd2", ""},
		{"the old route is refused to go", []route{{gateway: gateways["fwd1"]}}, "fwd2", "del"},
		{"an unknown forwarder", []route{{gateway: gateways["fwd1"]}}, "fwd9", ""},
	} {
		k := &kernel{routes: c.routes, refuse: c.refuse}
		m := &Mover{Kernel: Kernel{"o2ib1", gateways, k.lnetctl}}
		_, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: c.to, Addr: "-"})
		fmt.Fprintf(&text, "# %s\n%s", c.name, strings.Join(append(k.orders, ""), "\n"))
		if err != nil {
			fmt.Fprintln(&text, "error:", err)
		}
		for _, r := range k.routes {
			fmt.Fprintf(&text, "=> %s priority %d\n", r.gateway, r.priority)
		}
		fmt.Fprintln(&text)
	}
	golden := filepath.Join("testdata", "commands.txt")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755),
			os.WriteFile(golden, []byte(text.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != text.String() {
		t.Errorf("%v; it says\n%s", err, text.String())
	}
}

// TestTheWayBack: a node that spread over several routers does so again after a move there and back, one with a single
// route has that one, and every table is as it was; a new mover goes on with what the journal of the old one says.
func TestTheWayBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []route
		from   []topology.ForwarderID
	}{
		{"spread", []route{{gateway: gateways["fwd1"]}, {gateway: gateways["fwd2"]}, {gateway: gateways["fwd3"]}},
			[]topology.ForwarderID{"fwd1", "fwd2", "fwd3"}},
		{"two of three", []route{{gateway: gateways["fwd1"]}, {gateway: gateways["fwd2"], priority: 7},
			{gateway: gateways["fwd3"]}}, []topology.ForwarderID{"fwd1", "fwd3"}},
		{"one", []route{{gateway: gateways["fwd1"], priority: 3}}, []topology.ForwarderID{"fwd1"}},
	} {
		k := &kernel{routes: slices.Clone(c.routes)}
		journal := filepath.Join(t.TempDir(), "lnet-changes.json")
		mover := func() *Mover { return &Mover{Kernel: Kernel{"o2ib1", gateways, k.lnetctl}, Journal: journal} }
		if a, err := mover().Move(t.Context(), wire.RemapOrder{Forwarder: "fwd2"}); err != nil ||
			a.Forwarder != "fwd2" {
			t.Fatalf("%s: moved: %+v, %v", c.name, a, err)
		}
		// A drain in between is of others, and its end leaves the node where it was moved to.
		for _, o := range [][]topology.ForwarderID{{"fwd3"}, nil} {
			if _, err := mover().Avoid(t.Context(), wire.AvoidOrder{Forwarders: o}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if a, err := mover().Route(t.Context()); err != nil || a.Forwarder != "fwd2" {
			t.Errorf("%s: after a drain: %+v, %v", c.name, a, err)
		}
		var err error
		if len(c.from) > 1 {
			_, err = mover().Spread(t.Context(), c.from)
		} else {
			_, err = mover().Move(t.Context(), wire.RemapOrder{Forwarder: c.from[0]})
		}
		byGateway := func(a, b route) int { return strings.Compare(a.gateway, b.gateway) }
		slices.SortFunc(k.routes, byGateway)
		if err != nil || !slices.Equal(k.routes, c.routes) {
			t.Errorf("%s: there and back: %+v, were %+v; %v", c.name, k.routes, c.routes, err)
		}
	}
}

// TestEqualRoutesAreAVector: a node that may use several routers alike reports them all.
func TestEqualRoutesAreAVector(t *testing.T) {
	k := &kernel{routes: []route{{gateway: gateways["fwd3"]}, {gateway: gateways["fwd1"]},
		{gateway: gateways["fwd2"], priority: 1}}}
	r := collector.Reading{}
	m := &Mover{Kernel: Kernel{"o2ib1", gateways, k.lnetctl}}
	if err := node.NewSource("lnet", "cn1", m).Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	want := []collector.Route{{Client: "cn1", Forwarder: "fwd1", Share: 0.5, Assumed: true},
		{Client: "cn1", Forwarder: "fwd3", Share: 0.5, Assumed: true}}
	if !slices.Equal(r.Routes, want) || !r.RoutesComplete {
		t.Errorf("%+v", r.Routes)
	}
}

func TestRouteChoosesAsLNetDoes(t *testing.T) {
	for text, want := range map[string]string{
		"route:\n    - net: o2ib1\n      gateway: 10.0.0.1@tcp\n      priority: 5\n    - net: o2ib1\n      gateway: " +
			"10.0.0.2@tcp\n      priority: 1\n": "fwd2",
		"route:\n    - net: o2ib1\n      gateway: 10.0.0.1@tcp\n      priority: 0\n      state: down\n    - net: " +
			"o2ib1\n      gateway: 10.0.0.2@tcp\n      priority: 9\n      state: up\n": "fwd2",
		"route:\n    - net: o2ib1\n      gateway: 10.9.9.9@tcp\n": "",
		"": "",
	} {
		m := &Mover{Kernel: Kernel{"o2ib1", gateways, func(context.Context, ...string) ([]byte, error) {
			return []byte(text), nil
		}}}
		a, err := m.Route(t.Context())
		if string(a.Forwarder) != want || (want == "") != errors.Is(err, node.ErrNoRoute) {
			t.Errorf("%q: %s, %v", text, a.Forwarder, err)
		}
	}
}
