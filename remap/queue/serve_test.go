package queue

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/p9"
	"fairway/remap/policy/share"
)

// pipes is a listener and a dialler in memory: a client's connection says where it comes from.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

type named struct {
	net.Conn
	from string
}

func (n named) RemoteAddr() net.Addr {
	a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(n.from + ":1000"))
	return a
}

func (p *pipes) dial(from string) net.Conn {
	here, there := net.Pipe()
	p.accept <- named{there, from}
	return here
}

// frame makes a message of a type with a body.
func frame(kind byte, tag uint16, body []byte) []byte {
	b := make([]byte, p9.HeaderBytes+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	b[4] = kind
	binary.LittleEndian.PutUint16(b[5:], tag)
	copy(b[p9.HeaderBytes:], body)
	return b
}

func readMessage(r io.Reader) ([]byte, error) {
	head := make([]byte, p9.HeaderBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(head))
	copy(b, head)
	_, err := io.ReadFull(r, b[p9.HeaderBytes:])
	return b, err
}

// forwarder answers every request after service, on a few threads, as diod does.
type forwarder struct {
	threads chan struct{}
	service time.Duration
	most    int // requests seen at once
	mu      sync.Mutex
	now     int
}

// newForwarder has eight threads and takes 1 ms for a request; it belongs to the caller's bubble.
func newForwarder() *forwarder {
	return &forwarder{threads: make(chan struct{}, 8), service: time.Millisecond}
}

func (f *forwarder) dial(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	go f.serve(there)
	return here, nil
}

func (f *forwarder) serve(c net.Conn) {
	defer c.Close()
	var replies sync.Mutex
	for {
		m, err := readMessage(c)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.now++
		f.most = max(f.most, f.now)
		f.mu.Unlock()
		go func() {
			f.threads <- struct{}{}
			time.Sleep(f.service)
			<-f.threads
			f.mu.Lock()
			f.now--
			f.mu.Unlock()
			replies.Lock()
			defer replies.Unlock()
			c.Write(frame(m[4]+1, binary.LittleEndian.Uint16(m[5:]), nil))
		}()
	}
}

// work keeps depth writes of size bytes in flight until ctx ends.
func work(ctx context.Context, c net.Conn, depth, size int) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	send := make(chan uint16, depth)
	go func() {
		for tag := range send {
			if _, err := c.Write(frame(p9.TWrite, tag, make([]byte, writeData-p9.HeaderBytes+size))); err != nil {
				return
			}
		}
	}()
	defer close(send)
	for tag := range depth {
		send <- uint16(tag)
	}
	for {
		m, err := readMessage(c)
		if err != nil {
			return
		}
		send <- binary.LittleEndian.Uint16(m[5:])
	}
}

func num(x float64) *float64 { return &x }

// twoJobs have four nodes and one.
func twoJobs(policy string) Table {
	j := Table{Policy: policy, Jobs: []Job{{Row: share.Row{Job: "big", User: "a", Size: num(4)}},
		{Row: share.Row{Job: "small", User: "b", Size: num(1)}}}}
	for i := range 4 {
		j.Jobs[0].Clients = append(j.Jobs[0].Clients, netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)))
	}
	j.Jobs[1].Clients = []netip.Addr{netip.MustParseAddr("10.0.1.1")}
	return j
}

// bench runs a queue over a forwarder for a second and a half, in which that does 12,000 requests, and says
// what each job was served. Everything happens in the test's own time.
func bench(t *testing.T, table Table, run func(ctx context.Context, p *pipes)) (stats map[string]Served, f *forwarder) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f = newForwarder()
		r := New(Config{Dial: f.dial, Seed: 1})
		if err := r.Share(table); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		run(ctx, p)
		time.Sleep(1400 * time.Millisecond)
		f.mu.Lock()
		most := f.most // before the end, when requests of clients that have gone make room at once
		f.mu.Unlock()
		<-ctx.Done()
		stats = r.Stats()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // the forwarder ends what it has
		synctest.Wait()
		if r.inFlight != 0 || len(r.conns) != 0 || r.queue.length != 0 {
			t.Errorf("%d in flight, %d connections, %d waiting are left at the end", r.inFlight, len(r.conns),
				r.queue.length)
		}
		f.most = most
	})
	return stats, f
}

func start(ctx context.Context, p *pipes, from string, depth, size int) {
	c := p.dial(from)
	go work(ctx, c, depth, size)
}

// wantRatio allows what chance does to 12,000 draws.
func wantRatio(t *testing.T, stats map[string]Served, want float64) {
	t.Helper()
	got := float64(stats["big"].Bytes) / float64(stats["small"].Bytes)
	if math.Abs(got/want-1) > .08 {
		t.Errorf("big to small is %.3f to 1, want %g (%+v)", got, want, stats)
	}
}

func TestRatiosFollowThePolicy(t *testing.T) {
	even := func(ctx context.Context, p *pipes) { // both jobs ask for as much
		for i := range 4 {
			start(ctx, p, fmt.Sprint("10.0.0.", i+1), 16, 8000)
		}
		start(ctx, p, "10.0.1.1", 64, 8000)
	}
	bigger := func(ctx context.Context, p *pipes) { // every node asks for as much
		for i := range 4 {
			start(ctx, p, fmt.Sprint("10.0.0.", i+1), 32, 8000)
		}
		start(ctx, p, "10.0.1.1", 32, 8000)
	}
	mixed := func(ctx context.Context, p *pipes) { // the small job asks in small pieces
		for i := range 4 {
			start(ctx, p, fmt.Sprint("10.0.0.", i+1), 16, 8000)
		}
		start(ctx, p, "10.0.1.1", 100, 1000)
	}
	for _, c := range []struct {
		policy string
		load   func(context.Context, *pipes)
		want   float64
	}{
		{"", even, 1}, {"size-fair", even, 4}, {"", bigger, 4}, {"user-fair", bigger, 1},
	} {
		stats, f := bench(t, twoJobs(c.policy), c.load)
		wantRatio(t, stats, c.want)
		if f.most > DefaultWindow {
			t.Errorf("%d requests were at the forwarder at once", f.most)
		}
		if n := stats["big"].Requests + stats["small"].Requests; n < 11_900 {
			t.Errorf("policy %q served %d requests in 1.5 s, the forwarder does 12000", c.policy, n)
		}
	}
	// What a request costs is its data and itself: small ones do not win by their number.
	stats, _ := bench(t, twoJobs("job-fair"), mixed)
	big, small := stats["big"], stats["small"]
	spent := func(s Served) float64 { return float64(s.Bytes + s.Requests*requestCost) }
	if ratio := spent(big) / spent(small); math.Abs(ratio-1) > .08 {
		t.Errorf("big spent %.3f of what small did: %+v", ratio, stats)
	}
}

func TestALoneJobGetsEverything(t *testing.T) {
	stats, _ := bench(t, twoJobs("size-fair"),
		func(ctx context.Context, p *pipes) { start(ctx, p, "10.0.1.1", 32, 8000) })
	if s := stats["small"]; s.Requests < 11_900 || stats["big"].Requests != 0 {
		t.Errorf("the forwarder does 12000 requests in 1.5 s: %+v", stats)
	}
}

func TestClientsInNoJobShareToo(t *testing.T) {
	stats, _ := bench(t, twoJobs("job-fair"), func(ctx context.Context, p *pipes) {
		start(ctx, p, "10.0.0.1", 32, 8000)
		start(ctx, p, "172.16.0.1", 32, 8000)
		start(ctx, p, "172.16.0.2", 32, 8000)
	})
	if got := float64(stats["big"].Bytes) / float64(stats[""].Bytes); math.Abs(got-1) > .08 {
		t.Errorf("big to unknown is %.3f, want 1", got)
	}
}

// A policy can change while requests wait; none is lost and the new ratio holds from then on.
func TestPolicyChangesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForwarder()
		r := New(Config{Dial: f.dial})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		for i := range 4 {
			start(ctx, p, fmt.Sprint("10.0.0.", i+1), 16, 8000)
		}
		start(ctx, p, "10.0.1.1", 64, 8000)
		for _, c := range []struct {
			policy string
			want   float64
		}{{"size-fair", 4}, {"", 1}, {"size-fair", 4}} {
			if err := r.Share(twoJobs(c.policy)); err != nil {
				t.Fatal(err)
			}
			before := r.Stats()
			time.Sleep(1500 * time.Millisecond)
			after := r.Stats()
			for name, s := range after {
				s.Bytes -= before[name].Bytes
				after[name] = s
			}
			wantRatio(t, after, c.want)
		}
		cancel()
		<-done
		time.Sleep(time.Second)
	})
}

// A flush may not overtake what it flushes, and its reply ends both.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan net.Conn, 1)
		r := New(Config{Window: 2, Dial: func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			up <- there
			return here, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		client := p.dial("10.0.0.1")
		server := <-up
		go func() {
			client.Write(frame(p9.TWrite, 7, make([]byte, 100)))
			client.Write(frame(p9.TFlush, 8, []byte{7, 0}))
			client.Write(frame(p9.TRead, 9, make([]byte, 16)))
		}()
		for _, want := range []byte{p9.TWrite, p9.TFlush} {
			if m, err := readMessage(server); err != nil || m[4] != want {
				t.Fatalf("the forwarder got %v, %v, want a message of type %d", m, err, want)
			}
		}
		go server.Write(frame(p9.TFlush+1, 8, nil))
		if m, err := readMessage(client); err != nil || m[4] != p9.TFlush+1 {
			t.Fatalf("the client got %v, %v", m, err)
		}
		// Both places are free: the third request comes through.
		if m, err := readMessage(server); err != nil || m[4] != p9.TRead {
			t.Fatalf("after the flush the forwarder got %v, %v", m, err)
		}
		synctest.Wait()
		if r.inFlight != 1 {
			t.Errorf("%d requests in flight, want the read alone", r.inFlight)
		}
		// A client that goes takes its requests with it.
		client.Close()
		synctest.Wait()
		if r.inFlight != 0 || len(r.conns) != 0 {
			t.Errorf("%d in flight and %d connections after the client has gone", r.inFlight, len(r.conns))
		}
		cancel()
		<-done
		time.Sleep(time.Second)
	})
}

// What is no 9P ends its own connection and no other.
func TestGarbageEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForwarder()
		r := New(Config{Dial: f.dial})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		good := p.dial("10.0.0.1")
		for _, bad := range [][]byte{{1, 0, 0, 0, 0, 0, 0}, {255, 255, 255, 255, 0, 0, 0},
			[]byte("GET / HTTP/1.1\r\n\r\n")} {
			c := p.dial("10.0.0.2")
			go c.Write(bad)
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Errorf("%q was answered", bad)
			}
			c.Close()
		}
		go good.Write(frame(p9.TRead, 3, make([]byte, 16)))
		if m, err := readMessage(good); err != nil || m[4] != p9.TRead+1 {
			t.Errorf("the good client got %v, %v", m, err)
		}
		good.Close()
		cancel()
		<-done
		time.Sleep(time.Second)
	})
}

func TestTable(t *testing.T) {
	for in, want := range map[string]string{
		`{"jobs":[{"job":"1","size":1,"clients":["10.0.0.1"]}],"policy":"size-fair"}`: "",
		`{}`:                "",
		`{"policy":"fair"}`: "policy:",
		`{"idle":"x"}`:      "idle:",
		`{"polcy":""}`:      "unknown field",
		`{"jobs":[{"job":"1"}],"policy":"size-fair"}`:                     "jobs[0].size",
		`{"jobs":[{"job":"1","clients":["10.0.0.1","::ffff:10.0.0.1"]}]}`: "two jobs",
		`{"jobs":[{"job":"1","clients":["10.0.0"]}]}`:                     "10.0.0",
		`{"jobs":[{"job":"1"},{"job":"1"}]}`:                              "twice",
		`{} {}`:                                                           "something follows",
	} {
		_, err := ReadTable(strings.NewReader(in))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", in, err, want)
		}
	}
}

// Whatever a client sends: no panic, and nothing is left behind.
func FuzzClient(f *testing.F) {
	f.Add(frame(p9.TWrite, 7, make([]byte, 100)))
	f.Add(append(frame(p9.TFlush, 8, []byte{8, 0}), frame(p9.TFlush, 8, nil)...))
	f.Add(frame(p9.TRead, 8, make([]byte, 20)))
	f.Add(frame(p9.TUnlinkat, 8, []byte("\x01\x00\x00\x00\xc8\x00abcdef"))) // a name that is cut off
	f.Fuzz(func(t *testing.T, in []byte) {
		synctest.Test(t, func(t *testing.T) {
			fw := newForwarder()
			r := New(Config{Dial: fw.dial, Window: 3, Gather: time.Duration(len(in)%2) * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			p := newPipes()
			done := make(chan error)
			go func() { done <- r.Serve(ctx, p) }()
			c := p.dial("10.0.0.1")
			go io.Copy(io.Discard, c)
			c.Write(in)
			time.Sleep(time.Second)
			c.Close()
			synctest.Wait()
			if r.inFlight != 0 || len(r.conns) != 0 || r.queue.length != 0 {
				t.Errorf("%d in flight, %d connections, %d waiting", r.inFlight, len(r.conns), r.queue.length)
			}
			cancel()
			<-done
			time.Sleep(time.Second)
		})
	})
}
