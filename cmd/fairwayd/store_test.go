package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

// TestMigrateThereAndBack moves an embedded store to a real VictoriaMetrics, by the command, and
// back into another embedded one.
func TestMigrateThereAndBack(t *testing.T) {
	url := storetest.Victoria(t)
	base := time.Now().Add(-2*time.Hour).Unix() / 3600 * 3600
	var dirs [2]string
	var want string
	for i := range dirs {
		dirs[i] = t.TempDir()
		conf := filepath.Join(dirs[i], "f.toml")
		text := fmt.Sprintf("state_dir = %q\n[store.prometheus]\nwrite_url = %q\nread_url = %q\n",
			filepath.Join(dirs[i], "state"), url, url)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		from, to := "embedded", "prometheus"
		if i == 0 {
			want = withStore(t, dirs[i], func(db *engine.DB) {
				var frames []collector.Frame
				for s := range int64(5000) {
					if s%100 > 0 {
						frames = append(frames, collector.Frame{Node: "f1", Role: topology.Forwarder,
							TimeMillis: (base + s) * 1000,
							Samples:    []collector.Sample{{Metric: collector.ReadBytes, Value: float64(s * 1e6)}}})
					}
				}
				for some := range slices.Chunk(frames, 99) { // each append waits for the disk
					if err := db.Append(t.Context(), some); err != nil {
						t.Fatal(err)
					}
				}
			})
		} else {
			from, to = to, from
			if res, err := http.Get(url + "/internal/force_flush"); err != nil {
				t.Fatal(err)
			} else {
				res.Body.Close()
			}
		}
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs([]string{"-c", conf, "migrate", "--from", from, "--to", to})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "4950 samples") {
			t.Errorf("it says %q", out.String())
		}
	}
	if got := withStore(t, dirs[1], nil); got != want {
		t.Errorf("what came back differs:\ngot  %.300s\nwant %.300s", got, want)
	}
}

// withStore opens the embedded store below dir, lets fill write, and returns all that is in it.
func withStore(t *testing.T, dir string, fill func(*engine.DB)) string {
	t.Helper()
	state := filepath.Join(dir, "state", "store")
	db, err := engine.Open(state, engine.Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if fill != nil {
		fill(db)
	}
	nodes, err := db.Nodes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{"f1"}, Metric: collector.ReadBytes,
		ToMillis: 1 << 45})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(nodes, out)
}

// TestDaemonOverAServerThatIsAway takes frames while the store's server does not answer.
func TestDaemonOverAServerThatIsAway(t *testing.T) {
	c := testConf(t)
	c.Store.Kind = config.StorePrometheus
	c.Store.Prometheus = config.Prometheus{WriteURL: "http://127.0.0.1:1", ReadURL: "http://127.0.0.1:1"}
	d := start(t, c)
	for s := range int64(5) {
		f := collector.Frame{Node: "f1", Role: topology.Forwarder, TimeMillis: (time.Now().Unix() + s) * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1}}}
		if err := d.store.Append(t.Context(), []collector.Frame{f}); err != nil {
			t.Fatal(err)
		}
	}
	health(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
