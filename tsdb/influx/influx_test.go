package influx_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fairway/tsdb"
	"fairway/tsdb/influx"
	"fairway/tsdb/storetest"
)

// influxd finds InfluxDB 1.8: FAIRWAY_INFLUXD, the path, or where go install puts it.
func influxd(t *testing.T) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	for _, p := range []string{os.Getenv("FAIRWAY_INFLUXD"), "influxd", filepath.Join(home, "go", "bin", "influxd")} {
		if p == "" {
			continue
		}
		if found, err := exec.LookPath(p); err == nil {
			return found
		}
	}
	t.Skip("no InfluxDB with the v2 API here: go install github.com/influxdata/influxdb/cmd/influxd@v1.8.10 gives one (GOFLAGS=-mod=mod)")
	return ""
}

// server starts a real InfluxDB on free ports and returns its address.
func server(t *testing.T) string {
	t.Helper()
	program, dir := influxd(t), t.TempDir()
	var addrs [2]string
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = l.Addr().String()
		defer l.Close()
		l.Close()
	}
	conf := filepath.Join(dir, "influxdb.conf")
	text := fmt.Sprintf("reporting-disabled = true\nbind-address = %q\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = %q\nquery-log-enabled = false\nindex-version = \"inmem\"\n"+
		"[http]\nbind-address = %q\nflux-enabled = true\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
		addrs[0], filepath.Join(dir, "meta"), filepath.Join(dir, "data"), filepath.Join(dir, "wal"), addrs[1])
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	cmd := exec.Command(program, "-config", conf)
	cmd.Stdout, cmd.Stderr = logs, logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 500 {
		res, err := http.Get("http://" + addrs[1] + "/ping")
		if err == nil {
			res.Body.Close()
			return "http://" + addrs[1]
		}
		time.Sleep(20 * time.Millisecond)
	}
	said, _ := os.ReadFile(logs.Name())
	t.Fatalf("InfluxDB does not answer: %s", said)
	return ""
}

func createDatabase(t *testing.T, at, name string) {
	t.Helper()
	res, err := http.PostForm(at+"/query", url.Values{"q": {"CREATE DATABASE " + name}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("create database: %s", res.Status)
	}
}

// settled waits, before each read, until the server has what was appended.
type settled struct{ *influx.Store }

func (s settled) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Select(ctx, q)
}

func (s settled) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Occupancy(ctx, q)
}

func (s settled) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Nodes(ctx)
}

func TestContract(t *testing.T) {
	at := server(t)
	var count atomic.Int32
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		name := fmt.Sprintf("fairway%d", count.Add(1))
		createDatabase(t, at, name)
		spool := t.TempDir()
		return func() tsdb.Store {
			s, err := influx.Open(influx.Config{URL: at, Bucket: name + "/autogen", SpoolDir: spool})
			if err != nil {
				t.Fatal(err)
			}
			return settled{s}
		}
	})
}
