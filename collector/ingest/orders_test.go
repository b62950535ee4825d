package ingest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// An agent may speak for many nodes, as a simulated machine does: what it cannot carry out at once
// waits, and nothing is refused.
func TestOrdersWaitForTheirAgent(t *testing.T) {
	const nodes = 10 * wire.MaxOrders
	hub := ingest.New(ingest.Config{Store: nowhere{}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.Serve(w, r, ingest.Speaker{Name: "agents", Limits: ingest.DefaultLimits()})
	}))
	defer server.Close()
	defer hub.Close()
	spool, err := stream.OpenSpool(filepath.Join(t.TempDir(), "spool"), 1<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	var frames []collector.Frame
	for i := range nodes {
		frames = append(frames, collector.Frame{Node: name(i), Role: topology.Compute,
			TimeMillis: time.Now().UnixMilli(),
			Samples:    []collector.Sample{{Metric: collector.WriteBytes, Value: 1}}})
	}
	if err := spool.Append(frames); err != nil {
		t.Fatal(err)
	}
	var busy, most atomic.Int64
	agent := stream.Client{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Node: "many", Role: topology.Compute,
		Spool: spool, Log: slog.New(slog.DiscardHandler),
		Orders: map[string]stream.OrderHandler{wire.OrderRoute: func(context.Context, wire.Order) (json.RawMessage,
			error) {
			now := busy.Add(1)
			defer busy.Add(-1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			return json.RawMessage("{}"), nil
		}}}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = agent.Run(ctx) })
	defer ended.Wait()
	defer stop()
	for end := time.Now().Add(30 * time.Second); !hub.Connected(name(nodes - 1)); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the agent's nodes are not connected")
		}
	}
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			if r, err := hub.Order(ctx, name(i),
				wire.Order{ID: "o-" + string(name(i)), Kind: wire.OrderRoute}); err != nil || !r.OK {
				t.Errorf("%s: %+v, %v", name(i), r, err)
			}
		})
	}
	all.Wait()
	if most.Load() < 2 || most.Load() > wire.MaxOrders {
		t.Errorf("%d orders were carried out at once, want 2 to %d", most.Load(), wire.MaxOrders)
	}
}
