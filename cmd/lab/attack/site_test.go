package attack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/cmd/lab/programs"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/webui/access"
)

// long attacks at full size, beside the simulated machine of full size.
var long = os.Getenv("FAIRWAY_ATTACK") == "full"

// Secrets of the site's tokens.
const (
	manySecret     = "the-agents-that-speak-for-many-nodes"
	oneSecret      = "the-agent-of-one-compute-node-only"
	viewerSecret   = "a-viewers-token-for-a-dashboard"
	operatorSecret = "an-operators-token-for-a-script"
)

// site is a fairwayd process with a few forwarders and compute nodes.
type site struct {
	t      *testing.T
	dir    string
	addr   string
	socket string
	cmd    *exec.Cmd
	pid    atomic.Int64
	ended  chan struct{}
	log    *os.File
	tls    *tls.Config // of who trusts the daemon; nil: it speaks clear text
	enter  []string    // what starts the daemon elsewhere, with its command as further arguments
	local  http.Client // by the unix socket, as the daemon's own user
	wait   sync.WaitGroup
}

// binary is the path of a program. FAIRWAY_ATTACKED is a directory with programs of another version to attack instead.
func binary(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv("FAIRWAY_ATTACKED"); dir != "" && name == "fairwayd" {
		return filepath.Join(dir, name)
	}
	path, err := programs.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newSite starts a daemon with more settings.
func newSite(t *testing.T, more string) *site {
	t.Helper()
	s := prepare(t, more)
	s.start()
	return s
}

// prepare is a site whose daemon is not started yet.
func prepare(t *testing.T, more string) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "attack") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, addr: l.Addr().String(), socket: filepath.Join(dir, "sock")}
	l.Close()
	s.local.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}
	conf := fmt.Sprintf("state_dir = %q\n[listen]\nsocket = %q\nhttp = %q\n[store]\nsync = \"50ms\"\n",
		filepath.Join(dir, "state"), s.socket, s.addr)
	conf += "[access]\nanonymous = \"viewer\"\n"
	for _, token := range []struct{ name, role, secret, more string }{
		{"many", "agent", manySecret, ""}, {"one", "agent", oneSecret, "nodes = [\"cn1\"]\n"},
		{"dashboard", "viewer", viewerSecret, ""}, {"script", "operator", operatorSecret, ""},
	} {
		conf += fmt.Sprintf("[[access.token]]\nname = %q\nrole = %q\nsha256 = %q\n%s", token.name, token.role,
			access.HashToken(token.secret), token.more)
	}
	for i := range 4 {
		conf += fmt.Sprintf(
			"[[node]]\nid = \"fwd%d\"\nrole = \"forwarder\"\n[[node]]\nid = \"cn%d\"\nrole = \"compute\"\n",
			i+1, i+1)
	}
	if long { // the forwarders of the machine beside it
		for _, f := range bigMachine(t).Machine().ByRole(topology.Forwarder) {
			conf += fmt.Sprintf("[[node]]\nid = %q\nrole = \"forwarder\"\n", f.ID)
		}
	}
	conf += "[default_mapping]\ncn1 = \"fwd1\"\ncn2 = \"fwd2\"\ncn3 = \"fwd3\"\ncn4 = \"fwd4\"\n"
	if err := os.WriteFile(filepath.Join(dir, "fairwayd.toml"), []byte(conf+more), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		s.wait.Wait()
		if s.log != nil {
			s.log.Close()
			if t.Failed() {
				t.Logf("the daemon's log ends:\n%s", tail(s.log.Name(), 4000))
			}
		}
		os.RemoveAll(dir)
	})
	return s
}

func tail(path string, n int) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-n):])
}

// start starts the daemon and returns how long it took to be ready.
func (s *site) start() time.Duration {
	s.t.Helper()
	begun := time.Now()
	s.launch()
	if ready, log := s.ready(2 * time.Minute); !ready {
		s.t.Fatalf("the daemon is not ready after %s: %s", time.Since(begun), log[max(0, len(log)-2000):])
	}
	return time.Since(begun)
}

// launch starts the daemon with a new log.
func (s *site) launch() {
	s.t.Helper()
	if s.log != nil {
		s.log.Close()
	}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		s.t.Fatal(err)
	}
	args := slices.Concat(s.enter, []string{binary(s.t, "fairwayd"), "run", "--config",
		filepath.Join(s.dir, "fairwayd.toml")})
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.pid.Store(int64(s.cmd.Process.Pid))
	ended, c := make(chan struct{}), s.cmd
	s.ended = ended
	go func() { _ = c.Wait(); close(ended) }()
}

// ready waits until the daemon is ready or has ended; then the log says why.
func (s *site) ready(within time.Duration) (ready bool, log string) {
	for end := time.Now().Add(within); time.Now().Before(end) && !s.gone(); time.Sleep(5 * time.Millisecond) {
		if res, err := s.local.Get("http://unix/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return true, ""
			}
		}
	}
	return false, tail(s.log.Name(), 1<<20)
}

// gone says that the daemon has ended.
func (s *site) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// kill is kill -9.
func (s *site) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
		s.local.CloseIdleConnections()
	}
}

// status reads a number of kB from the daemon's status, in bytes.
func (s *site) status(field string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid.Load()))
	found := regexp.MustCompile(field + `:\s+(\d+)`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	kb, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kb << 10
}

func (s *site) cpu() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid.Load()))
	_, rest, ok := strings.Cut(string(text), ") ")
	if fields := strings.Fields(rest); ok && len(fields) > 12 {
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		return time.Duration(user+system) * time.Second / 100 // USER_HZ
	}
	return 0
}

// answer is what a request got.
type answer struct {
	code  int
	body  string
	after string // Retry-After
}

// ask sends one request over TCP; token "" is anonymous.
func (s *site) ask(method, path, token, body string, headers ...string) answer {
	return s.askBy(http.DefaultClient, "http://"+s.addr, method, path, token, body, headers...)
}

// askLocal sends one over the unix socket.
func (s *site) askLocal(method, path, body string) answer {
	return s.askBy(&s.local, "http://unix", method, path, "", body, "Idempotency-Key",
		fmt.Sprint(time.Now().UnixNano()))
}

func (s *site) askBy(c *http.Client, base, method, path, token, body string, headers ...string) answer {
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return answer{body: err.Error()}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		if strings.Contains(body, "query=") {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{res.StatusCode, string(text), res.Header.Get("Retry-After")}
}

// agent is a client of the wire protocol that says what it likes.
type agent struct {
	ws  *websocket.Conn
	seq uint64
	dec wire.Decoder
}

func (s *site) agent(t *testing.T, token string, node topology.NodeID, role topology.Role) *agent {
	t.Helper()
	d, scheme := websocket.Dialer{TLSClientConfig: s.tls}, "ws"
	if s.tls != nil {
		scheme = "wss"
	}
	ws, _, err := d.Dial(scheme+"://"+s.addr+"/api/v1/ingest", http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	a := &agent{ws: ws}
	msg, err := wire.Append(nil, wire.Hello{Node: node, Role: role, FirstSeq: 1, Instance: string(node)})
	if err == nil {
		err = ws.WriteMessage(websocket.BinaryMessage, msg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write sends frames and waits for nothing.
func (a *agent) write(frames []collector.Frame) error {
	a.seq++
	msg, err := wire.Append(nil, &wire.Frames{Seq: a.seq, Frames: frames})
	if err != nil {
		return err
	}
	return a.ws.WriteMessage(websocket.BinaryMessage, msg)
}

// send sends frames and returns the daemon's answer to them: wire.Ack, wire.Reject or the connection's end.
func (a *agent) send(frames []collector.Frame, within time.Duration) (any, error) {
	if err := a.write(frames); err != nil {
		return nil, err
	}
	a.ws.SetReadDeadline(time.Now().Add(within))
	for {
		_, b, err := a.ws.ReadMessage()
		if err != nil {
			return nil, err
		}
		m, err := a.dec.Decode(b)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case wire.Ack:
			if m.Seq >= a.seq {
				return m, nil
			}
		case wire.Reject:
			return m, nil
		}
	}
}

// observed is the mapping that the daemon shows.
func (s *site) observed() map[string]string {
	var v struct {
		Observed map[string]string `json:"observed_mapping"`
	}
	if err := json.Unmarshal([]byte(s.askLocal("GET", "/api/v1/machine", "").body), &v); err != nil {
		s.t.Error(err)
	}
	return v.Observed
}
