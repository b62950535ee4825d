package daemontest

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"fairway/collector/topology"
)

// TestADaemonThatWasAwayCatchesUp stops one daemon of three for as many seconds as agents then have in their spools,
// while the others carry out plans. Afterwards it has every second once, and the same journal. FAIRWAY_AWAY=3600 is an
// hour.
func TestADaemonThatWasAwayCatchesUp(t *testing.T) {
	t.Parallel() // it mostly waits
	away, plans := 300, 2
	if text := os.Getenv("FAIRWAY_AWAY"); text != "" {
		var err error
		if away, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		plans = away / 60
	}
	s := newSite(t, selfApproved, nil)
	s.start()
	p := &planner{ask: s.ask, to: "fwd2", from: "fwd1"}
	for i := range 4 {
		n := topology.NodeID(fmt.Sprintf("cn%d", i))
		s.newAgent(n, topology.Compute, "fwd1")
		p.nodes = append(p.nodes, n)
	}
	for _, f := range []topology.NodeID{"fwd1", "fwd2"} {
		s.newAgent(f, topology.Forwarder, "")
	}
	stopFrames := sync.OnceFunc(everySecond(t, s.agents))
	defer stopFrames()
	s.connected()
	leads := s.leader()
	gone := s.daemons[0]
	if gone == leads {
		gone = s.daemons[1]
	}
	gone.kill()
	for end := time.Now().Add(aWhile * time.Duration(1+plans/10)); p.made <= plans; {
		if p.step(0); time.Now().After(end) {
			t.Fatalf("%d plans of %d were made", p.made, plans)
		}
	}
	p.settle(t)
	stopFrames()
	// Seconds pass faster than the clock, and end before the present.
	first := time.Now().Add(-time.Duration(away)*time.Second - time.Hour).Truncate(time.Second).UnixMilli()
	for k := range away {
		for i, a := range s.agents {
			a.second(t, first+int64(k)*1000, valueOf(i, k))
		}
	}
	for j, d := range s.daemons { // those that stayed have theirs before
		for i := range s.agents {
			for end := time.Now().Add(aWhile); d != gone && s.behind(i, j) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("daemon %d lacks %d messages of %s", j, s.behind(i, j), s.agents[i].node)
				}
			}
		}
	}
	want, err := leads.reads("fairway_journal_records")
	if err != nil {
		t.Fatal(err)
	}
	gone.start()
	back := time.Now()
	for end := back.Add(2 * aWhile); ; time.Sleep(20 * time.Millisecond) {
		pending := uint64(0)
		for _, a := range s.agents {
			pending += a.spool.Pending()
		}
		got, _ := gone.reads("fairway_journal_records")
		if pending == 0 && got >= want {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it lacks %d messages and has %v of %v records", pending, got, want)
		}
	}
	t.Logf("%d s of %d nodes and a journal of %v records: caught up %s after its start", away, len(s.agents), want,
		time.Since(back).Round(10*time.Millisecond))
	for i, a := range s.agents {
		for _, d := range s.daemons {
			checkSeconds(t, d, a.node, first, away, func(k int) float64 { return valueOf(i, k) })
		}
	}
	s.agree()
}

// behind is how many messages of an agent a daemon has not acknowledged.
func (s *site) behind(agent, daemon int) uint64 { return s.streams[agent][daemon].Spool.Pending() }
