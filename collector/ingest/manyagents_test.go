package ingest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
)

// TestMain lets the test's own binary be many agents, in a process of their own: each is a real
// connection, and one process may not have as many files open as both ends need.
func TestMain(m *testing.M) {
	if url := os.Getenv("FAIRWAY_TEST_AGENTS_OF"); url != "" {
		n, err := strconv.Atoi(os.Getenv("FAIRWAY_TEST_AGENTS"))
		if err == nil {
			err = beAgents(url, n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func name(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("cn%05d", i)) }

// failing is one agent in a hundred.
func failing(i int) bool { return i%100 == 7 }

// beAgents connects n agents, says "ready", and carries orders out until standard input ends.
func beAgents(url string, n int) error {
	dialer := websocket.Dialer{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}
	var all sync.WaitGroup
	room, errs := make(chan struct{}, 64), make(chan error, n)
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			ws, _, err := dialer.Dial(url, nil)
			if err != nil {
				errs <- fmt.Errorf("agent %d: %w", i, err)
				return
			}
			hello, err := wire.Append(nil, wire.Hello{Node: name(i), Role: topology.Compute})
			if err == nil {
				err = ws.WriteMessage(websocket.BinaryMessage, hello)
			}
			if err != nil {
				errs <- err
				return
			}
			go obey(ws, i)
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func obey(ws *websocket.Conn, i int) {
	var d wire.Decoder
	for {
		_, msg, err := ws.ReadMessage()
		if err != nil {
			return
		}
		m, err := d.Decode(msg)
		o, ok := m.(wire.Order)
		if err != nil || !ok {
			continue
		}
		r := wire.OrderResult{ID: o.ID, Err: "mount: connection refused"}
		if !failing(i) {
			var q wire.RemapOrder
			if err := json.Unmarshal(o.Body, &q); err == nil {
				r.OK, r.Err = true, ""
				r.Body, _ = json.Marshal(wire.RouteAnswer{Forwarder: q.Forwarder, Generation: 2})
			}
		}
		if msg, err = wire.Append(nil, r); err == nil {
			err = ws.WriteMessage(websocket.BinaryMessage, msg)
		}
		if err != nil {
			return
		}
	}
}

type nowhere struct{}

func (nowhere) Append(context.Context, []collector.Frame) error { return nil }

// TestManyAgentsAreToldAtOnce moves a plan of as many nodes as there are agents, each behind a
// connection of its own over loopback; one in a hundred refuses, and every one is accounted for.
// FAIRWAY_AGENTS=16384 for the size of the bar.
func TestManyAgentsAreToldAtOnce(t *testing.T) {
	n := 512
	if text := os.Getenv("FAIRWAY_AGENTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	hub := ingest.New(ingest.Config{Store: nowhere{}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.Serve(w, r, ingest.Speaker{Name: "agents", Limits: ingest.DefaultLimits()})
	}))
	defer server.Close()
	defer hub.Close()
	startAgents(t, "ws"+strings.TrimPrefix(server.URL, "http"), n)
	for i := range n {
		for end := time.Now().Add(30 * time.Second); !hub.Connected(name(i)); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("agent %s is not connected", name(i))
			}
		}
	}
	addr := func(topology.ForwarderID) (string, bool) { return "10.0.0.2:564", true }
	d := agent.New(hub, addr, driver.DefaultFan())
	plan := remap.Plan{ID: "P-000001"}
	for i := range n {
		plan.Moves = append(plan.Moves, remap.Move{Node: name(i), From: "fwd1", To: "fwd2"})
	}
	if _, err := d.Preview(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := make(map[topology.NodeID]remap.Result, n)
	begun := time.Now()
	err := d.Apply(t.Context(), plan, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		got[r.Node] = r
	})
	took := time.Since(begun)
	if err != nil || len(got) != n {
		t.Fatalf("%d of %d accounted for, %v", len(got), n, err)
	}
	failed := 0
	for i := range n {
		r := got[name(i)]
		if r.OK == failing(i) || !r.OK && (r.Tries != 3 || !strings.Contains(r.Error, "connection refused")) {
			t.Errorf("%+v", r)
		}
		if !r.OK {
			failed++
		}
	}
	t.Logf("%d agents ordered in %s, %d of them failed after 3 tries each", n, took.Round(time.Millisecond), failed)
}

// startAgents starts the process of the agents and waits until all are connected.
func startAgents(t *testing.T, url string, n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAIRWAY_TEST_AGENTS_OF="+url, fmt.Sprint("FAIRWAY_TEST_AGENTS=", n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agents' process: %v", err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the agents answered %q, %v", line, err)
	}
}
