package ces

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"fairway/collector/topology"
	"fairway/remap"
)

// ofFour is a cluster of fwd1 to fwd4 that all take addresses. cn1 and cn3 use 10.2.3.1, cn2 and cn4 10.2.3.2.
func ofFour() *cluster {
	c := newCluster(4, 2)
	c.flags = map[topology.ForwarderID]string{"fwd1": "", "fwd2": "", "fwd3": "", "fwd4": ""}
	return c
}

var allMoves = moves("cn1", "cn2", "cn3", "cn4")

// TestSuspendsSays: a plan suspends a node that it leaves without an address, where a policy would give it one, its
// agent is there and others remain; the preview says so, or why not.
func TestSuspendsSays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster)
		plan   remap.Plan
		want   string // "": nothing of it
	}{
		"all of its addresses": {func(*cluster) {}, remap.Plan{Moves: allMoves},
			"and is suspended (mmces node suspend)"},
		"one of two":        {func(*cluster) {}, remap.Plan{Moves: moves("cn1", "cn3")}, ""},
		"for a job":         {func(*cluster) {}, remap.Plan{Moves: allMoves, Job: "88"}, ""},
		"no policy":         {func(c *cluster) { c.policy = "none" }, remap.Plan{Moves: allMoves}, ""},
		"the address stays": {func(c *cluster) { c.policy = "node-affinity" }, remap.Plan{Moves: allMoves}, ""},
		"by another one": {func(c *cluster) { c.flags["fwd1"] = "Suspended" }, remap.Plan{Moves: allMoves},
			"is suspended already"},
		"others do not take addresses": {func(c *cluster) { c.flags["fwd3"], c.flags["fwd4"] = "Failed", "Suspended" },
			remap.Plan{Moves: allMoves}, "not suspended: 1 other nodes take addresses, at least 2 must be left"},
		"flags are not known": {func(c *cluster) { c.flags = nil }, remap.Plan{Moves: allMoves}, "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			site := ofFour()
			c.change(site)
			lines, err := site.driver("fwd1", "fwd2").Preview(t.Context(), c.plan)
			text := strings.Join(lines, "\n")
			if err != nil || !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "suspend") {
				t.Errorf("%v\n%s\nwant %q", err, text, c.want)
			}
		})
	}
	site := ofFour()
	if lines, err := site.driver("fwd2").Preview(t.Context(), remap.Plan{Moves: allMoves}); err != nil ||
		!strings.Contains(strings.Join(lines, "\n"), "not suspended: its agent is not connected") {
		t.Error(err, lines)
	}
	site.flags["fwd2"] = "Failed,Suspended"
	if _, err := site.driver("fwd1").Preview(t.Context(), remap.Plan{Moves: allMoves}); err == nil ||
		!strings.Contains(err.Error(), "fwd2 is suspended and takes no addresses") {
		t.Error(err)
	}
}

// TestANodeIsSuspendedAndTakenBack: after its addresses have left; not when one of them has not; a failure fails the
// nodes, whose plan can be completed; and the roll back gives every address back, also those that the system moves when
// the node takes addresses again.
func TestANodeIsSuspendedAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ofFour()
		c.table["10.2.3.9"], c.kernels["10.2.3.9"] = "fwd3", "fwd3"
		d, was := c.driver("fwd1", "fwd2"), maps.Clone(c.table)
		type verb func(*Driver, remap.Plan, func(remap.Result)) error
		apply := func(p remap.Plan, call verb) map[topology.NodeID]string {
			t.Helper()
			results := map[topology.NodeID]string{}
			if err := call(d, p, func(r remap.Result) { results[r.Node] = r.Error }); err != nil {
				t.Fatal(err)
			}
			return results
		}
		move := func(d *Driver, p remap.Plan, report func(remap.Result)) error {
			return d.Apply(t.Context(), p, report)
		}
		back := func(d *Driver, p remap.Plan, report func(remap.Result)) error {
			return d.Restore(t.Context(), p, report)
		}
		all := remap.Plan{ID: "P-1", Moves: allMoves}

		c.rate["cn2"], c.rate["cn4"] = 0, 0 // 10.2.3.2 has moved, and is not verified
		results := apply(all, move)
		if results["cn1"] != "" || !strings.HasPrefix(results["cn4"], "quiet") || c.flags["fwd1"] != "" {
			t.Fatalf("%v, %v", results, c.flags)
		}
		c.rate["cn2"], c.rate["cn4"], c.refuses = 1e8, 1e8, "mmces: locked"
		results = apply(remap.Plan{ID: "P-1", Moves: moves("cn4")}, move)
		if why := results["cn4"]; !strings.Contains(why, "may move it back: fwd1: ") ||
			!strings.Contains(why, "locked; complete the plan") || c.flags["fwd1"] != "" {
			t.Fatalf("%v, %v", results, c.flags)
		}
		c.refuses = ""
		results = apply(remap.Plan{ID: "P-1", Moves: moves("cn4")}, move)
		if len(results) != 1 || results["cn4"] != "" || c.flags["fwd1"] != "Suspended" ||
			c.table["10.2.3.2"] != "fwd2" {
			t.Fatalf("%v, %v, %v", results, c.flags, c.table)
		}

		c.refuses = "fwd1 is suspended, and not by fairway"
		results = apply(all, back)
		if len(results) != 4 || !strings.Contains(results["cn1"], "not by fairway") || c.table["10.2.3.1"] != "fwd2" {
			t.Fatalf("%v, %v", results, c.table)
		}
		c.refuses, c.resumed = "", func() {
			for _, a := range []string{"10.2.3.2", "10.2.3.9"} {
				c.table[a], c.kernels[a] = "fwd1", "fwd1"
			}
		}
		results = apply(all, back)
		if len(results) != 4 || results["cn1"] != "" || c.flags["fwd1"] != "" || !maps.Equal(c.table, was) {
			t.Errorf("%v, %v, %v, want %v", results, c.flags, c.table, was)
		}
	})
}
