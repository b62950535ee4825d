package ingest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
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

// A token's names are bounded over the life of the daemon: silent ones are forgotten, and the store keeps them.
func TestNamesOfATokenAreBounded(t *testing.T) {
	_, by, p := testSender(Limits{Nodes: 3, FramesPerSec: 1})
	now, taken := time.Unix(1e9, 0), 0
	for hour := range 100 {
		for i := range 3 {
			n := topology.NodeID(fmt.Sprint("x", hour, "-", i))
			if code, _ := p.admits(n, by, now.Add(time.Duration(hour)*2*time.Hour)); code == 0 {
				taken++
			} else if code != wire.RejectLimit {
				t.Fatalf("%s: %v", n, code)
			}
		}
	}
	if taken != 6 || len(p.named) != 6 {
		t.Errorf("%d names of 300 were taken, want 6", taken)
	}
	if code, why := p.admits("x0-0", by, now.Add(300*time.Hour)); code != 0 {
		t.Errorf("a name of the beginning: %v %s", code, why)
	}
}

// Lines of a node with an agent are refused, whatever their token, and of two tokens' lines those of the second. Each
// try is kept as one of a second speaker.
func TestLinesHaveOneSpeaker(t *testing.T) {
	h := New(Config{})
	now := time.Now()
	h.routes["cn1"] = &connection{hello: wire.Hello{Node: "cn1"}, by: Speaker{Name: "agents"}, remote: "10.0.0.1:1"}
	h.routes["cn2"] = &connection{hello: wire.Hello{Node: "head"}, by: Speaker{Name: "agents"}, remote: "10.0.0.1:1"}
	for i, c := range []struct {
		token string
		node  topology.NodeID
		at    time.Duration
		taken bool
	}{
		{"agents", "cn1", 0, false}, {"telegraf", "cn1", 0, false},
		{"agents", "cn2", 0, true}, {"telegraf", "cn2", 0, false}, // brought among others by an agent of that token
		{"telegraf", "cn3", 0, true}, {"other", "cn3", 59 * time.Second, false}, {"telegraf", "cn3", time.Minute, true},
		{"other", "cn3", 110 * time.Second, false}, {"other", "cn3", 121 * time.Second, true},
		{"telegraf", "cn3", 122 * time.Second, false},
	} {
		by := &Speaker{Name: c.token, Limits: DefaultLimits()}
		at := now.Add(c.at)
		left, err := h.checkLines([]collector.Frame{{Node: c.node, TimeMillis: at.UnixMilli()}}, by, "10.9.9.9:9", at)
		if (len(left) == 1) != c.taken || (err == nil) != c.taken {
			t.Errorf("%d: lines of %s by %s: %d taken, %v", i, c.node, c.token, len(left), err)
		}
	}
	list := h.Intruders(now)
	if len(list) != 3 || list[0].Times != 2 || list[0].Owner != "10.0.0.1:1" || list[2].Times != 3 ||
		list[2].Remote != "10.9.9.9:9" {
		t.Errorf("%+v", list)
	}
}

// oneAtATime is a store that takes a message whenever the test lets it, in the order in which they came.
type oneAtATime struct {
	let     chan struct{}
	entered chan topology.NodeID
}

func (s oneAtATime) Append(context.Context, []collector.Frame) error { panic("it has Enter") }

func (s oneAtATime) Enter(_ context.Context, frames []collector.Frame) (func(context.Context) error, error) {
	<-s.let
	s.entered <- frames[0].Node
	return func(context.Context) error { return nil }, nil
}

// A message waits for one message of each other token, and not for all of a flood's.
func TestAFloodEntersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := oneAtATime{make(chan struct{}), make(chan topology.NodeID, 100)}
		h := New(Config{Store: store})
		limits := DefaultLimits()
		flood, honest := h.sender(&Speaker{Name: "flood", Limits: limits}),
			h.sender(&Speaker{Name: "a", Limits: limits})
		for range 60 {
			go h.append(t.Context(), flood, []collector.Frame{{Node: "cn1"}})
		}
		synctest.Wait()
		go h.append(t.Context(), honest, []collector.Frame{{Node: "cn2"}})
		synctest.Wait()
		store.let <- struct{}{}
		store.let <- struct{}{}
		synctest.Wait()
		if first, second := <-store.entered, <-store.entered; first != "cn2" && second != "cn2" {
			t.Errorf("%s and %s entered before the honest message", first, second)
		}
		close(store.let)
		synctest.Wait()
		if len(store.entered) != 59 {
			t.Errorf("%d of 59 messages of the flood were taken", len(store.entered))
		}
	})
}
