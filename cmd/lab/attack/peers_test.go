package attack

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// freePort is an address of this host that nobody listens at, below the ports that outgoing connections take.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// threeDaemons starts a cluster; reach is where the second daemon's file says that the first is, as the wire does that
// somebody sits on. at are where they listen for each other.
func threeDaemons(t *testing.T, more string, reach func(at string) string) (all []*site, at []string) {
	t.Helper()
	names := []string{"a", "b", "c"}
	for range names {
		at = append(at, freePort(t))
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-three-daemons-in-a-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		text := fmt.Sprintf("%s\n[cluster]\nname = %q\nsecret_file = %q\n", more, name, secret)
		for j, other := range names {
			addr := at[j]
			if i == 1 && j == 0 && reach != nil {
				addr = reach(addr)
			}
			text += fmt.Sprintf("[[cluster.daemon]]\nname = %q\naddr = %q\n", other, addr)
		}
		all = append(all, prepare(t, text))
	}
	for _, s := range all {
		s.launch()
	}
	for _, s := range all {
		if ready, log := s.ready(2 * time.Minute); !ready {
			t.Fatalf("a daemon of three is not ready: %s", log)
		}
	}
	return all, at
}

// leads waits until every daemon knows a leader.
func leads(t *testing.T, all []*site) {
	t.Helper()
	for _, s := range all {
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			a := s.askLocal("GET", "/api/v1/checks", "")
			if strings.Contains(a.body, "leads in term") && !strings.Contains(a.body, "no leader") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("nobody leads: %s", a.body[max(0, len(a.body)-900):])
			}
		}
	}
}

// asOperator is a request for a standing approval in an operator's name, as one daemon passes it on to another.
func asOperator() string {
	caller := base64.StdEncoding.EncodeToString([]byte(
		`{"person":{"name":"script","role":"operator","via":"token"},"remote":"unix"}`))
	body := `{"app":"vasp","user":"alice","ttl":"720h","reason":"because I say so"}`
	return fmt.Sprintf("POST /api/v1/standing HTTP/1.1\r\nHost: b\r\nFairway-Caller: %s\r\n"+
		"Idempotency-Key: k%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", caller,
		time.Now().UnixNano(), len(body), body)
}

// relay sits between two daemons: it passes on what they say to prove themselves, and speaks on by itself.
type relay struct {
	to string
	l  net.Listener

	mu  sync.Mutex
	got []string // answers to its requests
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{to: to, l: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.between(c)
		}
	}()
	return r
}

// between passes bytes on until the two have proved themselves, and then asks in an operator's name.
func (r *relay) between(caller net.Conn) {
	defer caller.Close()
	called, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer called.Close()
	var wait sync.WaitGroup
	back := bufio.NewReader(called)
	wait.Go(func() { _, _ = io.Copy(called, caller) })
	// What a daemon answers before requests come: at most two lines where it proves itself in lines.
	_ = called.SetReadDeadline(time.Now().Add(2 * time.Second))
	for range 2 {
		line, err := back.ReadString('\n')
		if _, werr := io.WriteString(caller, line); err != nil || werr != nil {
			break
		}
	}
	_ = called.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(called, asOperator()); err == nil {
		text, _ := back.ReadString('\n')
		r.mu.Lock()
		r.got = append(r.got, text)
		r.mu.Unlock()
	}
	caller.Close()
	wait.Wait()
}

func (r *relay) answers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// TestAttackPeers: a host on the way between two daemons that has no secret relays what they prove, and then asks in
// an operator's name; another reaches the port at which they listen for each other, and takes what connections there
// are or says what it likes.
func TestAttackPeers(t *testing.T) {
	var r *relay
	all, at := threeDaemons(t, "", func(at string) string {
		r = newRelay(t, at)
		return r.l.Addr().String()
	})
	leads(t, all)
	attack(t, all[2], "a host between two daemons", func() string {
		for range 3 {
			all[1].askLocal("GET", "/api/v1/checks", "") // it asks the others, through the relay
		}
		time.Sleep(3 * time.Second)
		for _, text := range r.answers() {
			if strings.Contains(text, "HTTP/1.1 2") {
				t.Errorf("the relay's request was answered: %q", text)
			}
		}
		for i, s := range all {
			if a := s.askLocal("GET", "/api/v1/standing", ""); strings.Contains(a.body, "alice") {
				t.Errorf("daemon %d has the relay's approval: %s", i, a.body)
			}
		}
		return "nothing"
	})
	attack(t, all[2], "a host at the daemons' own port", func() string {
		const stranger = "pay-the-ransom-to-eve"
		for _, hello := range []string{"", "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
			`{"name":"a","use":"http","refused":"` + stranger + `"}` + "\n"} {
			c, err := net.Dial("tcp", at[1])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, hello+asOperator())
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			text, _ := io.ReadAll(c)
			if c.Close(); strings.Contains(string(text), "HTTP/1.1 2") {
				t.Errorf("after %q it is answered %q", hello, text)
			}
		}
		for _, s := range all {
			if o := s.askLocal("GET", "/api/v1/overview", ""); strings.Contains(o.body, stranger) {
				t.Errorf("a stranger's words are shown: %s", o.body)
			}
		}
		if !strings.Contains(tail(all[1].log.Name(), 1<<20), "was refused") {
			t.Error("nothing is in the log")
		}
		return "refused"
	})
}

// TestAttackPeersAnswer: a host that has taken a daemon's address answers in its place, and what it says is not shown.
func TestAttackPeersAnswer(t *testing.T) {
	const stranger = "pay-the-ransom-to-eve"
	all, _ := threeDaemons(t, "", func(string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "fairway-cluster 1 nonce\n")
				_, _ = bufio.NewReader(io.LimitReader(c, 1<<12)).ReadString('\n')
				_, _ = io.WriteString(c, `{"name":"a","mac":"","refused":"`+stranger+`"}`+"\n")
				c.Close()
			}
		}()
		return l.Addr().String()
	})
	leads(t, all)
	for _, path := range []string{"/api/v1/checks", "/api/v1/overview"} {
		if a := all[1].askLocal("GET", path, ""); strings.Contains(a.body, stranger) {
			t.Errorf("%s shows a stranger's words: %.2000s", path, a.body)
		}
	}
}

// TestAttackPeersConnections: a host that reaches the daemons' own port holds as many connections as it gets.
func TestAttackPeersConnections(t *testing.T) {
	const files, tries = 1200, 1500
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-three-daemons-in-a-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	s := prepare(t, fmt.Sprintf("[cluster]\nname = \"a\"\nsecret_file = %q\n"+
		"[[cluster.daemon]]\nname = \"a\"\naddr = %q\n"+
		"[[cluster.daemon]]\nname = \"b\"\naddr = \"127.0.0.1:1\"\n"+
		"[[cluster.daemon]]\nname = \"c\"\naddr = \"127.0.0.1:2\"\n", secret, at))
	s.enter = []string{"setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "prlimit",
		fmt.Sprintf("--nofile=%d:%d", files, files)}
	s.start()
	attack(t, s, "1,500 connections to the daemons' own port", func() string {
		var held []net.Conn
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.6.1")}, Timeout: time.Second}
		defer func() {
			for _, c := range held {
				c.Close()
			}
		}()
		for range tries {
			if c, err := from.Dial("tcp", at); err == nil {
				held = append(held, c)
			}
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid.Load()))
		if err != nil || len(open) > files*3/4 {
			t.Errorf("the daemon has %d files open, of %d: %v", len(open), files, err)
		}
		if !strings.Contains(tail(s.log.Name(), 1<<20), "a connection was closed at once") {
			t.Error("nothing is in the log")
		}
		if a := s.ask("GET", "/healthz", "", ""); a.code != http.StatusOK {
			t.Errorf("others get %d %s", a.code, a.body)
		}
		return fmt.Sprintf("%d files of the daemon's", len(open))
	})
}
