package stream

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

func spoolOf(t *testing.T, dir string, bytes int64) *Spool {
	t.Helper()
	s, err := OpenSpool(dir, bytes, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fillSpool(t *testing.T, s *Spool, n int) {
	t.Helper()
	for i := range n {
		f := collector.Frame{Node: "cn1", Role: topology.Compute, TimeMillis: int64(i) * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(i)}}}
		if err := s.Append([]collector.Frame{f}); err != nil {
			t.Fatal(err)
		}
	}
}

// all reads what a queue still has for its daemon.
func all(q Queue) (seqs []uint64) {
	at := q.Acked()
	for {
		seq, _, ok := q.Next(at, nil)
		if !ok {
			return seqs
		}
		seqs, at = append(seqs, seq), seq
	}
}

// TestEachDaemonHasItsPlaceInTheSpool: one daemon that is away keeps the messages for itself and holds up no other,
// over a restart of the agent too.
func TestEachDaemonHasItsPlaceInTheSpool(t *testing.T) {
	dir := t.TempDir()
	s := spoolOf(t, dir, 0)
	p, err := Positions(s, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	fillSpool(t, s, 10)
	if n := len(all(p[0])); n != 10 {
		t.Fatalf("the first daemon gets %d messages", n)
	}
	p[0].Ack(10)
	p[1].Ack(3)
	if s.Acked() != 3 || p[0].Pending() != 0 || p[1].Pending() != 7 || s.Pending() != 7 {
		t.Errorf("acknowledged %d, pending %d, %d, %d", s.Acked(), p[0].Pending(), p[1].Pending(), s.Pending())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = spoolOf(t, dir, 0)
	defer s.Close()
	if p, err = Positions(s, []string{"a", "b", "new"}); err != nil {
		t.Fatal(err)
	}
	if a, b, c := all(p[0]), all(p[1]), all(p[2]); len(a) != 0 || len(b) != 7 || b[0] != 4 || len(c) != 7 {
		t.Errorf("after a restart they get %v, %v and %v", a, b, c)
	}
}

// TestAFullSpoolWaitsForNoDaemon: what a daemon that is away has missed is dropped, and the others have had it.
func TestAFullSpoolWaitsForNoDaemon(t *testing.T) {
	s := spoolOf(t, t.TempDir(), MinSpoolBytes)
	defer s.Close()
	p, err := Positions(s, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for s.Dropped() == 0 {
		fillSpool(t, s, 1000)
		seqs := all(p[0])
		if len(seqs) != 1000 {
			t.Fatalf("the daemon that listens gets %d of 1000", len(seqs))
		}
		p[0].Ack(seqs[len(seqs)-1])
	}
	if b := all(p[1]); len(b) == 0 || b[0] != p[1].Acked()+1 {
		t.Errorf("the daemon that was away goes on at %v after %d", b[:1], p[1].Acked())
	}
}

// TestAnOrderOfAnOlderTermIsRefused, by every stream of the agent and after its restart; questions are answered.
func TestAnOrderOfAnOlderTermIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "term")
	open := func() *Fence {
		t.Helper()
		f, err := OpenFence(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	take := func(o wire.Order) string {
		var d desk
		d.open(map[string]OrderHandler{o.Kind: nil}, f)
		if o.Kind == wire.OrderRoute {
			d.handlers = nil
		}
		d.take(t.Context(), o)
		d.wait()
		return (<-d.results).Err
	}
	old := "leads no more"
	if why := take(wire.Order{ID: "1", Kind: wire.OrderRemap}); strings.Contains(why, old) {
		t.Errorf("a daemon that is alone: %s", why)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an agent of one daemon has a file of terms")
	}
	if why := take(wire.Order{ID: "2", Kind: wire.OrderRemap, Term: 7}); strings.Contains(why, old) {
		t.Errorf("a new term: %s", why)
	}
	for range 2 {
		for _, term := range []uint64{0, 6} {
			if why := take(wire.Order{ID: "3", Kind: wire.OrderRemap, Term: term}); !strings.Contains(why, old) ||
				!strings.Contains(why, "term 7") {
				t.Errorf("term %d: %q", term, why)
			}
		}
		if why := take(wire.Order{ID: "4", Kind: wire.OrderRoute, Term: 6}); strings.Contains(why, old) {
			t.Errorf("a question: %s", why)
		}
		f = open()
	}
}
