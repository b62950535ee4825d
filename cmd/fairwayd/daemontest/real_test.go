package daemontest

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
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/webui/access"
)

// binary is the path of one of fairway's programs.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// realDaemon is a fairwayd process that can be killed and started again.
type realDaemon struct {
	t      *testing.T
	conf   string // the configuration's file
	addr   string
	socket string
	cmd    *exec.Cmd
	log    *os.File
	http   http.Client
}

const agentSecret = "an-agent-secret-for-tests-only"

// newRealDaemon writes a configuration, with more at its end, and starts the daemon.
func newRealDaemon(t *testing.T, more string) *realDaemon {
	t.Helper()
	return newRealDaemonAt(t, "", more)
}

// newRealDaemonAt is newRealDaemon with a further listener for agents.
func newRealDaemonAt(t *testing.T, agents, more string) *realDaemon {
	t.Helper()
	d := configuredDaemon(t, agents, more)
	d.start()
	return d
}

// configuredDaemon writes a configuration, with more at its end.
func configuredDaemon(t *testing.T, agents, more string) *realDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "fairwayd") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	d := &realDaemon{t: t, conf: filepath.Join(dir, "fairwayd.toml"), addr: freePort(t),
		socket: filepath.Join(dir, "sock")}
	d.http.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
		}}
	if d.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	write(t, d.conf,
		fmt.Sprintf(
			"state_dir = %q\n[listen]\nsocket = %q\nhttp = %q\nagents = %q\nclear_text = true\n[store]\nsync = "+
				"\"50ms\"\n[[access.token]]\nname = \"agents\"\nrole = \"agent\"\nsha256 = %q\n%s",
			filepath.Join(dir, "state"), d.socket, d.addr, agents, access.HashToken(agentSecret), more))
	t.Cleanup(func() {
		d.kill()
		d.log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(d.log.Name())
			t.Logf("the daemon's log ends:\n%s", text[max(0, len(text)-8000):])
		}
		os.RemoveAll(dir)
	})
	return d
}

func (d *realDaemon) start() {
	d.t.Helper()
	d.cmd = exec.Command(binary(d.t, "fairwayd"), "run", "--config", d.conf)
	d.cmd.Stderr = d.log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for range 4000 { // a busy machine takes its time to start a process
		if resp, err := d.http.Get("http://unix/healthz"); err == nil {
			resp.Body.Close()
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	d.t.Fatal("the daemon does not answer within 100 s")
}

// kill is kill -9.
func (d *realDaemon) kill() {
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// ask sends one request over the socket; body nil is a GET. A status of 300 or more is an error.
func (d *realDaemon) ask(path, key string, body, into any) error {
	method, reader := http.MethodGet, io.Reader(nil)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, reader = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://unix"+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// testAgent is one node's agent: its spool and stream, and a mount that obeys orders.
type testAgent struct {
	node   topology.NodeID
	role   topology.Role
	spool  *stream.Spool
	client *stream.Client

	mu      sync.Mutex // guards everything that follows
	at      topology.ForwarderID
	gen     uint64
	changes int
	seconds map[int64]bool // that were spooled
}

// newAgent starts a node's stream to the daemon; it ends with the test.
func newAgent(t *testing.T, d *realDaemon, n topology.NodeID, role topology.Role, at topology.ForwarderID) *testAgent {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	spool, err := stream.OpenSpool(filepath.Join(t.TempDir(), string(n)), 0, quiet)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAgent{node: n, role: role, spool: spool, at: at}
	a.client = &stream.Client{URL: "ws://" + d.addr, Token: agentSecret, Node: n, Role: role, Spool: spool, Log: quiet,
		Orders: map[string]stream.OrderHandler{wire.OrderRemap: a.remap}}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := a.client.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wait.Wait()
		spool.Close()
	})
	return a
}

func (a *testAgent) remap(_ context.Context, o wire.Order) (json.RawMessage, error) {
	var r wire.RemapOrder
	if err := json.Unmarshal(o.Body, &r); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at != r.Forwarder {
		a.at = r.Forwarder
		a.gen++
		a.changes++
	}
	return json.Marshal(wire.RouteAnswer{Forwarder: a.at, Generation: a.gen})
}

// second spools one frame of the second that starts at ms.
func (a *testAgent) second(t *testing.T, ms int64, value float64) {
	t.Helper()
	f := collector.Frame{Node: a.node, Role: a.role, TimeMillis: ms, RoutesComplete: true,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: value},
			{Metric: collector.WriteBytes, Value: 2 * value}, {Metric: collector.MetaOps, Value: 0}}}
	a.mu.Lock()
	if a.seconds == nil {
		a.seconds = map[int64]bool{}
	}
	a.seconds[ms/1000] = true
	if a.role == topology.Compute {
		f.Routes = []collector.Route{{Client: a.node, Forwarder: a.at, Generation: a.gen + 1}}
	}
	a.mu.Unlock()
	if err := a.spool.Append([]collector.Frame{f}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
