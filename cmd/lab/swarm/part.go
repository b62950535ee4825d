package swarm

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Part is the agents of one process: the limits on open files and on ports are a process's and an address's.
type Part struct {
	First, Count int
	URL          string
	Token        string
	Spread       time.Duration // over which the agents' seconds are spread
	From         string        // the address they connect from; "" is the system's choice

	patience time.Duration // at the end; 0 is drainFor
}

// The words of the process that starts parts, a line each, and the part's answers, a line of JSON each.
const (
	sayMeasure = "measure"
	sayEnd     = "end"
	drainFor   = 30 * time.Second
	slots      = 100 // of a second
	// nodesPerForwarder is about the number of a large machine: 41,488 nodes, 240 forwarders.
	nodesPerForwarder = 173
)

// Result is what a part has measured.
type Result struct {
	Connected int            `json:"connected"` // agents with a connection, where it is asked
	Sent      uint64         `json:"sent"`      // seconds since the measuring began
	Lost      uint64         `json:"lost"`      // not acknowledged, at the end or when it is asked
	Breaks    uint64         `json:"breaks"`    // connections that were lost
	Lags      map[int]uint64 `json:"lags"`
	Err       string         `json:"err,omitempty"`
}

type agent struct {
	queue  *queue
	client *stream.Client
	frame  collector.Frame
	number int
}

func nodeOf(i int) (topology.NodeID, topology.Role) {
	if i%nodesPerForwarder == 0 {
		return topology.NodeID(fmt.Sprintf("fwd%03d", i/nodesPerForwarder)), topology.Forwarder
	}
	return topology.NodeID(fmt.Sprintf("cn%05d", i)), topology.Compute
}

// Run is the part's life: its agents send from the start on; what was sent after the word to measure counts.
func (p *Part) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answer := json.NewEncoder(out)
	l := &lags{}
	agents := make([]*agent, p.Count)
	dialer := &net.Dialer{Timeout: time.Minute}
	if p.From != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(p.From)}
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	room := make(chan struct{}, 64) // handshakes under way
	for i := range agents {
		n, role := nodeOf(p.First + i)
		a := &agent{queue: newQueue(string(n), l), number: p.First + i}
		a.frame = collector.Frame{Node: n, Role: role}
		agents[i] = a
		a.client = &stream.Client{URL: p.URL, Token: p.Token, Node: n, Role: role, Spool: a.queue,
			Log: slog.New(slog.DiscardHandler), Orders: map[string]stream.OrderHandler{wire.OrderRemap: remapped,
				wire.OrderRoute: remapped},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				room <- struct{}{}
				defer func() { <-room }()
				return dialer.DialContext(ctx, network, addr)
			}}
		running.Go(func() { _ = a.client.Run(ctx) })
		if i%64 == 63 { // all at once would wait for each other
			for until := time.Now().Add(settle); connected(agents[:i+1]) <= i-64 && time.Now().Before(until); {
				if pause(ctx, 10*time.Millisecond) != nil {
					return ctx.Err()
				}
			}
		}
	}
	running.Go(func() { p.tick(ctx, agents) })
	base, words := uint64(0), bufio.NewScanner(in)
	for words.Scan() {
		switch words.Text() {
		case sayMeasure:
			l.begin()
			base = written(agents)
		case sayEnd:
			return answer.Encode(p.end(agents, l, base))
		default:
			now := Result{Connected: connected(agents)}
			for _, a := range agents {
				now.Lost += a.queue.Pending()
			}
			if err := answer.Encode(now); err != nil {
				return err
			}
		}
	}
	return words.Err()
}

func remapped(_ context.Context, o wire.Order) (json.RawMessage, error) {
	var q wire.RemapOrder
	if err := json.Unmarshal(o.Body, &q); err != nil {
		return nil, err
	}
	return json.Marshal(wire.RouteAnswer{Forwarder: q.Forwarder, Generation: 2})
}

func connected(agents []*agent) (n int) {
	for _, a := range agents {
		if a.client.State().Connected {
			n++
		}
	}
	return n
}

func written(agents []*agent) (n uint64) {
	for _, a := range agents {
		n += a.queue.Acked() + a.queue.Pending()
	}
	return n
}

// tick makes every agent's second, at its place in the second.
func (p *Part) tick(ctx context.Context, agents []*agent) {
	step := time.Second / slots
	places := max(int(p.Spread/step), 1)
	for at := time.Now().Truncate(step); ; at = at.Add(step) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(at)):
		}
		slot := int(at.UnixMilli()%1000) * slots / 1000
		for i := slot; i < len(agents) && slot < places; i += places {
			now := time.Now()
			agents[i].second(now)
			_, _ = agents[i].queue.put(now, &agents[i].frame)
		}
	}
}

// second makes the frame that the agent would have read: eight metrics, one node in eight busy. A forwarder's written
// bytes are the time in milliseconds, by which a reader of the screen knows how old they are.
func (a *agent) second(now time.Time) {
	f := &a.frame
	f.TimeMillis = now.Truncate(time.Second).Add(-time.Second).UnixMilli()
	f.Samples = f.Samples[:0]
	busy := 0.0
	if a.number%8 == 0 {
		busy = 1 + math.Mod(float64(now.Unix())*float64(a.number%97+1), 1000)
	}
	for i, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps,
		collector.WriteOps, collector.MetaOps, collector.QueueLen, collector.InFlight, collector.OpenHandles} {
		v := busy * float64(i+1)
		if m == collector.WriteBytes && f.Role == topology.Forwarder {
			v = float64(stampOf(now))
		}
		f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: v})
	}
	f.Sources = append(f.Sources[:0], collector.SourceStatus{Name: "procfs", Duration: 300 * time.Microsecond},
		collector.SourceStatus{Name: "stream", Duration: time.Millisecond})
	f.Routes, f.RoutesComplete = f.Routes[:0], f.Role == topology.Compute
	if f.Role == topology.Compute {
		f.Sources = append(f.Sources, collector.SourceStatus{Name: "mount", Duration: 100 * time.Microsecond})
		f.Routes = append(f.Routes, collector.Route{Client: f.Node,
			Forwarder: topology.ForwarderID(fmt.Sprintf("fwd%03d", a.number/nodesPerForwarder)), Generation: 1})
	}
}

// stampOf is a time as a value of a metric.
func stampOf(now time.Time) int64 { return now.UnixMilli() % 1e9 }

// end lets the agents go on until the daemon has everything or the patience ends. Their seconds go on meanwhile, as a
// real agent's would, so that what counts is what was there at the word.
func (p *Part) end(agents []*agent, l *lags, base uint64) Result {
	last := make([]uint64, len(agents))
	r := Result{Connected: connected(agents)}
	for i, a := range agents {
		a.queue.mu.Lock()
		last[i] = a.queue.acked + uint64(len(a.queue.sent))
		a.queue.mu.Unlock()
		r.Sent += last[i]
	}
	r.Sent -= base
	for until := time.Now().Add(cmp.Or(p.patience, drainFor)); ; time.Sleep(100 * time.Millisecond) {
		r.Lost = 0
		for i, a := range agents {
			r.Lost += last[i] - min(last[i], a.queue.Acked())
		}
		if r.Lost == 0 || time.Now().After(until) {
			break
		}
	}
	for _, a := range agents {
		s := a.client.State()
		r.Breaks += s.Breaks
		if !s.Connected && r.Err == "" {
			r.Err = s.Err
		}
		r.Lost += s.Refused
	}
	r.Lags = l.counts()
	return r
}
