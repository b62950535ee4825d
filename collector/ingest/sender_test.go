package ingest

import (
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

func testSender(l Limits) (*Hub, *Speaker, *sender) {
	h, by := New(Config{}), &Speaker{Name: "agents", Limits: l}
	return h, by, h.sender(by)
}

// Who waits has a promise: a second one waits behind it, and one that would wait too long takes nothing.
func TestFramesAreReservedInTurn(t *testing.T) {
	h, by, p := testSender(Limits{Nodes: 10, FramesPerSec: 10, BurstSeconds: 2})
	if h.sender(by) != p {
		t.Fatal("one token has two states")
	}
	now := p.filled
	for i, c := range []struct {
		n    int
		at   time.Duration
		wait time.Duration
		ok   bool
	}{
		{20, 0, 0, true},
		{10, 0, time.Second, true},
		{5, 0, 1500 * time.Millisecond, true},
		{1000, 0, 101500 * time.Millisecond, false},
		{5, time.Second, time.Second, true},
		{20, time.Hour, 0, true}, // no more than the burst was saved up
		{10, time.Hour, time.Second, true},
	} {
		wait, ok := p.reserve(c.n, now.Add(c.at), maxPause)
		if wait.Round(time.Millisecond) != c.wait || ok != c.ok {
			t.Errorf("%d: %d frames at %v wait %v (%v), want %v (%v)", i, c.n, c.at, wait, ok, c.wait, c.ok)
		}
	}
}

func TestNodesArePerToken(t *testing.T) {
	_, by, p := testSender(Limits{Nodes: 2, FramesPerSec: 1})
	by.Nodes = []string{"n*"}
	now := time.Unix(1e9, 0)
	for i, c := range []struct {
		node topology.NodeID
		at   time.Duration
		want wire.RejectCode
	}{
		{"n1", 0, 0}, {"x1", 0, wire.RejectForbidden}, {"n2", time.Minute, 0}, {"n3", time.Minute, wire.RejectLimit},
		// n2 is forgotten
		{"n1", 40 * time.Minute, 0}, {"n3", 62 * time.Minute, 0}, {"n4", 62 * time.Minute, wire.RejectLimit},
	} {
		if code, why := p.admits(c.node, by, now.Add(c.at)); code != c.want || (why == "") != (c.want == 0) {
			t.Errorf("%d: %s is answered %v %q, want %v", i, c.node, code, why, c.want)
		}
	}
	if len(p.nodes.seen) != 2 {
		t.Errorf("%d nodes are kept", len(p.nodes.seen))
	}
}
