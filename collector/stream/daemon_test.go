package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// memoryNet is a network of one address, so that hours of outages run in fake time.
type memoryNet struct {
	mu    sync.Mutex
	conns chan net.Conn // nil while nobody listens
	open  []net.Conn
}

func (m *memoryNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	conns := m.conns
	m.mu.Unlock()
	if conns == nil {
		return nil, errors.New("connection refused")
	}
	a, b := net.Pipe()
	select {
	case conns <- b:
		m.mu.Lock()
		m.open = append(m.open, a, b)
		m.mu.Unlock()
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memoryNet) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.open {
		c.Close()
	}
	m.open = nil
}

type memoryListener struct {
	m    *memoryNet
	done chan struct{}
	once sync.Once
}

func (m *memoryNet) listen() *memoryListener {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = make(chan net.Conn)
	return &memoryListener{m: m, done: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	l.m.mu.Lock()
	conns := l.m.conns
	l.m.mu.Unlock()
	select {
	case c := <-conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		l.m.conns = nil
		l.m.mu.Unlock()
		close(l.done)
	})
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// second is one stored second of a node.
type second struct {
	node topology.NodeID
	ms   int64
}

// testDaemon takes frames like fairwayd: what it stored survives it, what it had not stored when it
// was killed is gone. It fails as often as failRate says.
type testDaemon struct {
	net      *memoryNet
	token    string
	failRate float64
	reject   func(m *wire.Frames) bool

	mu       sync.Mutex // guards everything that follows
	rng      *rand.Rand
	server   *http.Server
	stored   map[second]float64
	acked    uint64 // the highest number ever acknowledged
	twice    int    // seconds that came again after they had been acknowledged
	lastSeq  uint64 // of this connection
	disgrace []string
	orders   []wire.Order
	results  []wire.OrderResult
	hellos   []wire.Hello
}

func newTestDaemon(seed uint64, failRate float64) *testDaemon {
	return &testDaemon{
		net: &memoryNet{}, token: "secret", failRate: failRate, stored: make(map[second]float64),
		rng: rand.New(rand.NewPCG(seed, 1)),
	}
}

func (d *testDaemon) start() {
	srv := &http.Server{Handler: http.HandlerFunc(d.serve)}
	l := d.net.listen()
	d.mu.Lock()
	d.server = srv
	d.mu.Unlock()
	go srv.Serve(l)
}

// kill ends the daemon as SIGKILL does.
func (d *testDaemon) kill() {
	d.mu.Lock()
	srv := d.server
	d.mu.Unlock()
	srv.Close()
	d.net.cut()
}

func (d *testDaemon) chance() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < d.failRate
}

func (d *testDaemon) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+d.token {
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	d.mu.Lock()
	d.lastSeq = 0
	orders := d.orders
	d.mu.Unlock()
	for _, o := range orders {
		d.send(conn, o)
	}
	var dec wire.Decoder
	for !d.chance() {
		_, b, err := conn.ReadMessage()
		if err != nil || d.chance() { // killed before it was stored
			return
		}
		m, err := dec.Decode(b)
		if err != nil {
			d.blame("decode: " + err.Error())
			return
		}
		switch m := m.(type) {
		case wire.Hello:
			d.mu.Lock()
			d.hellos = append(d.hellos, m)
			d.mu.Unlock()
		case wire.OrderResult:
			d.mu.Lock()
			d.results = append(d.results, m)
			d.mu.Unlock()
		case *wire.Frames:
			if d.reject != nil && d.reject(m) {
				d.send(conn, wire.Reject{Code: wire.RejectMalformed, Seq: m.Seq, Text: "not today"})
				continue
			}
			d.store(m)
			if d.chance() { // stored, but the acknowledgement is lost
				return
			}
			d.mu.Lock()
			d.acked = max(d.acked, m.Seq)
			d.mu.Unlock()
			d.send(conn, wire.Ack{Seq: m.Seq})
		}
	}
}

func (d *testDaemon) blame(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disgrace = append(d.disgrace, s)
}

func (d *testDaemon) send(conn *websocket.Conn, m wire.Message) {
	b, err := wire.Append(nil, m)
	if err != nil {
		d.blame(err.Error())
	}
	conn.WriteMessage(websocket.BinaryMessage, b)
}

func (d *testDaemon) store(m *wire.Frames) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Seq <= d.lastSeq {
		d.disgrace = append(d.disgrace, "out of order")
	}
	d.lastSeq = m.Seq
	for _, f := range m.Frames {
		k := second{f.Node, f.TimeMillis}
		v := f.Samples[0].Value
		if was, ok := d.stored[k]; ok && was != v {
			d.disgrace = append(d.disgrace, "a second came again with another value")
		}
		if m.Seq <= d.acked {
			d.twice++
		}
		d.stored[k] = v
	}
}

func (d *testDaemon) check(t *testing.T, want int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.disgrace {
		t.Error(s)
	}
	if len(d.stored) != want {
		t.Errorf("%d seconds are stored, want %d", len(d.stored), want)
	}
}
