package webui_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui/access"

	"github.com/gorilla/websocket"
)

// audience counts what its streams have read.
type audience struct {
	came chan struct{}

	mu     sync.Mutex      // guards everything that follows
	got    map[string]int  // streams by the second of data that they have
	delays []time.Duration // from the making of a message to its arrival
}

// listen opens a stream of the live feed through a listener, as a console does.
func listen(s *simsite.Site, topics string, by access.Listener) *websocket.Conn {
	s.T.Helper()
	d := websocket.Dialer{HandshakeTimeout: 30 * time.Second,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if by == access.UnixSocket {
				return (&net.Dialer{}).DialContext(ctx, "unix", s.Unix)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.TCP)
		}}
	conn, _, err := d.Dial("ws://"+s.TCP+"/api/v1/live?topics="+topics,
		http.Header{"Authorization": {"Bearer " + simsite.ViewerSecret}})
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { conn.Close() })
	return conn
}

// read reads a stream until it ends, as fast as it comes, and looks at no more than the times in its head.
func (a *audience) read(conn *websocket.Conn) {
	var b bytes.Buffer
	last := ""
	for {
		kind, r, err := conn.NextReader()
		if err != nil {
			return
		}
		b.Reset()
		if _, err := b.ReadFrom(r); err != nil {
			return
		}
		came := time.Now()
		head := string(b.Bytes()[:min(300, b.Len())])
		at := between(head, `"at":"`)
		if kind != websocket.TextMessage || !strings.Contains(head, `"topic":"overview"`) || at == last {
			continue
		}
		last = at
		if made, err := time.Parse(time.RFC3339Nano, between(head, `"now":"`)); err == nil {
			a.mu.Lock()
			a.got[at]++
			a.delays = append(a.delays, came.Sub(made))
			a.mu.Unlock()
			select {
			case a.came <- struct{}{}:
			default:
			}
		}
	}
}

func between(text, open string) string {
	_, rest, _ := strings.Cut(text, open)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// patience says that a stream has missed a second, not that it is late.
const patience = time.Minute

// second lets the machine's next second arrive and waits until each of n streams has read it. Only
// then comes the next one: how fast this computer is decides nothing.
func (a *audience) second(s *simsite.Site, n int) {
	s.T.Helper()
	now := time.Now()
	now = now.Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(now))
	s.Tick(now.Add(-time.Second))
	at := now.Add(-time.Second).UTC().Format(time.RFC3339)
	for end := time.After(patience); ; {
		a.mu.Lock()
		got := a.got[at]
		a.mu.Unlock()
		if got == n {
			return
		}
		select {
		case <-a.came:
		case <-end:
			s.T.Fatalf("%d of %d streams have the second %s after %s", got, n, at, patience)
		}
	}
}

// late is the median and the 99th percentile of the delays since it was asked last.
func (a *audience) late() (p50, p99 time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.delays)
	p50, p99 = a.delays[len(a.delays)/2], a.delays[len(a.delays)*99/100]
	a.delays = nil
	return p50.Round(100 * time.Microsecond), p99.Round(100 * time.Microsecond)
}

// TestOneThatStopsReading has 50 terminals and 50 browsers' pages listen to one daemon, and then one
// more that does not read. The others miss no second; what waits for it is bounded and counted; it is
// let go and the log says why.
func TestOneThatStopsReading(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes until a write has waited for its limit")
	}
	const n, alone = 100, 5
	const everything = "overview,plans,grid:bw,grid:mdops,grid:latency,grid:err"
	logged := &logLines{}
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 2400,
		Log: slog.New(slog.NewTextHandler(logged, nil))})
	a := &audience{came: make(chan struct{}, 1), got: map[string]int{}}
	var reading sync.WaitGroup
	for i := range n {
		topics, by := "overview", access.UnixSocket
		if i%2 == 1 {
			topics, by = "overview,plans,grid:bw", access.TCP
		}
		if i == 1 {
			topics = everything // so that the daemon makes the same frames before and after
		}
		conn := listen(s, topics, by)
		reading.Go(func() { a.read(conn) })
	}
	a.second(s, n)
	a.late()
	for range alone {
		a.second(s, n)
	}
	was50, was99 := a.late()
	heap := heapInUse()
	listen(s, everything, access.TCP) // and nobody reads it
	dropped, since, full := s.Server.Dropped(), 0, 0
	for s.Server.Stalled() == 0 {
		if since++; since == 200 {
			t.Fatal("one that does not read is never let go")
		}
		if s.Server.Dropped() > dropped {
			full++ // its buffers are: from here on a daemon that waited for it would stand still
		}
		a.second(s, n)
	}
	is50, is99 := a.late()
	t.Logf(
		"%d streams, message made to message read: p50 %s p99 %s; with one that does not read p50 %s p99 %s, %s "+
			"more; let go after %d s", n, was50, was99, is50, is99, is99-was99, since)
	if full < 3 {
		t.Errorf(
			"the others got %d seconds between its buffers being full and its end: they waited for it, or its frames "+
				"were not dropped and counted", full)
	}
	if grown := heapInUse() - heap; grown > 32<<20 {
		t.Errorf("the heap grew by %d MB while one did not read", grown>>20)
	}
	if text := logged.String(); !strings.Contains(text, "it has not read for") || !strings.Contains(text, "user=vic") {
		t.Errorf("the log does not say who was let go and why: %s", text)
	}
	s.Stop() // ends the feeds
	reading.Wait()
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// logLines is a log that a test reads.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
