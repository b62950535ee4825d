package daemontest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// link is the way from one daemon to another, which can be cut.
type link struct {
	from, to int
	listener net.Listener
	target   string

	mu    sync.Mutex // guards what follows
	cut   bool
	conns []net.Conn
}

// newLink listens for daemon from and leads to where daemon to listens.
func newLink(t *testing.T, from, to int, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{from: from, to: to, listener: listener, target: target}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { l.carry(c) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.set(true)
		wait.Wait()
	})
	return l
}

func (l *link) carry(c net.Conn) {
	defer c.Close()
	out, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer out.Close()
	l.mu.Lock()
	if l.cut {
		l.mu.Unlock()
		return
	}
	l.conns = append(l.conns, c, out)
	l.mu.Unlock()
	go func() { _, _ = io.Copy(out, c); out.Close() }()
	_, _ = io.Copy(c, out)
}

// set cuts the link, or mends it.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// TestALeaderThatIsCutOffChangesNothing: the two others elect another leader and go on; the one that is cut off says so
// on its screens and in the doctor, refuses changes, and has the same journal once it is back.
func TestALeaderThatIsCutOffChangesNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	var links []*link
	s := newSite(t, selfApproved, func(i, j int, listens string) string {
		links = append(links, newLink(t, i, j, listens))
		return links[len(links)-1].listener.Addr().String()
	})
	s.start()
	for _, f := range []topology.NodeID{"fwd1", "fwd2"} {
		s.newAgent(f, topology.Forwarder, "")
	}
	cn := s.newAgent("cn1", topology.Compute, "fwd1")
	stopFrames := sync.OnceFunc(everySecond(t, s.agents))
	defer stopFrames()
	s.connected()
	alone := s.leader()
	p := &planner{ask: s.ask, to: "fwd2", from: "fwd1", nodes: []topology.NodeID{cn.node}}
	moves := func(what string, until func() bool) {
		t.Helper()
		for end := time.Now().Add(aWhile); !until(); {
			if p.step(0); time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	cn.on(t, "fwd2", moves)
	cutting := func(cut bool) {
		for _, l := range links {
			if s.daemons[l.from] == alone || s.daemons[l.to] == alone {
				l.set(cut)
			}
		}
	}
	cutting(true)
	waitFor(t, "the one that is cut off says so, and its doctor, too", func() bool {
		var o api.Overview // a second old at most: it may be of before it led
		var checks []api.Check
		return alone.ask("/api/v1/overview", "", nil, &o) == nil && strings.Contains(o.Notice, "no leader") &&
			strings.Contains(o.Notice, "nothing can be changed here") &&
			alone.ask("/api/v1/checks", "", nil, &checks) == nil &&
			strings.Contains(fmt.Sprint(checks), "knows no leader")
	})
	before, err := alone.reads("fairway_journal_records")
	if err != nil {
		t.Fatal(err)
	}
	refused := alone.ask("/api/v1/plans", "alone", api.ManualRemap{Nodes: p.nodes, To: "fwd1", Reason: planReason}, nil)
	if refused == nil || !strings.Contains(refused.Error(), "503") {
		t.Errorf("the one that is cut off answers %v", refused)
	}
	var others []*realDaemon
	for _, d := range s.daemons {
		if d != alone {
			others = append(others, d)
		}
	}
	p.ask = others[0].ask // which leads, or passes on to the other
	p.id = ""
	cn.on(t, "fwd1", func(what string, until func() bool) {
		p.to = "fwd1"
		moves(what, until)
	})
	if after, err := alone.reads("fairway_journal_records"); err != nil || after != before {
		t.Errorf("the one that is cut off had %v records and has %v, %v", before, after, err)
	}
	cutting(false)
	waitFor(t, "it has a leader again", func() bool {
		var o api.Overview
		return alone.ask("/api/v1/overview", "", nil, &o) == nil && !strings.Contains(o.Notice, "no leader")
	})
	stopFrames()
	s.agree()
}
