package attack

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// encrypted starts a daemon with [listen.tls] and more settings.
func encrypted(t *testing.T, more string) *site {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(binary(t, "fairwayd"), "certificate", "--dir", dir,
		"127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := prepare(t, fmt.Sprintf("[listen.tls]\ncertificate = %q\nkey = %q\n", filepath.Join(dir, "server.pem"),
		filepath.Join(dir, "server.key"))+more)
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.tls = &tls.Config{RootCAs: x509.NewCertPool()}
	s.tls.RootCAs.AppendCertsFromPEM(pem)
	s.start()
	return s
}

// peer is a client of HTTP/2 that sends what it likes. What the daemon sends is read and dropped.
type peer struct {
	*http2.Framer
	conn *tls.Conn
	head bytes.Buffer
	enc  *hpack.Encoder
	end  chan error // why the connection ended
}

func (s *site) peer(t *testing.T, settings ...http2.Setting) *peer {
	t.Helper()
	conf := s.tls.Clone()
	conf.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", s.addr, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	p := &peer{Framer: http2.NewFramer(c, c), conn: c, end: make(chan error, 1)}
	p.enc = hpack.NewEncoder(&p.head)
	if err := p.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			f, err := p.ReadFrame()
			if away, ok := f.(*http2.GoAwayFrame); ok {
				err = fmt.Errorf("asked to go away: %s", away.ErrCode)
			}
			if err != nil {
				p.end <- err
				return
			}
		}
	}()
	return p
}

// block encodes a GET's header fields, and more of them.
func (p *peer) block(path string, more ...string) []byte {
	p.head.Reset()
	fields := append([]string{":method", "GET", ":scheme", "https", ":authority", "127.0.0.1", ":path", path}, more...)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // to memory
	}
	return p.head.Bytes()
}

// ended waits for the end of the connection, which the daemon has to bring about.
func (p *peer) ended(within time.Duration) error {
	select {
	case err := <-p.end:
		return err
	case <-time.After(within):
		return errNotEnded
	}
}

var errNotEnded = errors.New("the daemon has not ended the connection")

// TestAttackHandshakes holds handshakes open that never end.
func TestAttackHandshakes(t *testing.T) {
	s := encrypted(t, "")
	each := 100
	if long {
		each = 2000
	}
	attack(t, s, fmt.Sprint(2*each, " handshakes that do not begin or stop in the middle"), func() string {
		var open []net.Conn
		for i := range 2 * each {
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if i%2 == 1 { // a record of 512 bytes, of which the hello's first are there
				_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
			}
			open = append(open, c)
		}
		if !long {
			return "nothing"
		}
		closed := 0
		for _, c := range open {
			c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
				closed++
			}
		}
		if closed < len(open) {
			t.Errorf("%d of %d are closed", closed, len(open))
		}
		return fmt.Sprint(closed, " closed")
	})
}

// TestAttackHTTP2 sends what HTTP/2 lets a client send.
func TestAttackHTTP2(t *testing.T) {
	s := encrypted(t, "")
	scale := 1
	if long {
		scale = 20
	}
	attack(t, s, fmt.Sprint(10_000*scale, " requests that are reset at once"), func() string {
		p := s.peer(t)
		var err error
		n := 0
		for id := uint32(1); err == nil && n < 10_000*scale; id, n = id+2, n+1 {
			err = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block("/api/v1/nodes"),
				EndStream: true, EndHeaders: true})
			if err == nil {
				err = p.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		return fmt.Sprint(n, " sent")
	})
	attack(t, s, "20 connections with 300 requests each whose answers are not read", func() string {
		refused := 0
		for range 20 {
			p := s.peer(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for i := range uint32(300) {
				if err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1,
					BlockFragment: p.block("/api/v1/nodes"), EndStream: true, EndHeaders: true}); err != nil {
					refused++
					break
				}
			}
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		if a := s.askBy(&client, "https://"+s.addr, "GET", "/api/v1/overview", viewerSecret, ""); a.code != 200 {
			t.Errorf("a viewer meanwhile: %d %s", a.code, a.body)
		}
		return fmt.Sprint(refused, " connections ended")
	})
	attack(t, s, "headers that go on without end, on 4 connections", func() string {
		most := 0
		for range 4 {
			p := s.peer(t)
			err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block("/api/v1/nodes")})
			sent := 0
			for more := p.block("/", "x-filler", strings.Repeat("x", 15_000)); err == nil && sent < 64<<20*scale; {
				err = p.WriteContinuation(1, false, more)
				sent += len(more)
			}
			most = max(most, sent)
		}
		if most > 32<<20 {
			t.Errorf("the daemon read %d MB of one request's headers", most>>20)
		}
		return fmt.Sprint("at most ", most>>10, " kB read")
	})
	attack(t, s, "50 header lists of 40 MB in 15 kB each", func() string {
		p := s.peer(t)
		var err error
		n := 0
		for id := uint32(1); err == nil && n < 50; id, n = id+2, n+1 {
			b := bytes.Clone(p.block("/api/v1/nodes", "x-filler", strings.Repeat("x", 4000)))
			b = append(b, bytes.Repeat([]byte{0x80 | 62}, 15_000-len(b))...) // the newest entry of the table
			err = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b,
				EndStream: true, EndHeaders: true})
		}
		return fmt.Sprint(n, " sent")
	})
	attack(t, s, fmt.Sprint(50*scale, " connections whose first headers do not end"), func() string {
		var all []*peer
		for range 50 * scale {
			p := s.peer(t)
			if err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1,
				BlockFragment: p.block("/api/v1/nodes")}); err != nil {
				t.Error(err)
			}
			all = append(all, p)
		}
		if !long {
			return "nothing"
		}
		for _, p := range all {
			if err := p.ended(5 * time.Minute); errors.Is(err, errNotEnded) {
				t.Fatal(err)
			}
		}
		return "all ended"
	})
}

// TestAttackEnrolment enrols nodes without end by a stolen join token: no node's agent loses its place, and a node
// elsewhere enrols meanwhile.
func TestAttackEnrolment(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret-that-nobody-else-may-know-of-this-site\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := encrypted(t, fmt.Sprintf("[access.enrolment]\nsecret_file = %q\n", secret))
	join := joinToken(t, s)
	each, tries := 10, 20
	if long {
		each, tries = 100, 200
	}
	enrol := func(c *http.Client, node string) answer {
		body, _ := json.Marshal(map[string]string{"node": node})
		return s.askBy(c, "https://"+s.addr, "POST", "/api/v1/enroll", join, string(body))
	}
	from := func(addr string) *http.Client {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
		return &http.Client{Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: s.tls.Clone(),
			MaxIdleConnsPerHost: each}}
	}
	attack(t, s, fmt.Sprint(each*tries, " enrolments, ", each, " at a time, by a stolen join token"), func() string {
		c := from("127.0.0.1")
		defer c.CloseIdleConnections()
		codes := map[int]int{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for i := range each {
			wait.Go(func() {
				for n := range tries {
					a := enrol(c, []string{"cn2", fmt.Sprint("cn", 100+i*tries+n), "fwd1"}[n%3])
					mu.Lock()
					codes[a.code]++
					mu.Unlock()
				}
			})
		}
		other := from("127.0.9.1")
		defer other.CloseIdleConnections()
		if a := enrol(other, "cn3"); a.code != 200 {
			t.Errorf("another node: %d %s", a.code, a.body)
		}
		wait.Wait()
		// cn2's agent is connected, and the token is not for fwd1.
		want := each * (tries/3 + (tries-1)/3)
		if codes[200]+codes[403]+codes[429] != each*tries || codes[403]+codes[429] < want {
			t.Errorf("answers %v, want at least %d refused", codes, want)
		}
		return fmt.Sprint(codes)
	})
	if size := len(tail(s.log.Name(), 64<<20)); size > 4<<20 {
		t.Errorf("the log has %d bytes", size)
	}
}

// joinToken has the daemon's own program make a join token for compute nodes.
func joinToken(t *testing.T, s *site) string {
	t.Helper()
	out, err := exec.Command(binary(t, "fairwayd"), "enroll", "--config", filepath.Join(s.dir, "fairwayd.toml"),
		"--join", "cn*").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
