package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

func boundsHub() (*Hub, *connection) {
	h := New(Config{Oldest: DefaultOldest, Roles: map[topology.NodeID]topology.Role{"cn1": topology.Compute,
		"fwd1": topology.Forwarder}})
	by := Speaker{Name: "agents", Limits: DefaultLimits()}
	return h, newConnection(h, nil, by, "test")
}

// TestFramesOfWrongTimes refuses frames of a message one by one and keeps the rest.
func TestFramesOfWrongTimes(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		ago  []time.Duration
		left int
	}{
		{"a spool of five days", []time.Duration{5 * 24 * time.Hour}, 1},
		{"older than a spool lives", []time.Duration{8 * 24 * time.Hour}, 0},
		{"1970", []time.Duration{time.Duration(now.UnixNano())}, 0},
		{"two hours ahead", []time.Duration{-2 * time.Hour, 0}, 1},
		{"far from the message's newest", []time.Duration{0, 30 * time.Minute, 2 * time.Hour, 3 * time.Hour}, 2},
	} {
		_, conn := boundsHub()
		m := wire.Frames{Seq: 7}
		for _, ago := range c.ago {
			m.Frames = append(m.Frames, collector.Frame{Node: "cn1", TimeMillis: now.Add(-ago).UnixMilli()})
		}
		err := conn.check(&m)
		if len(m.Frames) != c.left || (err == nil) != (c.left > 0) {
			t.Errorf("%s: %d frames are left, want %d; %v", c.name, len(m.Frames), c.left, err)
		}
	}
	h, conn := boundsHub()
	h.cfg.Oldest = 0 // an import
	m := wire.Frames{Seq: 1, Frames: []collector.Frame{{Node: "cn1", TimeMillis: 1000}}}
	if err := conn.check(&m); err != nil || len(m.Frames) != 1 {
		t.Errorf("without a bound: %v", err)
	}
}

// TestRolesAndListsAreBound lets a compute node claim to be a forwarder, and a forwarder list another's clients.
func TestRolesAndListsAreBound(t *testing.T) {
	list := func(forwarder topology.ForwarderID, clients ...topology.NodeID) (out []collector.Route) {
		for _, n := range clients {
			out = append(out, collector.Route{Client: n, Forwarder: forwarder})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		frame  collector.Frame
		role   topology.Role
		routes int
	}{
		{"a forwarder's list", collector.Frame{Node: "fwd1", Role: topology.Forwarder, RoutesComplete: true,
			Routes: list("fwd1", "cn1", "cn2")}, topology.Forwarder, 2},
		{"a compute node that claims to be one", collector.Frame{Node: "cn1", Role: topology.Forwarder,
			RoutesComplete: true,
			Routes:         list("cn1", "cn2", "cn3")}, topology.Compute, 0},
		{"a node that is not configured", collector.Frame{Node: "x", Role: topology.Forwarder, RoutesComplete: true,
			Routes: list("x", "cn2")}, topology.RoleUnknown, 0},
		{"a list of another forwarder", collector.Frame{Node: "fwd1", Role: topology.Forwarder,
			Routes: list("fwd2", "cn2")}, topology.Forwarder, 0},
		{"a forwarder's own addresses", collector.Frame{Node: "fwd1", Role: topology.Forwarder,
			Routes: []collector.Route{{Forwarder: "fwd1", Address: "10.2.3.1"},
				{Forwarder: "fwd2", Address: "10.2.3.2"}}},
			topology.Forwarder, 1},
		{"a client's own address", collector.Frame{Node: "cn1", Role: topology.Compute,
			Routes: []collector.Route{{Client: "cn1", Address: "10.2.3.1"}, {Client: "cn2", Address: "10.2.3.2"}}},
			topology.Compute, 1},
		{"a mount's own route", collector.Frame{Node: "cn1", Role: topology.Compute,
			Routes: list("fwd1", "cn1", "cn2")},
			topology.Compute, 1},
	} {
		_, conn := boundsHub()
		c.frame.TimeMillis = time.Now().UnixMilli()
		m := wire.Frames{Seq: 1, Frames: []collector.Frame{c.frame}}
		if err := conn.check(&m); err != nil {
			t.Fatal(err)
		}
		f := m.Frames[0]
		if f.Role != c.role || len(f.Routes) != c.routes || f.RoutesComplete && f.Role != topology.Forwarder {
			t.Errorf("%s: role %s, routes %v", c.name, f.Role, f.Routes)
		}
	}
}

// TestClientsCountAgainstTheToken lists more clients than there can be: the configured ones stay, of others as many as
// the token has room for, the rest is left out and shown as a finding, and the forwarder's own second is kept.
func TestClientsCountAgainstTheToken(t *testing.T) {
	hub, conn := boundsHub()
	hub.cfg.Roles["known"] = topology.Compute
	hub.clients.configured = 1000
	for i := range 5 {
		f := collector.Frame{Node: "fwd1", Role: topology.Forwarder, TimeMillis: time.Now().UnixMilli()}
		for n := range 60 {
			r := collector.Route{Client: topology.NodeID(fmt.Sprint("n", i, "-", n)), Forwarder: "fwd1"}
			if n%2 == 0 { // a floating address counts as a client does
				r.Client, r.Address = "", string(r.Client)
			}
			f.Routes = append(f.Routes, r)
		}
		f.Routes = append(f.Routes, collector.Route{Client: "known", Forwarder: "fwd1"})
		m := &wire.Frames{Seq: 1, Frames: []collector.Frame{f}}
		if err := conn.check(m); err != nil || len(m.Frames) != 1 {
			t.Fatalf("list %d: %v", i, err)
		}
		got := m.Frames[0].Routes
		if want := []int{61, 41, 1, 1, 1}[i]; len(got) != want || got[len(got)-1].Client != "known" {
			t.Errorf("list %d: %d clients are kept, want %d", i, len(got), want)
		}
	}
	if n := len(conn.sender.clients.seen); n != 100 {
		t.Errorf("%d clients are kept", n)
	}
	if n := hub.stats.routes.dropped.Load(); n != 20+3*60 {
		t.Errorf("%d are counted as left out", n)
	}
	all := hub.Intruders(time.Now().Add(-time.Minute))
	if len(all) != 1 || all[0].Node != "fwd1" || all[0].Owner != "" {
		t.Errorf("the finding is of %+v", all)
	}
}

// TestClientsAreBoundByTheSite: how many clients beside the configured ones a token's forwarders may list; where none
// is configured its peers are the measure, and not the largest machine that there is.
func TestClientsAreBoundByTheSite(t *testing.T) {
	for _, c := range []struct {
		configured, nodes, forwarders int
		peers                         []float64 // clients a forwarder, of other tokens
		want                          int
	}{
		{configured: 4, nodes: 65536, forwarders: 1, want: 64},
		{configured: 40960, nodes: 65536, forwarders: 1, want: 4096},
		{configured: 40960, nodes: 8, forwarders: 1, want: 8},
		{nodes: 65536, forwarders: 1, want: 1024},
		{nodes: 65536, forwarders: 8, want: 8192},
		{nodes: 65536, forwarders: 240, want: 65536},
		{nodes: 65536, forwarders: 1, peers: []float64{900, 1000}, want: 1024}, // too few
		{nodes: 65536, forwarders: 1, peers: []float64{100, 120, 30000}, want: 1024},
		{nodes: 65536, forwarders: 1, peers: []float64{900, 1000, 30000}, want: 4000},
	} {
		lists := clientLists{configured: c.configured, of: map[string]float64{}}
		for i, each := range c.peers {
			lists.note(fmt.Sprint("peer", i), each)
		}
		lists.note("own", 60000)
		p := &sender{name: "own", limits: Limits{Nodes: c.nodes}, listing: map[topology.NodeID]struct{}{}}
		for i := range c.forwarders {
			p.listing[topology.NodeID(fmt.Sprint("fwd", i))] = struct{}{}
		}
		if got := lists.most(p); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestNamesAreClean refuses frames with names that a terminal would obey.
func TestNamesAreClean(t *testing.T) {
	for _, name := range []string{"cn\x1b[2J", "cn\n1", "cn\u009b1m", "cn\u202e1", "cn\xff", "cn\x7f"} {
		id := topology.NodeID(name)
		for what, f := range map[string]collector.Frame{
			"node": {Node: id}, "job": {Node: "cn1", Jobs: []collector.JobSamples{{Job: topology.JobID(name)}}},
			"source": {Node: "cn1", Sources: []collector.SourceStatus{{Name: name}}},
			"forwarder": {Node: "cn1", Routes: []collector.Route{{Client: "cn1",
				Forwarder: topology.ForwarderID(name)}}},
			"address": {Node: "cn1", Routes: []collector.Route{{Client: "cn1", Address: name}}},
		} {
			_, conn := boundsHub()
			f.TimeMillis = time.Now().UnixMilli()
			err := conn.check(&wire.Frames{Seq: 1, Frames: []collector.Frame{f}})
			if err == nil || !strings.Contains(err.Error(), "control") || !topology.CleanName(err.Error()) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
		if !topology.CleanName(topology.Clean(name)) {
			t.Errorf("%q is not clean after Clean", name)
		}
	}
	if !topology.CleanName("forwärder 3, 計算") {
		t.Error("letters of other languages are refused")
	}
}

// hanging is a store whose disk takes nothing until it is let go.
type hanging struct{ let chan struct{} }

func (h hanging) Append(context.Context, []collector.Frame) error { <-h.let; return nil }

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestASlowStoreIsNoticed lets the store take a quarter of a minute: the log says so meanwhile, and for how long
// nothing was made durable is known.
func TestASlowStoreIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		store := hanging{make(chan struct{})}
		h := New(Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if h.Stalled() != 0 {
			t.Error("stalled without a message")
		}
		done := make(chan error)
		go func() {
			done <- h.append(t.Context(), h.sender(&Speaker{Name: "agents"}), []collector.Frame{{Node: "cn1"}})
		}()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if log.String() != "" || h.Stalled() != 4*time.Second {
			t.Errorf("after 4 s: stalled for %s, %s", h.Stalled(), log.String())
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if !strings.Contains(log.String(), "the store is slow") || h.Stalled() != 15*time.Second {
			t.Errorf("after 15 s: stalled for %s, %s", h.Stalled(), log.String())
		}
		close(store.let)
		if err := <-done; err != nil || h.Stalled() != 0 || !strings.Contains(log.String(), "was answered") {
			t.Errorf("%v; stalled for %s, %s", err, h.Stalled(), log.String())
		}
		if n := h.appends.slow.Load(); n != 1 {
			t.Errorf("%d slow appends are counted", n)
		}
	})
}
