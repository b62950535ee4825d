package swarm

import (
	"context"
	"encoding/json"
	"fmt"
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

// swarm is the agents of this process.
type swarm struct {
	agents  []*agent
	lags    lags
	base    uint64 // seconds that were made before the measuring began
	running sync.WaitGroup
}

// result is what the agents have measured.
type result struct {
	sent   uint64 // seconds since the measuring began
	lost   uint64 // not acknowledged at the end
	breaks uint64 // connections that were lost
	err    string
}

type agent struct {
	queue  *queue
	client *stream.Client
	frame  collector.Frame
	number int
}

const (
	slots = 100 // of a second
	// nodesPerForwarder is about the number of a large machine: 41,488 nodes, 240 forwarders.
	nodesPerForwarder = 173
)

func nodeOf(i int) (topology.NodeID, topology.Role) {
	if i%nodesPerForwarder == 0 {
		return topology.NodeID(fmt.Sprintf("fwd%03d", i/nodesPerForwarder)), topology.Forwarder
	}
	return topology.NodeID(fmt.Sprintf("cn%05d", i)), topology.Compute
}

// start has agents connect and send until ctx ends.
func start(ctx context.Context, o Options) *swarm {
	s := &swarm{}
	room := make(chan struct{}, 64) // handshakes under way
	for i := range o.Agents {
		n, role := nodeOf(i)
		a := &agent{queue: newQueue(string(n), &s.lags), frame: collector.Frame{Node: n, Role: role}, number: i}
		dialer := &net.Dialer{Timeout: time.Minute,
			LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/perAddress), 1)}}
		a.client = &stream.Client{URL: o.URL, Token: o.Token, Node: n, Role: role, Spool: a.queue,
			Log: slog.New(slog.DiscardHandler), Orders: map[string]stream.OrderHandler{wire.OrderRemap: remapped,
				wire.OrderRoute: remapped},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				room <- struct{}{}
				defer func() { <-room }()
				return dialer.DialContext(ctx, network, addr)
			}}
		s.agents = append(s.agents, a)
		s.running.Go(func() { _ = a.client.Run(ctx) })
		if i%64 == 63 { // all at once would wait for each other
			for until := time.Now().Add(settle); s.connected() <= i-64 && time.Now().Before(until); {
				if pause(ctx, 10*time.Millisecond) != nil {
					return s
				}
			}
		}
	}
	s.running.Go(func() { s.tick(ctx, o.Spread) })
	return s
}

func remapped(_ context.Context, o wire.Order) (json.RawMessage, error) {
	var q wire.RemapOrder
	if err := json.Unmarshal(o.Body, &q); err != nil {
		return nil, err
	}
	return json.Marshal(wire.RouteAnswer{Forwarder: q.Forwarder, Generation: 2})
}

func (s *swarm) connected() (n int) {
	for _, a := range s.agents {
		if a.client.State().Connected {
			n++
		}
	}
	return n
}

// measure begins: what is sent from now on counts.
func (s *swarm) measure() {
	s.lags.begin()
	for _, a := range s.agents {
		s.base += a.queue.made()
	}
}

// tick makes every agent's second, at its place in the part of a second over which they are spread.
func (s *swarm) tick(ctx context.Context, spread time.Duration) {
	step := time.Second / slots
	places := max(int(spread/step), 1)
	for at := time.Now().Truncate(step); ; at = at.Add(step) {
		if pause(ctx, time.Until(at)) != nil {
			return
		}
		slot := int(at.UnixMilli()%1000) * slots / 1000
		for i := slot; i < len(s.agents) && slot < places; i += places {
			now := time.Now()
			s.agents[i].second(now)
			s.agents[i].queue.put(now, &s.agents[i].frame)
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
func (s *swarm) end(patience time.Duration) (r result) {
	last := make([]uint64, len(s.agents))
	for i, a := range s.agents {
		last[i] = a.queue.made()
		r.sent += last[i]
	}
	r.sent -= s.base
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		r.lost = 0
		for i, a := range s.agents {
			r.lost += last[i] - min(last[i], a.queue.Acked())
		}
		if r.lost == 0 || time.Now().After(until) {
			break
		}
	}
	for _, a := range s.agents {
		state := a.client.State()
		r.breaks += state.Breaks
		if !state.Connected && r.err == "" {
			r.err = state.Err
		}
		r.lost += state.Refused
	}
	return r
}
