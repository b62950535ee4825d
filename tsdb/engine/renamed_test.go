package engine

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// storeOf unpacks a store directory of an earlier version.
func storeOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o750)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestQueueOfStoreBefore opens a store of before in_flight: fwd1's queue_len there was all that is in flight, beside
// the retired number of what waits, and oss1's was what waits. Sealed blocks, tiers, the log and a block in which
// the agent was replaced answer by today's names.
func TestQueueOfStoreBefore(t *testing.T) {
	const begin, end = int64(1_699_992_000), int64(1_699_992_000 + 3*3600 + 90)
	db, err := Open(storeOf(t, "before-in-flight.tar.gz"), Options{SyncInterval: time.Nanosecond,
		Keep10s: 1000 * time.Hour, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(end+20, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for at := end; at < end+10; at++ {
		if err := db.Append(context.Background(), []collector.Frame{{Node: "fwd1", Role: topology.Forwarder,
			TimeMillis: at * 1000, Samples: []collector.Sample{{Metric: collector.InFlight, Value: 50},
				{Metric: collector.QueueLen, Value: 40}}}}); err != nil {
			t.Fatal(err)
		}
	}
	was := func(of func(at int64) float64, now float64) func(int64) float64 {
		return func(at int64) float64 {
			if at >= end {
				return now
			}
			return of(at)
		}
	}
	for _, tc := range []struct {
		node   topology.NodeID
		metric collector.Metric
		want   func(at int64) float64
		last   int64
	}{
		{"fwd1", collector.InFlight, was(func(at int64) float64 { return float64(20+at%7) + .25 }, 50), end + 10},
		{"fwd1", collector.QueueLen, was(func(at int64) float64 { return float64(at % 5) }, 40), end + 10},
		{"oss1", collector.QueueLen, func(at int64) float64 { return float64(at % 11) }, end},
		{"oss1", collector.InFlight, nil, 0},
	} {
		for _, step := range []int64{1, 10, 120} {
			series, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{tc.node},
				Metric:     tc.metric,
				FromMillis: begin * 1000, ToMillis: (end + 120) * 1000, StepMillis: step * 1000, Agg: tsdb.AggSum})
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == nil {
				if len(series) != 0 {
					t.Errorf("%s has %v", tc.node, tc.metric)
				}
				continue
			}
			if len(series) != 1 {
				t.Fatalf("%s %v: %d series", tc.node, tc.metric, len(series))
			}
			seconds := int64(0)
			for _, p := range series[0].Points {
				want, n := 0.0, int64(0)
				for at := p.TimeMillis / 1000; at < min(p.TimeMillis/1000+step, tc.last); at++ {
					want += tc.want(at)
					n++
				}
				if seconds += n; p.Value != want {
					t.Fatalf("%s %v in %d s from %d: %v, want %v", tc.node, tc.metric, step, p.TimeMillis/1000, p.Value,
						want)
				}
			}
			// Of the hours that retention has taken, only steps of whole buckets have an answer.
			if least := tc.last - begin; step > 1 && seconds != least || step == 1 && seconds < 3600 {
				t.Errorf("%s %v, step %d: %d seconds, want %d", tc.node, tc.metric, step, seconds, least)
			}
		}
	}
	infos, err := db.Nodes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range infos {
		if has := slices.Contains(n.Metrics, collector.InFlight); has != (n.Node == "fwd1") ||
			slices.Contains(n.Metrics, collector.RetiredBacklogLen) || !slices.Contains(n.Metrics, collector.QueueLen) {
			t.Errorf("%s has %v", n.Node, n.Metrics)
		}
	}
}
