package webui

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

	"github.com/gorilla/websocket"
)

// stream is a console's end of the live feed: what a terminal or a browser's page listens to, read as
// fast as it comes and not looked at beyond the times in its head.
type stream struct {
	conn *websocket.Conn
	// delays are from the making of a message to its arrival, by the second of data in it.
	mu     sync.Mutex
	delays map[string]arrival
}

type arrival struct {
	made  time.Time
	delay time.Duration
}

// listen opens a stream through a door, as a console of a kind does.
func (s *site) listen(topics string, door Door) *stream {
	s.t.Helper()
	d := websocket.Dialer{HandshakeTimeout: 30 * time.Second, NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if door == DoorUnix {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.unix)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.tcp)
	}}
	conn, _, err := d.Dial("ws://"+s.tcp+"/api/v1/live?topics="+topics, http.Header{"Authorization": {"Bearer " + viewerSecret}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return &stream{conn: conn, delays: map[string]arrival{}}
}

// read reads until the feed ends.
func (x *stream) read() {
	var b bytes.Buffer
	for {
		kind, r, err := x.conn.NextReader()
		if err != nil {
			return
		}
		b.Reset()
		if _, err := b.ReadFrom(r); err != nil {
			return
		}
		came := time.Now()
		head := string(b.Bytes()[:min(300, b.Len())])
		if kind != websocket.TextMessage || !strings.Contains(head, `"topic":"overview"`) {
			continue
		}
		if made, err := time.Parse(time.RFC3339Nano, between(head, `"now":"`)); err == nil {
			x.mu.Lock()
			if _, seen := x.delays[between(head, `"at":"`)]; !seen {
				x.delays[between(head, `"at":"`)] = arrival{made, came.Sub(made)}
			}
			x.mu.Unlock()
		}
	}
}

func between(text, open string) string {
	_, rest, _ := strings.Cut(text, open)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

const (
	terminalTopics = "overview"
	browserTopics  = "overview,plans,grid:bw"
)

// TestOneThatStopsReading has 200 terminals and 200 browsers' pages listen to one daemon, and then one
// more that does not read. The others miss no second; what waits for it is bounded and counted; it is
// let go and the log says why.
func TestOneThatStopsReading(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes until a write has waited for its limit")
	}
	logged := &logLines{}
	s := newSite(t, siteOptions{forwarders: 240, compute: 2400, log: slog.New(slog.NewTextHandler(logged, nil))})
	s.run(0)
	var streams []*stream
	var reading sync.WaitGroup
	for i := range 400 {
		topics, door := terminalTopics, DoorUnix
		if i%2 == 1 {
			topics, door = browserTopics, DoorTCP
		}
		x := s.listen(topics, door)
		streams = append(streams, x)
		reading.Go(x.read)
	}
	joined := time.Now()
	eventually(t, "six seconds come through", func() bool { return len(seen(streams[:2])) >= 6 })
	dropped, heap := s.server.hub.dropped.Load(), heapInUse()
	stopped := time.Now()
	s.listen("overview,plans,grid:bw,grid:mdops,grid:latency,grid:err", DoorTCP) // and never reads
	for end := time.Now().Add(2 * time.Minute); s.server.hub.stalled.Load() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("one that does not read is never let go")
		}
	}
	t.Logf("let go after %s", time.Since(stopped).Round(time.Second))
	if grown := heapInUse() - heap; grown > 32<<20 {
		t.Errorf("the heap grew by %d MB while one did not read", grown>>20)
	}
	if lost := s.server.hub.dropped.Load() - dropped; lost < 5 {
		t.Errorf("%d frames for it were dropped and counted: they wait somewhere", lost)
	}
	if text := logged.String(); !strings.Contains(text, "it has not read for") || !strings.Contains(text, "user=vic") {
		t.Errorf("the log does not say who was let go and why: %s", text)
	}
	s.stop() // ends the feeds
	reading.Wait()
	report(t, streams, joined, stopped)
}

// report says how late messages were before and after a time, and fails for a second that a reader missed.
func report(t *testing.T, streams []*stream, joined, stopped time.Time) {
	all := seen(streams)
	all = all[:len(all)-1] // was under way when the feeds ended
	made := map[string]time.Time{}
	for _, x := range streams {
		for at, a := range x.delays {
			made[at] = a.made
		}
	}
	var before, after []time.Duration
	for i, x := range streams {
		for _, at := range all {
			a, ok := x.delays[at]
			if !ok && made[at].After(joined) {
				t.Errorf("stream %d missed the second %s", i, at)
			}
			if ok && a.made.Before(stopped) {
				before = append(before, a.delay)
			} else if ok {
				after = append(after, a.delay)
			}
		}
	}
	slices.Sort(before)
	slices.Sort(after)
	was, is := before[len(before)*99/100], after[len(after)*99/100]
	t.Logf("%d streams, %d seconds: message made to message read p50 %s p99 %s; with one that does not read p50 %s p99 %s: %s more", len(streams), len(all),
		before[len(before)/2].Round(100*time.Microsecond), was.Round(100*time.Microsecond), after[len(after)/2].Round(100*time.Microsecond), is.Round(100*time.Microsecond), (is - was).Round(100*time.Microsecond))
}

// seen are the seconds that any of the streams has got, in order.
func seen(streams []*stream) (all []string) {
	for _, x := range streams {
		x.mu.Lock()
		for at := range x.delays {
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
		x.mu.Unlock()
	}
	slices.Sort(all)
	return all
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
