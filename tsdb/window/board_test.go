package window

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// A clock that was a day ahead and has been set back does not keep its node silent for a day.
func TestClockSetBack(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(24 * time.Hour).UnixMilli()}}, now)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.UnixMilli()}}, now.Add(time.Second))
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(-time.Minute).UnixMilli()}}, now.Add(2*time.Second))
	if f, _ := b.Frame("n"); f.TimeMillis != now.UnixMilli() {
		t.Errorf("the newest frame is of %s", time.UnixMilli(f.TimeMillis).UTC())
	}
}

// A node whose clock is half an hour ahead and that has died is not shown as alive for half an hour.
func TestAClockAheadDoesNotKeepANodeAlive(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(30 * time.Minute).UnixMilli()}}, now)
	if f, _ := b.Frame("n"); f.TimeMillis != now.Add(-time.Second).UnixMilli() {
		t.Errorf("what came at %s is shown under %s", now.UTC(), time.UnixMilli(f.TimeMillis).UTC())
	}
	b.All(func(n *Node) {
		if n.Ahead != 30*time.Minute+time.Second {
			t.Errorf("its clock is reported %s ahead", n.Ahead)
		}
	})
}

// Routes of before the daemon's own clock was set back give way to what is seen after it.
func TestOwnClockSetBack(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	see := func(f topology.ForwarderID, listed []collector.Route) {
		at := now.Add(-time.Second).UnixMilli()
		b.Take([]collector.Frame{
			{Node: "cn1", Role: topology.Compute, TimeMillis: at,
				Routes: []collector.Route{{Client: "cn1", Forwarder: f}}},
			{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at, Routes: listed, RoutesComplete: true},
		}, now)
	}
	see("fwd1", []collector.Route{{Client: "cn1", Forwarder: "fwd1"}, {Client: "cn2", Forwarder: "fwd1"}})
	now = now.Add(-time.Hour)
	see("fwd2", nil)
	r := b.Routes(now)
	if cn1 := r["cn1"]; cn1.Forwarder != "fwd2" || !cn1.At.Equal(now) || len(cn1.Lingering) > 0 || len(r) != 1 {
		t.Errorf("routes are %+v, want cn1 on fwd2 since %s", r, now.UTC())
	}
	if n, l := len(b.tracker.nodes), len(b.tracker.list); n != 1 || l != 1 {
		t.Errorf("%d nodes are kept, %d are listed, one is known", n, l)
	}
}

// A node is in the layer that it reported last, and in that alone; its number stays.
func TestLayers(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	roles := map[topology.NodeID]topology.Role{"a": topology.RoleUnknown, "b": topology.Compute, "c": topology.Compute,
		"d": topology.Forwarder, "e": topology.Role(200)}
	report := func() {
		now = now.Add(time.Second)
		for _, n := range []topology.NodeID{"a", "b", "c", "d", "e"} {
			b.Take([]collector.Frame{{Node: n, Role: roles[n], TimeMillis: now.UnixMilli()}}, now)
		}
	}
	check := func(want map[topology.Role]string) {
		t.Helper()
		for r := topology.RoleUnknown; r <= topology.Metadata; r++ {
			var names []string
			b.Layer(r, func(n *Node) { names = append(names, string(n.Node)) })
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want[r] {
				t.Errorf("layer %s has %q, want %q", r, got, want[r])
			}
		}
		var names []string
		b.All(func(n *Node) {
			if int(n.Number) != len(names) {
				t.Errorf("node %s has number %d, is visited as number %d", n.Node, n.Number, len(names))
			}
			names = append(names, string(n.Node))
		})
		if got := strings.Join(names, " "); got != "a b c d e" || b.Members() != 5 {
			t.Errorf("all are %q, %d members", got, b.Members())
		}
	}
	report()
	check(map[topology.Role]string{topology.RoleUnknown: "a e", topology.Compute: "b c", topology.Forwarder: "d"})
	roles["a"], roles["b"] = topology.Compute, topology.Storage
	report()
	check(map[topology.Role]string{topology.RoleUnknown: "e", topology.Compute: "a c", topology.Forwarder: "d",
		topology.Storage: "b"})
	roles["c"], roles["a"] = topology.Forwarder, topology.Forwarder
	report()
	check(map[topology.Role]string{topology.RoleUnknown: "e", topology.Forwarder: "a c d", topology.Storage: "b"})
}
