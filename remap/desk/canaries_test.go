package desk_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/tsdb/window"
)

// gateWay is a way through a forwarder that answers when the test lets it.
type gateWay struct {
	sent *atomic.Int32
	open chan struct{}
	err  error
}

func (w gateWay) Bytes() int { return 8192 }

func (w gateWay) Probe(ctx context.Context) (probe.Took, error) {
	w.sent.Add(1)
	select {
	case <-w.open:
		return probe.Took{Read: time.Millisecond, Write: 2 * time.Millisecond, Meta: 3 * time.Millisecond}, w.err
	case <-ctx.Done():
		return probe.Took{}, ctx.Err()
	}
}

// canarySite is a site whose forwarders but fwd9 can be probed; fwd8 fails.
type canarySite struct {
	*site
	*desk.Canaries
	sender *watch.Canaries
	sent   atomic.Int32
	open   chan struct{}
	kept   atomic.Int32
}

func newCanarySite(t *testing.T) *canarySite {
	s := &canarySite{site: newSite(t, anomaly.ModeObserve), open: make(chan struct{})}
	detectors := watch.NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	store := func(context.Context, []collector.Frame) error { s.kept.Add(1); return nil }
	s.sender = watch.NewCanaries(s.Loop, detectors, store, probe.DefaultLimits(),
		func(n topology.NodeID) (probe.Way, bool) {
			w := gateWay{sent: &s.sent, open: s.open}
			if n == "fwd8" {
				w.err = errors.New("read: connection reset")
			}
			return w, n != "fwd9"
		})
	s.Canaries = desk.NewCanaries(s.desk, s.sender)
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { s.sender.Run(ctx) })
	t.Cleanup(func() { stop(); run.Wait() })
	return s
}

func (s *canarySite) ask(by remap.Person, f topology.ForwarderID, key string) (anomaly.Canary, error) {
	return s.Canaries.Ask(s.t.Context(), by, f, remap.Answer{Key: key})
}

func TestACanaryIsAskedForWithinTheLimits(t *testing.T) {
	s := newCanarySite(t)
	type answer struct {
		canary anomaly.Canary
		err    error
	}
	first, again := make(chan answer, 1), make(chan answer, 1)
	go func() { c, err := s.ask(olga, "fwd1", "k1"); first <- answer{c, err} }()
	for s.sent.Load() == 0 {
		time.Sleep(time.Millisecond) // until it is under way
	}
	go func() { c, err := s.ask(olga, "fwd1", "k1"); again <- answer{c, err} }()
	if _, err := s.ask(olga, "fwd1", "k2"); !errors.Is(err, remap.ErrState) ||
		!strings.Contains(err.Error(), "one is under way on fwd1") {
		t.Errorf("a second one at once: %v", err)
	}
	close(s.open)
	a := <-first
	if a.err != nil || *a.canary.Took.Write != 0.002 || *a.canary.Took.Stat != 0.003 || a.canary.By != "olga" ||
		a.canary.Bytes != 8192 || a.canary.PeersOf != 0 {
		t.Errorf("the first: %+v, %v", a.canary, a.err)
	}
	if b := <-again; b.err != nil || !b.canary.At.Equal(a.canary.At) {
		t.Errorf("the same request again: %+v, %v", b.canary, b.err)
	}
	if n := s.sent.Load(); n != 1 {
		t.Errorf("%d canaries were sent for one request", n)
	}
	for _, c := range []struct {
		by   remap.Person
		f    topology.ForwarderID
		is   error
		says string
	}{
		{olga, "fwd1", remap.ErrState, "at most one in 10s; try again in"},
		{vera, "fwd2", remap.ErrNotAllowed, "a canary probe needs the role operator"},
		{olga, "fwd9", remap.ErrState, "no way to fwd9 is known"},
		{olga, "cn1", remap.ErrInvalid, `"cn1" is not a forwarding node`},
	} {
		if _, err := s.ask(c.by, c.f, "k3"); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s asks for %s: %v, want %q", c.by.Name, c.f, err, c.says)
		}
	}
	if n, kept := s.sent.Load(), s.kept.Load(); n != 1 || kept != 1 {
		t.Errorf("%d canaries were sent, %d kept, want 1", n, kept)
	}
	if one, ok := s.sender.Newest("fwd1"); !ok || one.By != "olga" {
		t.Errorf("the newest: %+v", one)
	}
}

// What was asked for and what came of it are in the journal; a canary that failed is an answer.
func TestACanaryIsInTheAudit(t *testing.T) {
	s := newCanarySite(t)
	close(s.open)
	if _, err := s.ask(olga, "fwd1", "k1"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.ask(olga, "fwd8", "k2"); err != nil || !strings.Contains(c.Error, "connection reset") {
		t.Errorf("a failing forwarder: %+v, %v", c, err)
	}
	var kinds []string
	for rec, err := range s.desk.History(journal.Wanted{Subject: "fwd8"}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(rec.Kind)+" "+rec.Actor+" "+rec.Canary.String())
	}
	if got := strings.Join(kinds, "; "); got != "canary_done olga failed: read: connection reset; canary olga " {
		t.Errorf("the audit of fwd8 is %q", got)
	}
	if _, err := journal.Verify(filepath.Join(s.dir, "journal")); err != nil {
		t.Error(err)
	}
}
