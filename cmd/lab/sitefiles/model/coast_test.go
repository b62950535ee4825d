package model

import (
	"math"
	"testing"
	"time"
)

// A site that coasts moves as many bytes a second as before, for as long as its clock says; then it moves its messages
// from where they were, and none is lost.
func TestCoastingEndsWhereItBegan(t *testing.T) {
	const recorded, coasted, rest = 20 * time.Second, 300 * time.Second, 20 * time.Second
	cfg := Small(5)
	cfg.Jobs = []Job{{ID: "1", Clients: []int{0, 1, 2, 3}, End: 25 * time.Second, Mix: Mixes()[0]}}
	s := newTestSite(t, cfg)
	if err := s.Coast(); err == nil {
		t.Error("a site coasts by nothing that was recorded")
	}
	bytes := func() (sum float64) {
		for _, c := range s.Of(Client) {
			r, w := c.Front.Ops.Get("read_bytes"), c.Front.Ops.Get("write_bytes")
			sum += float64(r.Sum + w.Sum)
		}
		return sum
	}
	s.Run(3 * time.Second)
	was := bytes()
	s.Record()
	s.Run(s.Now() + recorded)
	rate := (bytes() - was) / recorded.Seconds()
	type gauges struct{ alloc, credits int }
	state := func() (out []gauges) {
		for _, n := range s.Nodes {
			g := gauges{alloc: n.LNet.Alloc}
			for _, p := range n.Peers {
				g.credits += p.Tx.Now + p.Rtr.Now
			}
			out = append(out, g)
		}
		return out
	}
	before, begun := state(), s.Now()
	was = bytes()
	if err := s.Coast(); err != nil {
		t.Fatal(err)
	}
	s.Run(begun + coasted)
	if x := (bytes() - was) / coasted.Seconds() / rate; math.Abs(x-1) > 0.02 {
		t.Errorf("%.3f times the bytes a second that were recorded", x)
	}
	s.Resume()
	if s.Now() != begun+coasted || s.Node("rtr1").Alive() < coasted {
		t.Errorf("%s after %s of coasting from %s on", s.Now(), coasted, begun)
	}
	for i, g := range state() {
		if g != before[i] {
			t.Errorf("%s: %+v after coasting, %+v before", s.Nodes[i].Name, g, before[i])
		}
	}
	was = bytes()
	s.Run(s.Now() + rest) // the job ends soon after
	if bytes() == was {
		t.Error("nothing moves after coasting")
	}
	for _, n := range s.Nodes {
		if n.LNet.Alloc != 0 {
			t.Errorf("%s holds %d messages of an idle site", n.Name, n.LNet.Alloc)
		}
		for _, p := range n.Peers {
			if p.Tx.Now != p.Tx.Max || p.Rtr.Now != p.Rtr.Max || p.Queued != 0 {
				t.Errorf("%s to %s: %+v %+v, %d bytes queued", n.Name, p.NID, p.Tx, p.Rtr, p.Queued)
			}
		}
	}
}

// A site that has coasted goes on from where it began to when more is recorded, and coasts by all that was recorded.
func TestMoreIsRecordedAfterCoasting(t *testing.T) {
	const recorded, more, coasted = 20, 5, 400
	s := newTestSite(t, Small(5))
	s.Run(3 * time.Second)
	second := func() (routed uint64) {
		r := &s.Node("rtr1").LNet.RoutedBytes
		was := *r
		s.Run(s.Now() + time.Second)
		return *r - was
	}
	seconds := func(n int) map[uint64]bool {
		all := map[uint64]bool{}
		for range n {
			all[second()] = true
		}
		return all
	}
	s.Record()
	first := seconds(recorded)
	if err := s.Coast(); err != nil {
		t.Fatal(err)
	}
	alone, now := seconds(coasted), s.now
	s.Record()
	added := seconds(more)
	if s.now != now+more*time.Second {
		t.Errorf("%d s are recorded in %s of the site's messages", more, s.now-now)
	}
	if err := s.Coast(); err != nil {
		t.Fatal(err)
	}
	both := seconds(coasted)
	if len(first) != recorded || len(added) != more || len(alone) != recorded || len(both) != recorded+more {
		t.Errorf("it coasts by %d of %d seconds, then by %d of these and %d more", len(alone), len(first), len(both),
			len(added))
	}
	for bytes := range both {
		if !first[bytes] && !added[bytes] {
			t.Errorf("a second of %d bytes was never recorded", bytes)
		}
	}
}
