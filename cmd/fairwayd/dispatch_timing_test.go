package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/cmd/fairwayd/config"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// BenchmarkDispatchOverHTTP dispatches and ends jobs of 512 nodes that each get a plan for dedicated
// forwarders, through a whole daemon's unix socket, beside 39 running jobs, while every node's frame
// arrives once a second. cpu-us is the median of the process's CPU time while it waits for one: the
// daemon's, the client's, and whatever else the daemon does then.
func BenchmarkDispatchOverHTTP(b *testing.B) {
	for _, nodes := range []int{4096, 40960} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) { benchDispatch(b, nodes) })
	}
}

func benchDispatch(b *testing.B, compute int) {
	conf, frames := bigSite(b, compute)
	d, err := openDaemon(conf, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	feed := func() { // once a second, as agents do
		now := time.Now()
		for i := range frames {
			frames[i].TimeMillis = now.UnixMilli() - 1000
		}
		d.board.Take(frames, now)
	}
	ask := asker(b, conf.Listen.Socket)
	job := func(id string, i int) dispatch.Request {
		r := dispatch.Request{Job: topology.JobID(id), User: "wei", App: "ROMS"}
		for n := range 512 {
			r.Nodes = append(r.Nodes, topology.NodeID(fmt.Sprintf("c%05d", (i*512+n)%compute)))
		}
		return r
	}
	feed()
	for len(d.situation.Fresh().Load) < 240 { // a situation from before the frames serves for a moment
		time.Sleep(100 * time.Millisecond)
	}
	for i := range min(39, compute/512-1) {
		r := job(fmt.Sprint("running", i), i+1)
		r.App = "no history" // they claim no forwarders
		ask("/api/v1/dispatch", r, nil)
	}
	took := make([]time.Duration, 0, b.N)
	cpu := make([]time.Duration, 0, b.N)
	fed := time.Now()
	for i := range b.N {
		if time.Since(fed) > time.Second {
			feed()
			fed = time.Now()
		}
		r, a := job(fmt.Sprint(i), 0), dispatch.Answer{}
		begun, before := time.Now(), processCPU(b)
		ask("/api/v1/dispatch", r, &a)
		took = append(took, time.Since(begun))
		cpu = append(cpu, processCPU(b)-before)
		if a.Plan == "" {
			b.Fatalf("no plan: %s %s, %d idle wanted", a.Decision.Action, a.Refused, a.Decision.Wanted)
		}
		ask("/api/v1/jobs/"+string(r.Job)+"/end", nil, nil)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	slices.Sort(cpu)
	b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds()), "cpu-us")
}

// bigSite is a machine of 240 forwarders, half of them spare, with a past run of ROMS on 512 nodes.
func bigSite(b *testing.B, compute int) (*config.Config, []collector.Frame) {
	conf := testConf(b)
	conf.Name, conf.Default = "big", topology.Mapping{}
	conf.Dispatch.FwdPeakBW, conf.Dispatch.CNPeakBW = 2.5e9, 2.5e9/32
	var frames []collector.Frame
	for i := range 240 {
		id := topology.NodeID(fmt.Sprintf("fwd%03d", i))
		conf.Nodes = append(conf.Nodes, topology.Node{ID: id, Role: topology.Forwarder, Addr: string(id) + ":564"})
		frames = append(frames, collector.Frame{Node: id, Role: topology.Forwarder,
			Samples: []collector.Sample{{Metric: collector.ReadBytes}, {Metric: collector.WriteBytes},
				{Metric: collector.MetaOps}}})
	}
	for i := range compute {
		id, f := topology.NodeID(fmt.Sprintf("c%05d", i)), topology.ForwarderID(fmt.Sprintf("fwd%03d", i/512))
		conf.Nodes = append(conf.Nodes, topology.Node{ID: id, Role: topology.Compute})
		conf.Default[id] = f
		frames = append(frames, collector.Frame{Node: id, Role: topology.Compute, RoutesComplete: true,
			Routes:  []collector.Route{{Client: id, Forwarder: f, Generation: 1}},
			Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: 1e6}}})
	}
	if err := os.MkdirAll(conf.StateDir, 0o755); err != nil {
		b.Fatal(err)
	}
	h, _, err := history.Open(filepath.Join(conf.StateDir, "history"))
	if err != nil {
		b.Fatal(err)
	}
	queue, end := 1.0, time.Now().Add(-time.Hour)
	err = h.End(history.Run{Job: "old", User: "wei", App: "ROMS", Nodes: 512, Start: end.Add(-time.Hour), End: end,
		Profile: &history.Profile{WriteBytes: 1e12, IONodes: 256, MetaQueue: &queue, Mode: topology.ModeNN, Coverage: 1,
			From: "test"}})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
	return conf, frames
}

// asker posts to the daemon behind a unix socket and reads the answer into what is not nil.
func asker(b *testing.B, socket string) func(path string, body, into any) {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	b.Cleanup(c.CloseIdleConnections)
	asked := 0
	return func(path string, body, into any) {
		text, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://unix"+path, bytes.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		asked++
		req.Header.Set("Idempotency-Key", fmt.Sprint("bench-", asked))
		resp, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%s: %d %s %v", path, resp.StatusCode, got, err)
		}
		if into != nil {
			if err := json.Unmarshal(got, into); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func processCPU(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
