package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
	"fairway/tsdb/migrate"
)

func open(t *testing.T) *engine.DB {
	t.Helper()
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

const (
	base  = 1_700_000_400 - 1_700_000_400%3600
	hours = 5
)

// fill stores hours of seconds with gaps, and one node's clock a year ahead.
func fill(t *testing.T, db *engine.DB) {
	t.Helper()
	var frames []collector.Frame
	for at := int64(0); at < hours*3600; at += 7 {
		for i, node := range []topology.NodeID{"a", "b", "c"} {
			f := collector.Frame{Node: node, Role: topology.Role(i + 1), TimeMillis: (base + at) * 1000,
				Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(at * int64(i))}}}
			if at%3 == 0 {
				f.Samples = append(f.Samples, collector.Sample{Metric: collector.MetaWait, Value: float64(at) / 7})
			}
			if at < 3600 || at >= 2*3600 { // an hour that nobody reported
				frames = append(frames, f)
			}
		}
	}
	frames = append(frames, collector.Frame{Node: "ahead", Role: topology.Compute,
		TimeMillis: (base + 365*86400) * 1000,
		Samples:    []collector.Sample{{Metric: collector.Errors, Value: 1}}})
	if err := db.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, s tsdb.Store) string {
	t.Helper()
	nodes, err := s.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprint(nodes)
	for _, n := range nodes {
		for _, m := range n.Metrics {
			series, err := s.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{n.Node}, Metric: m,
				ToMillis: 1 << 45})
			if err != nil {
				t.Fatal(err)
			}
			out += fmt.Sprint("\n", m, series)
		}
	}
	return out
}

// stingy fails after some appends, as a full disk does.
type stingy struct {
	tsdb.Store
	left int
}

var errStingy = errors.New("no more")

func (s *stingy) Append(ctx context.Context, frames []collector.Frame) error {
	if s.left--; s.left < 0 {
		return errStingy
	}
	return s.Store.Append(ctx, frames)
}

func TestCopyGoesOnWhereItStopped(t *testing.T) {
	from, to := open(t), open(t)
	fill(t, from)
	state := filepath.Join(t.TempDir(), "state.json")
	reports := 0
	o := migrate.Options{State: state, Report: func(p migrate.Progress) {
		if reports++; p.Hours != hours { // four of the five, and the one a year ahead
			t.Errorf("%+v", p)
		}
	}}
	_, err := migrate.Copy(t.Context(), from, &stingy{to, 70}, o)
	if !errors.Is(err, errStingy) {
		t.Fatalf("%v", err)
	}
	if reports != 2 { // an hour is 30 appends
		t.Errorf("%d hours before it stopped, want 2", reports)
	}
	again := &stingy{to, 1 << 30}
	p, err := migrate.Copy(t.Context(), from, again, o)
	if err != nil || p.HoursDone != hours || reports != hours {
		t.Fatalf("%+v %v, %d reports", p, err, reports)
	}
	if appends := 1<<30 - again.left; appends != 2*30+1 {
		t.Errorf("the second run appended %d times, want those of the hours left", appends)
	}
	if got, want := all(t, to), all(t, from); got != want {
		t.Errorf("the copy differs:\ngot  %.400s\nwant %.400s", got, want)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the finished copy left its place: %v", err)
	}
}

func TestDamagedStateIsSaid(t *testing.T) {
	state := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(state, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Copy(t.Context(), open(t), open(t), migrate.Options{State: state}); err == nil {
		t.Error("a damaged state was taken")
	}
}
