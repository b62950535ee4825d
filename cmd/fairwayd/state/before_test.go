package state

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
	"fairway/tsdb/window"
)

// before is what the previous version's own readers found in the files of testdata/before: the state directory of a
// fairwayd that was killed, and the spool of an agent that had lost it.
type before struct {
	Series map[string]struct { // by node, role and metric
		Points      int
		First, Last int64
		Sum         float64
	}
	Journal []*journal.Record
	Runs    []history.Run
	Spool   []struct {
		Seq    uint64
		Frames []collector.Frame
	}
	Acked uint64
}

// TestFilesOfThePreviousVersion: what fairwayd and fairway-agent wrote before is opened, and nothing of it is lost.
func TestFilesOfThePreviousVersion(t *testing.T) {
	dir := unpack(t, "testdata/before/state.tar.gz")
	b, err := os.ReadFile("testdata/before/want.json")
	if err != nil {
		t.Fatal(err)
	}
	var want before
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Series) < 40 || len(want.Journal) == 0 || len(want.Runs) != 2 || len(want.Spool) < 10 {
		t.Fatalf("the fixture has %d series, %d records, %d runs, %d messages", len(want.Series), len(want.Journal),
			len(want.Runs), len(want.Spool))
	}
	t.Run("store", func(t *testing.T) { checkStoreBefore(t, filepath.Join(dir, "state/store"), &want) })
	t.Run("journal", func(t *testing.T) {
		var got []*journal.Record
		j, sum, err := journal.Open(filepath.Join(dir, "state/journal"), func(r *journal.Record) error {
			got = append(got, r)
			return nil
		})
		if err != nil || sum.TornBytes != 0 {
			t.Fatal(sum, err)
		}
		if a, b := asJSON(t, got), asJSON(t, want.Journal); a != b {
			t.Errorf("records are\n%s\nwant\n%s", a, b)
		}
		if err := errors.Join(j.Append(&journal.Record{Kind: journal.StepStop}), j.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Run("history", func(t *testing.T) {
		h, sum, err := history.Open(filepath.Join(dir, "state/history"))
		if err != nil || len(sum.Damaged) > 0 {
			t.Fatal(sum, err)
		}
		defer h.Close()
		var got []history.Run
		if err := h.Each(func(r history.Run) error { got = append(got, r); return nil }); err != nil {
			t.Fatal(err)
		}
		got = append(append(got, h.Running()...), h.Pending()...)
		if a, b := asJSON(t, got), asJSON(t, want.Runs); a != b {
			t.Errorf("runs are\n%s\nwant\n%s", a, b)
		}
	})
	t.Run("detectors", func(t *testing.T) {
		path := filepath.Join(dir, "state/detectors")
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d := watch.NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
		const saved = 1_795_405_155 // the last second that it took
		// What the detectors had learnt is learnt anew: the file is refused by its version, and by nothing else.
		if _, err := d.LoadState(f, time.Unix(saved, 0), time.Hour); !errors.Is(err, watch.ErrStateNewer) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("spool", func(t *testing.T) { checkSpoolBefore(t, filepath.Join(dir, "spool"), &want) })
}

func checkStoreBefore(t *testing.T, dir string, want *before) {
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if d := db.Damages(); len(d) > 0 {
		t.Errorf("damaged: %v", d)
	}
	nodes, err := db.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, n := range nodes {
		for _, m := range n.Metrics {
			name := string(n.Node) + " " + n.Role.String() + " " + m.String()
			out, err := db.Select(ctx, tsdb.Query{Nodes: []topology.NodeID{n.Node}, Metric: m,
				ToMillis: math.MaxInt64 / 2})
			w, known := want.Series[name]
			if err != nil || !known || len(out) != 1 || len(out[0].Points) != w.Points {
				t.Errorf("%s: %v, want %d points, known before: %t", name, err, w.Points, known)
				continue
			}
			found++
			p, sum := out[0].Points, 0.0
			for i := range p {
				sum += p[i].Value
			}
			if p[0].TimeMillis != w.First || p[len(p)-1].TimeMillis != w.Last || sum != w.Sum {
				t.Errorf("%s: from %d to %d, sum %g, want %+v", name, p[0].TimeMillis, p[len(p)-1].TimeMillis, sum, w)
			}
		}
	}
	if found != len(want.Series) {
		t.Errorf("%d series, want %d", found, len(want.Series))
	}
}

func checkSpoolBefore(t *testing.T, dir string, want *before) {
	s, err := stream.OpenSpool(dir, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Acked() != want.Acked || s.Pending() != uint64(len(want.Spool)) || s.Dropped() != 0 {
		t.Errorf("%d acknowledged, %d wait, %d dropped; want %d, %d, 0", s.Acked(), s.Pending(), s.Dropped(),
			want.Acked, len(want.Spool))
	}
	var dec wire.Decoder
	at := s.Acked()
	for _, w := range want.Spool {
		seq, msg, ok := s.Next(at, nil)
		if !ok || seq != w.Seq {
			t.Fatalf("message %d after %d: %t, want %d", seq, at, ok, w.Seq)
		}
		m, err := dec.Decode(msg)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := asJSON(t, m.(*wire.Frames).Frames), asJSON(t, w.Frames); a != b {
			t.Errorf("message %d is\n%s\nwant\n%s", seq, a, b)
		}
		at = seq
	}
	f := collector.Frame{Node: "fwd1", TimeMillis: 1}
	if err := s.Append([]collector.Frame{f}); err != nil {
		t.Error(err)
	}
	if seq, msg, ok := s.Next(at, nil); !ok || seq != at+1 {
		t.Errorf("a new message has number %d after %d: %t", seq, at, ok)
	} else if m, err := dec.Decode(msg); err != nil || m.(*wire.Frames).Frames[0].Node != f.Node {
		t.Errorf("a new message is %+v, %v", m, err)
	}
}

// asJSON is how fairwayd shows something.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unpack puts a compressed archive's files into a new directory.
func unpack(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		content, err := io.ReadAll(in)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o750), os.WriteFile(to, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
