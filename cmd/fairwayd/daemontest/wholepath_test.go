package daemontest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

// speakers are the streams that bring the machine's frames, each those of its share of the nodes.
const speakers = 16

// TestWholePath streams a machine of TaihuLight's size at 1 Hz into a real daemon, through spools
// and WebSockets to the log, the live picture that a page watches, and whatever detects. It prints
// the daemon's CPU and memory, and wants every frame in the store, once. FAIRWAY_WHOLEPATH says how
// long:
//
//	FAIRWAY_WHOLEPATH=10m go test -run TestWholePath -v -timeout 15m ./cmd/fairwayd
func TestWholePath(t *testing.T) {
	text := os.Getenv("FAIRWAY_WHOLEPATH")
	if text == "" {
		t.Skip("takes minutes and a core: set FAIRWAY_WHOLEPATH=10m to measure")
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	d := newRealDaemon(t, "[access]\nanonymous = \"viewer\"\n[forwarder]\npeak_bytes_per_sec = 2.5e9\n")
	d.kill()
	conf, err := os.ReadFile(d.conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.conf, strings.Replace(string(conf), `sync = "50ms"`, `sync = "1s"`, 1))
	d.start()
	m, err := simmachine.New(simmachine.TaihuLight(1))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	for at := now.Add(-3 * time.Minute); at.Before(now); at = at.Add(time.Second) {
		m.Step(at)
	}
	shown := watchLive(t, d)
	machine := newAgents(t, d)
	before, begun := d.cpu(), time.Now()
	worst, lag, perMinute := time.Duration(0), 0.0, []string{}
	for n := range int(span.Seconds()) {
		at := begun.Truncate(time.Second).Add(time.Duration(n+1) * time.Second)
		time.Sleep(time.Until(at))
		machine.send(t, m.Step(at))
		worst = max(worst, time.Since(at))
		if n%60 == 59 {
			minute := d.cpu()
			perMinute = append(perMinute,
				fmt.Sprintf("%.0f%%", 100*(minute-before).Seconds()/time.Since(begun).Seconds()))
			lag = max(lag, float64(machine.pending()))
		}
	}
	elapsed := time.Since(begun)
	used := d.cpu() - before
	machine.drain(t)
	memory := d.peakMemory()
	t.Logf(
		"%d nodes, %d frames in %s: %.1f %% of one core (mean since the start after each minute: %s), %d MB at most "+
			"resident, %d live messages, the simulator at most %s late, at most %.0f messages waited",
		len(m.Machine().Nodes), machine.frames, elapsed.Round(time.Second), 100*used.Seconds()/elapsed.Seconds(),
		strings.Join(perMinute, " "), memory>>20, shown.Load(), worst.Round(time.Millisecond), lag)
	if got := d.metric("fairway_ingest_frames_total"); got != float64(machine.frames) {
		t.Errorf("the daemon took %.0f frames, %d were sent", got, machine.frames)
	}
	d.kill() // what was acknowledged must be on disk
	machine.check(t, d)
}

// watchLive is a page that looks at the overview and the grid.
func watchLive(t *testing.T, d *realDaemon) *atomic.Int64 {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+d.addr+"/api/v1/live?topics=overview,grid:bw", nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				return
			}
			seen.Add(1)
		}
	})
	t.Cleanup(func() { ws.Close(); wait.Wait() })
	return &seen
}

// agentSet is the machine's streams.
type agentSet struct {
	spools  [speakers]*stream.Spool
	clients [speakers]*stream.Client
	frames  int
	parts   [speakers][]collector.Frame
	counts  map[topology.NodeID]int64 // frames with samples, by node
	first   int64
	last    int64
}

func newAgents(t *testing.T, d *realDaemon) *agentSet {
	t.Helper()
	s := &agentSet{counts: map[topology.NodeID]int64{}}
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() { cancel(); wait.Wait() })
	for i := range speakers {
		spool, err := stream.OpenSpool(filepath.Join(t.TempDir(), fmt.Sprint("agent", i)), 0, quiet)
		if err != nil {
			t.Fatal(err)
		}
		s.spools[i] = spool
		s.clients[i] = &stream.Client{URL: "ws://" + d.addr, Token: agentSecret,
			Node: topology.NodeID(fmt.Sprint("agent", i)), Spool: spool, Log: quiet}
		wait.Go(func() {
			if err := s.clients[i].Run(ctx); err != nil {
				t.Error(err)
			}
			spool.Close()
		})
	}
	return s
}

// send spools one second, each agent its share.
func (s *agentSet) send(t *testing.T, frames []collector.Frame) {
	for i := range s.parts {
		s.parts[i] = s.parts[i][:0]
	}
	for i := range frames {
		k := i * speakers / len(frames)
		s.parts[k] = append(s.parts[k], frames[i])
		s.counts[frames[i].Node]++
	}
	if s.first == 0 {
		s.first = frames[0].TimeMillis
	}
	s.last = frames[0].TimeMillis
	s.frames += len(frames)
	for i, part := range s.parts {
		if err := s.spools[i].Append(part); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *agentSet) pending() (n uint64) {
	for _, spool := range s.spools {
		n += spool.Pending()
	}
	return n
}

func (s *agentSet) drain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, c := range s.clients {
		if err := c.Drain(ctx); err != nil || s.spools[i].Dropped() > 0 {
			t.Fatalf("agent %d: %v, %d dropped", i, err, s.spools[i].Dropped())
		}
	}
}

// check opens the store that the daemon left and counts every node's seconds.
func (s *agentSet) check(t *testing.T, d *realDaemon) {
	t.Helper()
	begun := time.Now()
	db, err := engine.Open(filepath.Join(filepath.Dir(d.conf), "state", "store"),
		engine.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	opened := time.Since(begun)
	nodes, err := db.Nodes(context.Background())
	if err != nil || len(nodes) != len(s.counts) {
		t.Fatalf("%d nodes in the store, want %d: %v", len(nodes), len(s.counts), err)
	}
	wrong, seconds := 0, int64(0)
	for _, n := range nodes {
		metric := n.Metrics[0] // every frame of a node has it
		out, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{n.Node}, Metric: metric,
			FromMillis: s.first, ToMillis: s.last + 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		if len(out) == 1 {
			got = int64(len(out[0].Points))
		}
		seconds += got
		if got != s.counts[n.Node] {
			if wrong++; wrong < 5 {
				t.Errorf("%s has %d seconds of %s, want %d", n.Node, got, metric, s.counts[n.Node])
			}
		}
	}
	t.Logf("after kill -9 the store opens in %s and has %d node seconds of %d; %d nodes are wrong; %d damages",
		opened.Round(time.Millisecond), seconds, s.frames, wrong, len(db.Damages()))
}

// cpu is the daemon's CPU time.
func (d *realDaemon) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const perSecond = 100 // USER_HZ
	return time.Duration(user+system) * time.Second / perSecond
}

// peakMemory is the most that was resident, in bytes.
func (d *realDaemon) peakMemory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	kb, _ := strconv.ParseInt(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindStringSubmatch(string(status))[1], 10, 64)
	return kb << 10
}

// metric reads one of the daemon's own counters.
func (d *realDaemon) metric(name string) float64 {
	res, err := d.http.Get("http://unix/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if err != nil || res.StatusCode != http.StatusOK || found == nil {
		d.t.Fatalf("no metric %s (%s, %v)", name, res.Status, err)
	}
	v, _ := strconv.ParseFloat(string(found[1]), 64)
	return v
}
