package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/view"
	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/client"
)

// lines keeps a daemon's log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

const storesToken = "a-token-of-an-agent-in-a-test"

// TestTheWholeWayOverAServer: what an agent sends is on the faces, in a replay, in series, in the calendar and in the
// occupancy, the detectors go on after a restart, and a view of the same store shows it too and changes nothing.
func TestTheWholeWayOverAServer(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) config.Store{
		"two VictoriaMetrics behind vmauth": func(t *testing.T) config.Store {
			c := storetest.VictoriaCluster(t)
			token := filepath.Join(t.TempDir(), "token")
			write(t, token, c.Token)
			return config.Store{Kind: config.StorePrometheus, Prometheus: config.Prometheus{WriteURL: c.WriteURL,
				ReadURL: c.ReadURL, TokenFile: token}}
		},
		"Prometheus": func(t *testing.T) config.Store {
			url := storetest.Prometheus(t, time.Hour)
			return config.Store{Kind: config.StorePrometheus,
				Prometheus: config.Prometheus{WriteURL: url, ReadURL: url}}
		},
		"InfluxDB 1.8": func(t *testing.T) config.Store {
			at := storetest.Influx(t)
			storetest.InfluxDatabase(t, at, "fairway")
			return config.Store{Kind: config.StoreInflux, Influx: config.Influx{URL: at, Bucket: "fairway/autogen"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overServer(t, store(t))
		})
	}
}

func overServer(t *testing.T, store config.Store) {
	c := testConf(t)
	store.Sync = c.Store.Sync
	c.Store = store
	c.Forwarder.PeakBytesPerSec = 1000
	c.Nodes = []topology.Node{{ID: "fwd1", Role: topology.Forwarder}} // else a replay knows it once it reports
	c.Access.Tokens = []config.Token{{Name: "agents", Role: access.RoleAgent, SHA256: access.HashToken(storesToken)}}
	log := &lines{}
	open := func(c *config.Config) *daemon {
		t.Helper()
		d, err := openDaemon(c, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open(c)
	now := time.Now().Truncate(time.Second)
	sent := now.Add(-time.Minute)
	send(t, d, sent, now)
	faces, err := client.New("unix:"+c.Listen.Socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer faces.Close()
	seen := func(faces *client.Client, what string, look func(context.Context) error) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			err := look(t.Context())
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	row := func(o api.Overview, err error) error {
		if err != nil || len(o.Forwarders) != 1 || o.Forwarders[0].ID != "fwd1" {
			return fmt.Errorf("%+v, %w", o.Forwarders, err)
		}
		return nil
	}
	seen(faces, "overview", func(ctx context.Context) error { return row(faces.Overview(ctx)) })
	past := func(faces *client.Client) {
		t.Helper()
		seen(faces, "replay", func(ctx context.Context) error {
			return row(faces.OverviewAt(ctx, sent.Add(20*time.Second)))
		})
		seen(faces, "series", func(ctx context.Context) error {
			s, err := faces.Series(ctx, collector.ReadBytes, []topology.NodeID{"fwd1"}, sent, now)
			if err != nil || len(s["fwd1"]) != 60 {
				return fmt.Errorf("%d seconds, %w", len(s["fwd1"]), err)
			}
			return nil
		})
		for _, bucket := range []time.Duration{time.Hour, 10 * time.Minute} { // occupancy, and the calendar's cells
			seen(faces, "occupancy", func(ctx context.Context) error {
				o, err := faces.Occupancy(ctx, time.Hour, bucket)
				if err != nil || len(o.Layer) == 0 || o.Layer[0].Mean != 1 { // 900 of 1,000 bytes/s in each second
					return fmt.Errorf("%+v, %w", o, err)
				}
				return nil
			})
		}
	}
	past(faces)

	viewing := *c
	if err := view.Prepare(&viewing, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	viewing.StateDir = t.TempDir()
	viewing.Access.Anonymous = "viewer"
	v := open(&viewing)
	defer v.Close()
	at, err := client.New("http://"+v.listeners.Addr(access.TCP), "")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	send(t, d, time.Now().Truncate(time.Second).Add(-2*time.Second), time.Now().Truncate(time.Second))
	seen(at, "the view's overview", func(ctx context.Context) error {
		o, err := at.Overview(ctx)
		if err == nil && !strings.HasPrefix(o.Notice, "a view of the store") {
			return fmt.Errorf("the notice is %q", o.Notice)
		}
		return row(o, err)
	})
	past(at)
	if _, err := at.Exclude(t.Context(), "fwd1", time.Hour, "a reason that is long enough"); err == nil {
		t.Error("a view excludes a forwarder")
	}
	req, _ := http.NewRequest(http.MethodPost, "http://"+v.listeners.Addr(access.TCP)+"/api/v2/write",
		strings.NewReader("fairway,node=fwd1 read_bytes=1"))
	req.Header.Set("Authorization", "Token "+storesToken)
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode < 400 {
		t.Errorf("a view takes lines: %v, %v", res, err)
	}

	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(c)
	defer d.Close()
	if !strings.Contains(log.String(), "the detectors go on from their saved state") {
		t.Errorf("the detectors begin anew: %s", log)
	}
	past(faces)
}

// send streams fwd1's seconds from one time to another and returns when they are acknowledged.
func send(t *testing.T, d *daemon, from, to time.Time) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	dir, err := os.MkdirTemp("", "fairway-spool")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	spool, err := stream.OpenSpool(dir, 0, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	for at := from; at.Before(to); at = at.Add(time.Second) {
		f := collector.Frame{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at.UnixMilli(),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 600},
				{Metric: collector.WriteBytes, Value: 300}, {Metric: collector.MetaOps, Value: 5}}}
		if err := spool.Append([]collector.Frame{f}); err != nil {
			t.Fatal(err)
		}
	}
	c := &stream.Client{URL: "ws://" + d.listeners.Addr(access.TCP), Token: storesToken, Node: "fwd1",
		Role: topology.Forwarder, Spool: spool, Log: quiet}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	drained, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := c.Drain(drained); err != nil {
		t.Errorf("%v; %+v", err, c.State())
	}
	stop()
	if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
