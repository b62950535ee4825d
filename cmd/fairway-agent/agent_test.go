package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/gorilla/websocket"

	"fairway/cmd/lab/programs"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// daemon is a stand-in for fairwayd that keeps frames in memory.
type daemon struct {
	*httptest.Server
	mu      sync.Mutex // guards everything that follows
	frames  []collector.Frame
	results []wire.OrderResult
}

func startDaemon(tb testing.TB, orders ...wire.Order) *daemon {
	tb.Helper()
	d := &daemon{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			http.Error(w, "unknown token", http.StatusUnauthorized)
			return
		}
		up := websocket.Upgrader{}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for _, o := range orders {
			b, _ := wire.Append(nil, o)
			conn.WriteMessage(websocket.BinaryMessage, b)
		}
		for {
			_, b, err := conn.ReadMessage()
			if err != nil {
				return
			}
			var dec wire.Decoder // its frames are kept
			m, err := dec.Decode(b)
			if err != nil {
				tb.Error(err)
				return
			}
			d.mu.Lock()
			switch m := m.(type) {
			case *wire.Frames:
				d.frames = append(d.frames, m.Frames...)
				b, _ := wire.Append(nil, wire.Ack{Seq: m.Seq})
				conn.WriteMessage(websocket.BinaryMessage, b)
			case wire.OrderResult:
				d.results = append(d.results, m)
			}
			d.mu.Unlock()
		}
	}))
	tb.Cleanup(d.CloseClientConnections)
	return d
}

func (d *daemon) seen() []collector.Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]collector.Frame(nil), d.frames...)
}

func (d *daemon) url() string { return "ws" + strings.TrimPrefix(d.URL, "http") }

// writeConfig makes a configuration file; more is appended.
func writeConfig(tb testing.TB, url, token, more string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(dir, "agent.toml")
	text := fmt.Sprintf("node = \"n1\"\n[daemon]\nurl = %q\ntoken_file = %q\n[spool]\ndir = %q\n%s", url,
		filepath.Join(dir, "token"), filepath.Join(dir, "spool"), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// binary is the agent as it is shipped.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := programs.Path("fairway-agent")
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func TestMisspeltSettingIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"role = \"compute\"\nrolle = \"x\"\n":                 `agent.toml:2: unknown setting "rolle"`,
		"[source.diod]\n\naddres = \"h:1\"\n":                 `agent.toml:3: unknown setting "source.diod.addres"`,
		"[source.didd]\naddr = \"h:1\"\n":                     `agent.toml:1: unknown setting "source.didd"`,
		"[deamon]\nurl = \"x\"\n[source.diod]\nurl = \"y\"\n": `agent.toml:4: unknown setting "source.diod.url"`,
		"role = \"forwader\"\n":                               `role = "forwader": want compute`,
		"role = compute\n":                                    "agent.toml:1",
		"[source.diod]\nadr = \"h:1\"\n":                      `did you mean "source.diod.addr"?`,
		"[source.diod]\nenabled = true\nworkers = 0\n":        "source.diod.workers = 0",
		"[orders]\nenabled = true\n": "orders.enabled by mount9p needs " +
			"source.mount.enabled",
		"[orders]\nenabled = true\nby = \"magic\"\n": `orders.by = "magic"`,
		"[orders]\nenabled = true\nby = \"ces\"\n":   `orders.by = "ces" is for protocol nodes`,
		"[routes]\nby = \"addresses\"\n":             `routes.by = "addresses" is for forwarders`,
		"[orders]\nenabled = true\nby = \"lnet\"\n":  "routes.net and orders.forwarders",
		"[orders]\nenabled = true\nby = \"remount\"\n": "orders.remount.point, orders.remount.type and " +
			"orders.forwarders",
		"[orders]\nenabled = true\nby = \"tcpproxy\"\n": "orders.tcpproxy: listen, forwarder and addr",
		"[orders]\nenabled = true\nby = \"relay\"\n":    `orders.by = "relay": it is called "tcpproxy" now`,
		"[orders]\nenabled = true\nby = \"mount\"\n":    `orders.by = "mount": it is called "remount" now`,
		"[source.lnet]\nroot = \"/a\"\n[source.lustre]\nroot = \"/b\"\n": "source.lnet.root and " +
			"source.lustre.root are one setting now, and differ: say it once, as root",
		"[source.procfs]\nskip_links = \"lo\"\n": "agent.toml",
	} {
		_, _, err := settings.Parse("agent.toml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "configuration") {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "agent.toml")
	if err := os.WriteFile(file, []byte("rolle = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"-c", file}, &out, &errs, keepAll); code != program.Usage ||
		!strings.Contains(errs.String(), file+":1") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	if code := execute(t.Context(), []string{"-c", file + "x"}, &out, &errs, keepAll); code != program.Usage {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}

// TestOldSettingsAreReadUnderNewNames: a file of before, its defaults printed in it, works, and each name is in a line.
func TestOldSettingsAreReadUnderNewNames(t *testing.T) {
	const text = `phase = "20ms"
[daemon]
url = "unix:///run/fairway/fairwayd.sock"
urls = ["wss://a:1", "wss://b:1"]
[spool]
max_bytes = 1048576
[routes]
root = "/"
[orders.lnet]
net = "tcp2"
[source.fwdmount]
control = "/run/m"
[source.diod]
uid = 7
skip_clients = ["mon1"]
[source.queue]
skip_clients = ["mon2"]
tables = true
[source.procfs]
root = "/host/proc"
nfs_client = true
[source.lustre]
root = "/host"
`
	c, _, err := settings.Parse("old.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.Source.SkipClients)
	if c.Root != "/host" || !slices.Equal(c.Daemon.addresses(), []string{"wss://a:1", "wss://b:1"}) ||
		c.Routes.Net != "tcp2" || c.Source.Mount.Control != "/run/m" || c.Source.UID != 7 ||
		!slices.Equal(c.Source.SkipClients, []string{"mon1", "mon2"}) {
		t.Errorf("it is read as %+v", c)
	}
	lines := strings.Join(program.Retirements("old.toml", []byte(text), &c), "\n")
	for _, line := range []string{"old.toml:1: the setting phase went",
		"old.toml:4: the setting daemon.urls is read as daemon.url",
		"old.toml:6: the setting spool.max_bytes went", "old.toml:8: the setting routes.root is read as root",
		"the setting orders.lnet.net is read as routes.net",
		"old.toml:11: the setting source.fwdmount is read as source.mount",
		"source.diod.uid is read as source.uid", "source.queue.skip_clients is read as source.skip_clients",
		"source.queue.tables went", "source.procfs.nfs_client went",
		"source.procfs.root is read as root without /proc"} {
		if !strings.Contains(lines, line) {
			t.Errorf("no line says %q:\n%s", line, lines)
		}
	}
	names := program.KnownSettings(&Config{})
	if n := len(names); n > 50 { // two of them tables of the site's own
		t.Errorf("%d settings: a further one takes the place of one that went", n)
	}
	for was := range c.Renamed() {
		if slices.Contains(names, was) {
			t.Errorf("%s has another name and is still a setting", was)
		}
	}
}

// TestPrintedConfigurationReadsBack: what `config` prints is a file that means the same, and every
// setting is explained.
func TestPrintedConfigurationReadsBack(t *testing.T) {
	file := writeConfig(t, "wss://h:1", "x",
		"[source.diod]\nenabled = true\nskip_clients = [\"mon1\", \"q\\\"uote\"]\n[source.procfs]\nskip_links = []\n")
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"config", "-c", file}, &out, &errs, keepAll); code != program.Done {
		t.Fatal(code, errs.String())
	}
	want, err := settings.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := settings.Parse("printed", out.Bytes())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v\n%s", err, got, want, &out)
	}
	var flat map[string]any
	meta, err := toml.Decode(out.String(), &flat)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "# \n") || len(meta.Keys()) < 25 {
		t.Errorf("%d keys; is a setting without help?\n%s", len(meta.Keys()), &out)
	}
}

// TestAgentStreams runs the real binary against a daemon: frames of whole seconds come, the last one
// when it is stopped, and nothing is left behind in the spool.
func TestAgentStreams(t *testing.T) {
	d := startDaemon(t)
	defer d.Close()
	cmd := exec.Command(binary(t), "-c", writeConfig(t, d.url(), "t0ken", ""))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if len(d.seen()) >= 3 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &log)
	}
	frames := d.seen()
	if len(frames) < 3 {
		t.Fatalf("%d frames\n%s", len(frames), &log)
	}
	for i, f := range frames {
		if f.Node != "n1" || f.TimeMillis%1000 != 0 || i > 0 && f.TimeMillis != frames[i-1].TimeMillis+1000 {
			t.Errorf("frame %d: %+v", i, f)
		}
		last := f.Sources[len(f.Sources)-1]
		if last.Name != "stream" || last.Duration < 0 || last.Duration > time.Second {
			t.Errorf("frame %d: the stream says %+v", i, last)
		}
	}
	if _, ok := frames[2].Value(collector.PSIIOSome); !ok {
		if _, ok = frames[2].Value(collector.LinkRxBytes); !ok && fileExists("/proc/net/dev") {
			t.Errorf("no samples of this machine: %+v", frames[2])
		}
	}
	if strings.Contains(log.String(), "t0ken") {
		t.Error("the token is in the log")
	}
}

func fileExists(p string) bool { _, err := os.Stat(p); return err == nil }

// TestBadSourceAndWrongToken: a diod that is not there and a token that is not right are named, the
// other source's seconds are kept.
func TestBadSourceAndWrongToken(t *testing.T) {
	d := startDaemon(t)
	defer d.Close()
	file := writeConfig(t, d.url(), "wrong", "[source.diod]\nenabled = true\naddr = \"127.0.0.1:1\"\n")
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"check", "-c", file}, &out, &errs, keepAll); code != program.Failed {
		t.Errorf("check: exit code %d", code)
	}
	for _, want := range []string{"127.0.0.1:1", "connection refused", "refused the token", "401", "source procfs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("check does not say %q:\n%s", want, &out)
		}
	}
	out.Reset()
	var found checked
	asked := []string{"check", "--json", "-c", file}
	if code := execute(t.Context(), asked, &out, &errs, keepAll); code != program.Failed {
		t.Errorf("check --json: exit code %d", code)
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || len(found.Sources) != 2 || len(found.Daemons) != 1 ||
		!found.Sources[0].Failed || found.Sources[1].Failed || !strings.Contains(found.Daemons[0].Error, "401") ||
		len(found.Metrics) == 0 {
		t.Errorf("check --json: %v: %s", err, &out)
	}
	out.Reset()
	if code := execute(t.Context(), []string{"--once", "-c", file}, &out, &errs, keepAll); code != program.Done {
		t.Errorf("--once: exit code %d, %s", code, &errs)
	}
	var f collector.Frame
	if err := json.Unmarshal(out.Bytes(), &f); err != nil || f.Node != "n1" || len(f.Sources) != 2 ||
		f.Sources[0].Failures == 0 {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestCheckSpeaksPlainly: a daemon that is not there is named without the names that Go gives to the calls that failed.
func TestCheckSpeaksPlainly(t *testing.T) {
	var out, errs bytes.Buffer
	file := writeConfig(t, "ws://127.0.0.1:1", "any", "")
	if code := execute(t.Context(), []string{"check", "-c", file}, &out, &errs, keepAll); code != program.Failed {
		t.Errorf("exit code %d", code)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "daemon") && (!strings.Contains(line, "127.0.0.1:1: connection refused") ||
			strings.Contains(line, "dial")) {
			t.Error(line)
		}
	}
}

// TestLustreNodeByConfiguration reads trees of counters where the file says they are.
func TestLustreNodeByConfiguration(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	counters := func(n int) {
		put("sys/kernel/debug/lnet/stats", fmt.Sprintf("0 28 0 %d %d 0 0 %d %d 0 0\n", n, n, 1000*n, 2000*n))
		put("proc/fs/lustre/llite/fs-ffff/stats",
			fmt.Sprintf("snapshot_time 1510782606.000000 secs.usecs\nread_bytes %d samples [bytes] 4096 4096 %d\n", n,
				4096*n))
	}
	line := "20.0.2.35 [2018-02-25 18:00:01]  [Trace]: queue length: 7 2018-02-25T10:00:00Z\n"
	put("trace", line)
	counters(1)
	more := fmt.Sprintf(
		"[source.procfs]\nenabled = false\n[source.lustre]\nenabled = true\nroot = %q\n[source.lnet]\nenabled = "+
			"true\nroot = %q\n"+
			"[source.lwfs]\nenabled = true\ntrace = %q\n", root, root, filepath.Join(root, "trace"))
	c, err := settings.Load(writeConfig(t, "ws://127.0.0.1:1", "t0ken", more))
	if err != nil {
		t.Fatal(err)
	}
	got := map[collector.Metric]float64{}
	for _, s := range newSources(c) {
		r := collector.Reading{Now: time.Unix(100, 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
		counters(3)
		line += line // the trace grows
		put("trace", line)
		time.Sleep(50 * time.Millisecond)
		r = collector.Reading{Now: time.Unix(101, 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
		counters(1)
		for _, v := range r.Samples {
			got[v.Metric] = v.Value
		}
	}
	if got[collector.ReadBytes] == 0 || got[collector.LinkRxBytes] == 0 || got[collector.QueueLen] != 7 {
		t.Errorf("the three sources reported %v", got)
	}
}

func TestOrdersNeedToBeEnabled(t *testing.T) {
	handlers := func(c Config) map[string]stream.OrderHandler {
		m, stop, err := startMover(c, slog.New(slog.DiscardHandler))
		if err != nil || m == nil {
			return nil
		}
		if stop != nil {
			t.Cleanup(func() { stop.Close() })
		}
		return node.Handlers(m, c.Orders.Enabled)
	}
	c := defaultConfig()
	if h := handlers(c); len(h) != 0 {
		t.Errorf("without a mount there are handlers: %v", h)
	}
	c.Source.Mount.Enabled = true
	if h := handlers(c); h[wire.OrderRemap] != nil || h[wire.OrderRoute] == nil {
		t.Errorf("by default a node can be moved, or not be asked: %v", h)
	}
	c.Orders.Enabled = true
	c.Source.Mount.Control = filepath.Join(t.TempDir(), "nobody")
	remap := handlers(c)[wire.OrderRemap]
	for body, want := range map[string]string{
		"{":                                   "order 7: body",
		`{"forwarder":"fwd2"}`:                "both are required",
		`{"forwarder":"fwd2","addr":"h:564"}`: "nobody",
	} {
		if _, err := remap(t.Context(), wire.Order{ID: "7", Body: []byte(body)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	c.Orders.By, c.Orders.Proxy = byTCPProxy, ProxyOpt{Listen: "127.0.0.1:0", Forwarder: "fwd1", Addr: "127.0.0.1:1"}
	if answer, err := handlers(c)[wire.OrderRoute](t.Context(), wire.Order{}); err != nil ||
		!strings.Contains(string(answer), "fwd1") {
		t.Errorf("the proxy's route: %s, %v", answer, err)
	}
}
