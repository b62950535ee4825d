package ces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/tsdb/window"
)

// cluster is protocol nodes fwd1 and fwd2, and clients with the address that each mounts.
type cluster struct {
	mu      sync.Mutex // guards everything that follows
	mounts  map[topology.NodeID]string
	table   map[string]topology.ForwarderID
	kernels map[string]topology.ForwarderID // what is so; table is what mmces says
	lies    bool
	changes int
	broken  map[string]bool
	hung    map[string]chan struct{}
	rate    map[topology.NodeID]float64 // bytes a second; 4,096 to an operation
	// metadata says that these operations are of metadata, and move nothing.
	metadata bool
	policy   string
	flags    map[topology.ForwarderID]string
	resumed  func() // what the system does when a node takes addresses again
	refuses  string // to suspend or to end it
}

func newCluster(clients, addresses int) *cluster {
	c := &cluster{mounts: map[topology.NodeID]string{}, table: map[string]topology.ForwarderID{},
		kernels: map[string]topology.ForwarderID{}, broken: map[string]bool{}, hung: map[string]chan struct{}{},
		rate: map[topology.NodeID]float64{"fwd1": 1e12, "fwd2": 1e12}, policy: "even-coverage"}
	for i := range clients {
		a := fmt.Sprintf("10.2.3.%d", i%addresses+1)
		n := topology.NodeID(fmt.Sprintf("cn%d", i+1))
		c.mounts[n], c.table[a], c.kernels[a], c.rate[n] = a, "fwd1", "fwd1", 1e8
	}
	return c
}

func (c *cluster) locked(do func()) { c.mu.Lock(); defer c.mu.Unlock(); do() }

func (c *cluster) handlers() map[string]stream.OrderHandler {
	answer := func() (json.RawMessage, error) {
		return json.Marshal(wire.AddressesAnswer{At: c.table, Policy: c.policy, Flags: c.flags})
	}
	return map[string]stream.OrderHandler{
		wire.OrderAddresses: func(context.Context, wire.Order) (json.RawMessage, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return answer()
		},
		wire.OrderMoveAddress: func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
			var m wire.MoveAddressOrder
			if err := json.Unmarshal(o.Body, &m); err != nil {
				return nil, err
			}
			c.mu.Lock()
			hung := c.hung[m.Address]
			c.mu.Unlock()
			if hung != nil {
				select {
				case <-hung:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.broken[m.Address] {
				return nil, fmt.Errorf("mmces: %s: locked", m.Address)
			}
			if c.table[m.Address] != m.Forwarder {
				c.changes++
			}
			if c.table[m.Address] = m.Forwarder; !c.lies {
				c.kernels[m.Address] = m.Forwarder
			}
			return answer()
		},
		wire.OrderSuspend: func(_ context.Context, o wire.Order) (json.RawMessage, error) {
			var m wire.SuspendOrder
			if err := json.Unmarshal(o.Body, &m); err != nil {
				return nil, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.refuses != "" {
				return nil, errors.New(c.refuses)
			}
			if c.flags[m.Forwarder] = ""; m.Suspended {
				c.flags[m.Forwarder] = wire.Suspended
			} else if c.resumed != nil {
				c.resumed()
			}
			return answer()
		}}
}

// driver is one over the cluster. Every look at a node shows a second that has just begun.
func (c *cluster) driver(connected ...topology.NodeID) *Driver {
	nodes := map[topology.NodeID]map[string]stream.OrderHandler{}
	for _, n := range connected {
		nodes[n] = c.handlers()
	}
	return New(Config{Agents: drivertest.NewAgents(nodes),
		Fan: driver.Fan{Parallel: 8, Tries: 2, Backoff: time.Millisecond, Timeout: 5 * time.Second},
		Routes: func() map[topology.NodeID]window.Route {
			c.mu.Lock()
			defer c.mu.Unlock()
			out := map[topology.NodeID]window.Route{}
			for n, a := range c.mounts {
				out[n] = window.Route{Forwarder: c.kernels[a], Address: a}
			}
			return out
		},
		Forwarders: func() []topology.NodeID { return []topology.NodeID{"fwd1", "fwd2"} },
		Frame: func(n topology.NodeID) (collector.Frame, bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return collector.Frame{Node: n, TimeMillis: time.Now().Truncate(time.Second).UnixMilli() + 1000,
				Samples: c.samples(n)}, true
		}})
}

// samples are what a node does in a second.
func (c *cluster) samples(n topology.NodeID) []collector.Sample {
	if c.metadata {
		return []collector.Sample{{Metric: collector.MetaOps, Value: c.rate[n] / 4096}}
	}
	return []collector.Sample{{Metric: collector.ReadBytes, Value: c.rate[n]},
		{Metric: collector.ReadOps, Value: c.rate[n] / 4096}}
}

func moves(nodes ...topology.NodeID) (out []remap.Move) {
	for _, n := range nodes {
		out = append(out, remap.Move{Node: n, From: "fwd1", To: "fwd2"})
	}
	return out
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Subject {
		c := newCluster(3, 3)
		return drivertest.Subject{
			Driver: c.driver("fwd1", "fwd2"), Moves: moves("cn1", "cn2", "cn3"),
			At: func(*testing.T) topology.Mapping {
				at := topology.Mapping{}
				c.locked(func() {
					for n, a := range c.mounts {
						at[n] = c.kernels[a]
					}
				})
				return at
			},
			Changes: func() (n int) { c.locked(func() { n = c.changes }); return n },
			Break:   func(_ *testing.T, n topology.NodeID) { c.locked(func() { c.broken[c.mounts[n]] = true }) },
			Hang: func(_ *testing.T, n topology.NodeID) {
				c.locked(func() { c.hung[c.mounts[n]] = make(chan struct{}) })
			},
			Mend: func(_ *testing.T, n topology.NodeID) {
				c.locked(func() {
					if hung := c.hung[c.mounts[n]]; hung != nil {
						close(hung)
					}
					delete(c.hung, c.mounts[n])
					delete(c.broken, c.mounts[n])
				})
			},
		}
	})
}

// TestPreview: an address moves with all its clients or is refused, and the policy is shown.
func TestPreview(t *testing.T) {
	c := newCluster(4, 2) // cn1 and cn3, cn2 and cn4
	d := c.driver("fwd1")
	for _, bad := range []struct {
		change func()
		moves  []remap.Move
		want   string
	}{
		{func() {}, moves("cn1"), "10.2.3.1 is the address of cn3, too, and moves with all its clients"},
		{func() {}, moves("cn1", "cn2", "cn3"), "10.2.3.2 is the address of cn4, too"},
		{func() {}, []remap.Move{{Node: "cn1", To: "fwd2"}, {Node: "cn3", To: "fwd1"}},
			"cn3 -> fwd1: cn1 uses 10.2.3.1, too, which cannot be on fwd2 as well"},
		{func() {}, []remap.Move{{Node: "cn1", To: "fwd9"}}, "cn1 -> fwd9: no such protocol node"},
		{func() {}, moves("cn9"), "cn9 -> fwd2: it has no one address"},
		{func() { c.table["10.2.3.1"] = "fwd2" }, moves("cn1", "cn3"), `mmces lists it at "fwd2", and fwd1 has it`},
		{func() { delete(c.table, "10.2.3.1") }, moves("cn1", "cn3"), `mmces lists it at ""`},
	} {
		bad.change()
		if text, err := d.Preview(t.Context(), remap.Plan{Moves: bad.moves}); err == nil ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v, %v, want %q", bad.moves, text, err, bad.want)
		}
	}
	c.table["10.2.3.1"] = "fwd1"
	for policy, want := range map[string]string{"even-coverage": "may move the address back", "balanced-load": "back",
		"node-affinity": "keeps the address at its new node", "none": "stays until somebody moves it"} {
		c.policy = policy
		lines, err := d.Preview(t.Context(), remap.Plan{Moves: moves("cn1", "cn3")})
		text := strings.Join(lines, "\n")
		for _, want := range []string{want, policy, "up to 90 s",
			"10.2.3.1 moves from fwd1 to fwd2 with all its clients: cn1, cn3, and any without an agent"} {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: %v\n%s\nwant %q", policy, err, text, want)
			}
		}
	}
	if _, err := c.driver().Preview(t.Context(), remap.Plan{Moves: moves("cn1", "cn3")}); err == nil ||
		!strings.Contains(err.Error(), "no agent of a protocol node is connected") {
		t.Error(err)
	}
}

// TestOnlyTrafficVerifies: what mmces reports moves nobody; the kernels, enough operations and the new node's bytes do.
// The bubble's clock is the test's.
func TestOnlyTrafficVerifies(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cluster)
		takes  time.Duration // at most
		want   string
	}{
		{"all is well", func(*cluster) {}, 2 * time.Second, ""},
		{"mmces lies", func(c *cluster) { c.lies = true }, arrivesIn + time.Second,
			"mmces reports that 10.2.3.1 is at fwd2, whose kernel does not have it; fwd1 has it"},
		{"the new node moves less than its clients", func(c *cluster) { c.rate["fwd2"] = 1e8 }, watchFor + time.Second,
			"fwd2 has 10.2.3.1, and has moved"},
		{"its clients do metadata alone", func(c *cluster) { c.metadata = true }, watchFor + time.Second,
			"quiet: its address has moved, but its clients have only done 0 reads and writes since"},
		{"the nodes are quiet", func(c *cluster) { c.rate["cn1"], c.rate["cn2"] = 0, 0 }, watchFor + time.Second,
			"quiet: its address has moved, but its clients have only done 0 reads and writes since"},
		{"it is busy", func(c *cluster) { c.broken["10.2.3.1"] = true }, time.Second, "locked"},
		{"somebody else has mounted it since", func(c *cluster) { c.mounts["cn7"] = "10.2.3.1" }, time.Second,
			"10.2.3.1 is the address of cn7, too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := newCluster(2, 1)
				c.change(site)
				begun, results := time.Now(), map[topology.NodeID]string{}
				err := site.driver("fwd2").Apply(t.Context(), remap.Plan{Moves: moves("cn1", "cn2")},
					func(r remap.Result) { results[r.Node] = r.Error })
				if took := time.Since(begun); err != nil || len(results) != 2 || took > c.takes {
					t.Fatalf("after %s: %v, %v", took, results, err)
				}
				for n, got := range results {
					if c.want == "" && got != "" || !strings.Contains(got, c.want) {
						t.Errorf("%s: %q, want %q", n, got, c.want)
					}
				}
			})
		})
	}
}

// TestAQuietNodeGoesWithItsAddress: one client's traffic shows where an address leads for the others, too; an address
// whose clients are all quiet is completed when one does something.
func TestAQuietNodeGoesWithItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2, 1)
		c.rate["cn1"], c.rate["cn2"] = 0, 0
		d, results := c.driver("fwd2"), map[topology.NodeID]remap.Result{}
		report := func(r remap.Result) { results[r.Node] = r }
		err := d.Apply(t.Context(), remap.Plan{Moves: moves("cn1", "cn2")}, report)
		if err != nil || !strings.HasPrefix(results["cn1"].Error, "quiet") ||
			!strings.HasPrefix(results["cn2"].Error, "quiet") {
			t.Fatalf("%v, %v", err, results)
		}
		c.rate["cn2"] = 1e8
		if err := d.Apply(t.Context(), remap.Plan{Moves: moves("cn1", "cn2")}, report); err != nil ||
			!results["cn1"].OK || !results["cn2"].OK || c.changes != 1 {
			t.Fatalf("%v, %v, %d changes", err, results, c.changes)
		}
	})
}
