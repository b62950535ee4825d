// Package drivertest is the conformance suite that every driver passes: what the desk may rely on
// when it acts.
package drivertest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// Subject is a driver with the machine behind it.
type Subject struct {
	Driver remap.Driver
	// Moves are possible; every From is where its node is, and no two have the same node.
	Moves []remap.Move
	// At returns which forwarder the nodes use, as the machine itself shows it.
	At func(t *testing.T) topology.Mapping
	// Changes counts the real changes of mapping that the machine has seen; nil: it does not count.
	Changes func() int
	// Break makes one node fail until it is mended; nil: cannot be done here.
	Break, Mend func(t *testing.T, n topology.NodeID)
	// Hang makes one node never answer until mended; nil: cannot be done here.
	Hang func(t *testing.T, n topology.NodeID)
}

// Run checks the driver of fresh subjects that make returns.
func Run(t *testing.T, make func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"preview changes nothing", testPreview},
		{"apply makes every move and reports each once", testApply},
		{"apply twice is apply once", testApplyTwice},
		{"restore gives the original mapping", testRestore},
		{"restore of what was never applied changes nothing", testRestoreUnapplied},
		{"one node's failure is reported and stops no other", testBroken},
		{"a hung node ends with its context", testHung},
		{"a cancelled context begins nothing", testCancelled},
		{"an empty plan is done", testEmpty},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, make(t)) })
	}
}

// within bounds every call of the suite.
const within = 30 * time.Second

func (s Subject) plan() remap.Plan { return remap.Plan{ID: "P-000001", Moves: s.Moves} }

// act runs one call and returns its results by node.
func (s Subject) act(t *testing.T, ctx context.Context,
	call func(context.Context, remap.Plan, func(remap.Result)) error, p remap.Plan) (map[topology.NodeID]remap.Result,
	error) {
	t.Helper()
	var mu sync.Mutex
	got, ended := map[topology.NodeID]remap.Result{}, false
	err := call(ctx, p, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			t.Errorf("%s: reported after the call had returned", r.Node)
		}
		if _, twice := got[r.Node]; twice {
			t.Errorf("%s: reported twice", r.Node)
		}
		if r.OK == (r.Error != "") || r.At.IsZero() || r.Tries < 1 || r.Verified {
			t.Errorf("result %+v: want either OK or an error, a time, a try, and no claim to be verified", r)
		}
		got[r.Node] = r
	})
	mu.Lock()
	defer mu.Unlock()
	ended = true
	return got, err
}

func (s Subject) want(t *testing.T, of func(remap.Move) topology.ForwarderID, when string) {
	t.Helper()
	at := s.At(t)
	for _, m := range s.Moves {
		if at[m.Node] != of(m) {
			t.Errorf("%s: %s uses %s, want %s", when, m.Node, at[m.Node], of(m))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var nodes []topology.NodeID
	for _, m := range s.Moves {
		nodes = append(nodes, m.Node)
	}
	seen, err := s.Driver.Observe(ctx, nodes)
	if err != nil {
		t.Errorf("%s: observe: %v", when, err)
	}
	for _, n := range nodes {
		if seen[n] != at[n] {
			t.Errorf("%s: the driver observes %s on %s, the machine shows %s", when, n, seen[n], at[n])
		}
	}
}

func from(m remap.Move) topology.ForwarderID { return m.From }
func to(m remap.Move) topology.ForwarderID   { return m.To }

// apply is act over Apply that must succeed for every node.
func (s Subject) all(t *testing.T, call func(context.Context, remap.Plan, func(remap.Result)) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	got, err := s.act(t, ctx, call, s.plan())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Moves {
		if r, ok := got[m.Node]; !ok || !r.OK {
			t.Errorf("%s: %+v, want OK", m.Node, r)
		}
	}
}

func testPreview(t *testing.T, s Subject) {
	before := s.At(t)
	if _, err := s.Driver.Preview(t.Context(), s.plan()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, s.At(t)) {
		t.Error("the mapping is another one after a preview")
	}
	bad := remap.Plan{ID: "P-000002", Moves: []remap.Move{{Node: s.Moves[0].Node, From: s.Moves[0].From,
		To: "no-such-forwarder"}}}
	if _, err := s.Driver.Preview(t.Context(), bad); err == nil {
		t.Error("a move to a forwarder that does not exist can be previewed")
	}
}

func testApply(t *testing.T, s Subject) {
	s.want(t, from, "at first")
	s.all(t, s.Driver.Apply)
	s.want(t, to, "after apply")
}

func testApplyTwice(t *testing.T, s Subject) {
	s.all(t, s.Driver.Apply)
	n := 0
	if s.Changes != nil {
		n = s.Changes()
	}
	s.all(t, s.Driver.Apply)
	s.want(t, to, "after the second apply")
	if s.Changes != nil && s.Changes() != n {
		t.Errorf("the second apply made %d changes", s.Changes()-n)
	}
}

func testRestore(t *testing.T, s Subject) {
	s.all(t, s.Driver.Apply)
	s.all(t, s.Driver.Restore)
	s.want(t, from, "after restore")
}

func testRestoreUnapplied(t *testing.T, s Subject) {
	s.all(t, s.Driver.Restore)
	s.want(t, from, "after restore")
	if s.Changes != nil && s.Changes() != 0 {
		t.Errorf("restore made %d changes", s.Changes())
	}
}

func testBroken(t *testing.T, s Subject) {
	if s.Break == nil {
		t.Skip("this machine cannot break a node")
	}
	bad := s.Moves[0].Node
	s.Break(t, bad)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	got, err := s.act(t, ctx, s.Driver.Apply, s.plan())
	if err != nil {
		t.Errorf("the whole plan failed: %v", err)
	}
	for _, m := range s.Moves {
		if got[m.Node].OK == (m.Node == bad) {
			t.Errorf("%s: %+v while %s is broken", m.Node, got[m.Node], bad)
		}
	}
	s.Mend(t, bad)
	s.all(t, s.Driver.Apply)
	s.want(t, to, "completed")
}

func testHung(t *testing.T, s Subject) {
	if s.Hang == nil {
		t.Skip("this machine cannot hang a node")
	}
	bad := s.Moves[0].Node
	s.Hang(t, bad)
	defer s.Mend(t, bad)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan map[topology.NodeID]remap.Result, 1)
	go func() {
		got, _ := s.act(t, ctx, s.Driver.Apply, s.plan())
		done <- got
	}()
	select {
	case got := <-done:
		if got[bad].OK {
			t.Errorf("%s hangs and is reported as moved", bad)
		}
	case <-time.After(within):
		t.Fatal("apply does not end with its context")
	}
}

func testCancelled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := s.act(t, ctx, s.Driver.Apply, s.plan())
	if err == nil && len(got) == 0 {
		t.Error("a cancelled apply says that it is done")
	}
	for n, r := range got {
		if r.OK {
			t.Errorf("%s was moved under a cancelled context", n)
		}
	}
	s.want(t, from, "after a cancelled apply")
}

func testEmpty(t *testing.T, s Subject) {
	got, err := s.act(t, t.Context(), s.Driver.Apply, remap.Plan{ID: "P-000003"})
	if err != nil || len(got) != 0 {
		t.Errorf("%d results, %v", len(got), err)
	}
}
