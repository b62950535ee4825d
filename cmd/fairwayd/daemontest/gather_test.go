package daemontest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/webui/access"
	"fairway/webui/api"
)

const nodeSecret = "the-secret-behind-nodes-own-tokens"

// gatheredSite is a daemon, and agents as processes with tokens of their own.
type gatheredSite struct {
	t   *testing.T
	d   *realDaemon
	dir string
	e   access.Enrolment
}

func newGatheredSite(t *testing.T) *gatheredSite {
	t.Helper()
	s := &gatheredSite{t: t, dir: t.TempDir()}
	s.e.Secrets = func() ([]string, error) { return []string{nodeSecret}, nil }
	secret := filepath.Join(s.dir, "secret")
	write(t, secret, nodeSecret)
	s.d = newRealDaemon(t, fmt.Sprintf("[access]\nanonymous = \"viewer\"\n[access.enrolment]\nsecret_file = %q\n",
		secret))
	return s
}

// agent starts a node's agent with more settings, and with gatherers to go through.
func (s *gatheredSite) agent(n topology.NodeID, daemon, more string, gatherers ...string) *exec.Cmd {
	s.t.Helper()
	return s.agentOf(n, fmt.Sprintf("url = \"ws://%s\"", daemon), more, gatherers...)
}

// agentOf is agent with the daemons as the settings have them.
func (s *gatheredSite) agentOf(n topology.NodeID, daemons, more string, gatherers ...string) *exec.Cmd {
	s.t.Helper()
	token, err := s.e.NodeToken(n, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.dir, string(n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, filepath.Join(dir, "token"), token)
	conf := filepath.Join(dir, "agent.toml")
	write(s.t, conf, fmt.Sprintf("node = %q\n[spool]\ndir = %q\n%s\n[daemon]\n%s\ntoken_file = %q\n"+
		"gatherers = [%s]\n", n, filepath.Join(dir, "spool"), more, daemons, filepath.Join(dir, "token"),
		strings.Join(gatherers, ", ")))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	c := exec.Command(binary(s.t, "fairway-agent"), "--config", conf)
	c.Stderr = log
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGCONT)
		_ = c.Process.Kill()
		_ = c.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); s.t.Failed() {
			s.t.Logf("the log of %s ends:\n%s", n, text[max(0, len(text)-2000):])
		}
	})
	return c
}

// through waits until a node's frames come through a gatherer; "" is directly.
func (s *gatheredSite) through(n, gatherer topology.NodeID) {
	s.t.Helper()
	for end := time.Now().Add(aWhile); ; time.Sleep(50 * time.Millisecond) {
		var got api.NodeView
		err := s.d.ask("/api/v1/nodes/"+string(n), "", nil, &got)
		if err == nil && got.Way != nil && got.Way.Gatherer == gatherer {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s does not come through %q: %+v, %v", n, gatherer, got.Way, err)
		}
	}
}

// whole waits until the store has seconds of a node until after a moment, and looks for gaps and doubles since first.
func (s *gatheredSite) whole(n topology.NodeID, first, until time.Time) {
	s.t.Helper()
	for end := time.Now().Add(aWhile); ; time.Sleep(200 * time.Millisecond) {
		seconds := s.seconds(n, first)
		if k := len(seconds); k > 0 && seconds[k-1] > until.UnixMilli() {
			gaps := 0
			for i, at := range seconds[1:] {
				if at == seconds[i] {
					s.t.Errorf("%s has a second twice: %d", n, at)
				}
				gaps += int(at-seconds[i])/1000 - 1
			}
			// A busy machine may keep the agent itself from a tick; an outage would take many.
			if gaps > 1 {
				s.t.Errorf("%s: %d seconds are missing of %d", n, gaps, len(seconds))
			}
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: the seconds after %s never came: %d did", n, until, len(seconds))
		}
	}
}

// seconds are those that the store has of the metric that the node always reports.
func (s *gatheredSite) seconds(n topology.NodeID, first time.Time) (out []int64) {
	var view api.NodeView
	if err := s.d.ask("/api/v1/nodes/"+string(n), "", nil, &view); err != nil {
		return nil
	}
	for name := range view.Values {
		var got api.SeriesAnswer
		path := fmt.Sprintf("/api/v1/series?node=%s&metric=%s&step=1s&from=%d&to=%d", n, name, first.UnixMilli(),
			time.Now().Add(time.Minute).UnixMilli())
		if err := s.d.ask(path, "", nil, &got); err != nil {
			continue
		}
		var times []int64
		for _, one := range got.Series {
			for _, p := range one.Points {
				if p.Value != nil {
					times = append(times, p.TimeMillis)
				}
			}
		}
		if len(times) > len(out) {
			out = times
		}
	}
	return out
}

// TestGatherersMayDie kills, freezes and cuts off the gatherer of nodes: no second is lost or doubled, and the daemon
// says through whom they come.
func TestGatherersMayDie(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newGatheredSite(t)
	cut := newCut(t, s.d.addr)
	at := [3]string{freePort(t), freePort(t), freePort(t)}
	gatherers := [3]*exec.Cmd{}
	var url [3]string
	for i := range gatherers {
		url[i] = fmt.Sprintf("\"ws://%s\"", at[i])
		daemon := s.d.addr
		if i == 2 {
			daemon = cut.addr
		}
		gatherers[i] = s.agent(topology.NodeID(fmt.Sprintf("rack%d", i+1)), daemon,
			fmt.Sprintf("[gather]\nlisten = %q", at[i]))
		takesNodes(t, http.DefaultClient, "http://"+at[i]+stream.GatherPath)
	}
	first := time.Now()
	// Each node has a gatherer of its own first; the killed one's has another one behind it.
	s.agent("cn1", s.d.addr, "", url[0], url[1])
	s.agent("cn2", s.d.addr, "", url[1])
	s.agent("cn3", s.d.addr, "", url[2])
	for i := range 3 {
		s.through(topology.NodeID(fmt.Sprintf("cn%d", i+1)), topology.NodeID(fmt.Sprintf("rack%d", i+1)))
	}
	if err := gatherers[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cut.off.Store(true)
	s.through("cn1", "rack2")
	s.through("cn3", "")
	if err := gatherers[1].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.through("cn1", "")
	s.through("cn2", "")
	fell := time.Now()
	for _, n := range []topology.NodeID{"cn1", "cn2", "cn3"} {
		s.whole(n, first, fell)
	}
	// What the frozen and the cut-off gatherer still held comes now, and changes nothing.
	if err := gatherers[1].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	cut.off.Store(false)
	thawed := time.Now().Add(2 * time.Second)
	for _, n := range []topology.NodeID{"cn1", "cn2", "cn3"} {
		s.whole(n, first, thawed)
		s.through(n, "")
	}
}

// takesNodes waits until a gatherer takes nodes.
func takesNodes(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for end := time.Now().Add(aWhile); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		res, err := client.Get(url)
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusBadRequest { // it wants a WebSocket, and has a daemon
			return
		}
	}
	t.Fatalf("no gatherer at %s", url)
}

// cut is a way to an address that can be cut off: what is sent then goes nowhere, and nothing ends.
type cut struct {
	addr string
	off  atomic.Bool
}

func newCut(t *testing.T, to string) *cut {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cut{addr: l.Addr().String()}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			all.Go(func() { c.pass(out, in) })
			all.Go(func() { c.pass(in, out) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.off.Store(false)
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return c
}

func (c *cut) pass(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		for c.off.Load() && err == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
