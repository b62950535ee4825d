// Package queue stands in front of a forwarder's 9P2000.L service and decides whose request goes
// next: it keeps requests in a queue for each job and serves them by the tokens of a sharing policy
// (package share; Karrels et al., ThemisIO, sections 3 and 4). Clients connect to the queue as to the
// forwarder; each connection has one of its own behind it, and messages pass unchanged and, within a
// connection, in their order.
//
// The queue lets only as many requests at once into the forwarder as keep it busy (the window), so
// that they wait here, where order can be chosen, and not there.
package queue

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"fairway/collector/p9"
	"fairway/collector/source/queue"
	"fairway/collector/topology"
)

// DefaultWindow keeps a diod of 8 worker threads busy while answers are on their way. Fewer cost throughput where
// processors are the bottleneck (a tenth of it with 8). More would wait at the forwarder, where nobody chooses: a job
// whose requests all fit in there never has one waiting here, and so gets less than its share (BenchmarkLoopback).
const DefaultWindow = 16

// Config is what a queue needs; Dial is required.
type Config struct {
	// Dial connects to the forwarder.
	Dial func(context.Context) (net.Conn, error)
	// Name returns the node that an address belongs to, empty where that is not known; nil: no name is looked up.
	Name func(context.Context, netip.Addr) topology.NodeID
	// Gather is how long a small write may wait for its neighbours in the file, so that they go as one; 0: none waits.
	Gather time.Duration
	// Cache is how many bytes of what was read are kept for a moment, for all clients; 0: none, and no two reads share
	// an answer.
	Cache int
	// Window is how many requests may be at the forwarder at once; DefaultWindow if 0.
	Window int
	// Seed of the draws.
	Seed uint64
	Log  *slog.Logger // discarded if nil
}

// Queue is one queue. Its methods may be called from any goroutine.
type Queue struct {
	cfg    Config
	random *rand.Rand // used under mu

	mu       sync.Mutex // guards everything below, and what conn says
	sharing  *sharing
	lease    term               // of the policy
	global   map[string]float64 // shares of an all-gather; nil: none is in force
	hold     term               // of those
	queue    *laneQueue
	inFlight int
	arrived  uint64
	clients
	counts
	merge *merging
}

// counts are what was done.
type counts struct {
	served map[string]*Served // by job
	byLane []*Served          // the same by lane
	begun  time.Time
	waited time.Duration // with something waiting, in queues before this one
}

// clients are who is connected.
type clients struct {
	conns map[*conn]bool
	from  map[netip.Addr]*int // how many of them an address has, with those that are not connected through yet
}

// Served is what a queue has done for a job.
type Served struct {
	Requests int64 `json:"requests"`
	// Bytes are those of reads asked for and writes sent.
	Bytes int64 `json:"bytes"`
	// Cost is what the forwarder had to do for it, bytes: Bytes, and 32 KiB for each request.
	Cost int64 `json:"cost"`
	// WaitedSeconds is for how long any of its requests waited here.
	WaitedSeconds float64 `json:"waited_seconds"`
	// Waiting and Connections are those of now.
	Waiting     int `json:"waiting"`
	Connections int `json:"connections"`
}

// New makes a queue that serves in the order of arrival until Share is called.
func New(cfg Config) *Queue {
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Queue{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)),
		clients: clients{map[*conn]bool{}, map[netip.Addr]*int{}},
		counts:  counts{served: map[string]*Served{}, begun: time.Now()}}
	r.merge = newMerging(r, cfg.Gather, cfg.Cache)
	if err := r.Share(Table{}); err != nil {
		panic(err) // the empty table is sound
	}
	return r
}

// Share changes policy and jobs at once, for the requests that wait already too.
func (r *Queue) Share(t Table) error {
	s, err := t.compile()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease.begin(&r.mu, t.LeaseSeconds, func() {
		s := *r.sharing
		s.policy = nil // its jobs stay, for the counts
		r.use(&s)
		r.cfg.Log.Warn("no new table came within the lease; requests are served in the order of their arrival",
			"lease_seconds", t.LeaseSeconds)
	})
	r.use(s)
	return nil
}

// term ends what holds for a while.
type term struct {
	timer *time.Timer
	count uint64 // so that a late timer knows that it is not its own
}

// begin begins another term, behind which over is called with mu held, as it is held now; 0 is for ever.
func (t *term) begin(mu *sync.Mutex, seconds float64, over func()) {
	t.end()
	if seconds == 0 {
		return
	}
	count := t.count
	t.timer = time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() {
		mu.Lock()
		defer mu.Unlock()
		if t.count == count {
			over()
		}
	})
}

// end ends a term before its time.
func (t *term) end() {
	t.count++
	if t.timer != nil {
		t.timer.Stop()
	}
}

// use serves by s from now on. r.mu is held.
func (r *Queue) use(s *sharing) {
	var waiting []request
	if r.queue != nil {
		each, any := r.queue.waits(time.Now())
		for i, s := range r.byLane {
			s.WaitedSeconds += each[i].Seconds()
		}
		r.waited += any
		waiting = r.queue.drop(func(request) bool { return true })
	}
	slices.SortFunc(waiting, func(a, b request) int { return cmp.Compare(a.seq, b.seq) })
	s.weigh(r.global)
	before := r.queue
	r.sharing, r.queue = s, newQueue(s, r.cfg.Window, r.random)
	if before != nil {
		r.queue.asked = before.asked
	}
	old := r.served
	r.served, r.byLane = make(map[string]*Served, len(s.jobs)), r.byLane[:0]
	for _, j := range s.jobs {
		if r.served[j.Name] = old[j.Name]; r.served[j.Name] == nil {
			r.served[j.Name] = &Served{}
		}
		r.byLane = append(r.byLane, r.served[j.Name])
	}
	for c := range r.conns {
		c.lane = s.of(c)
		r.queue.flies(c.lane, len(c.flights))
	}
	for _, q := range waiting {
		r.queue.push(q.conn.lane, q)
	}
}

// Clients lists who is connected, by name: what the forwarder behind cannot know.
func (r *Queue) Clients() []queue.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[topology.NodeID]int{}
	for c := range r.conns {
		n[c.name]++
	}
	out := make([]queue.Client, 0, len(n))
	for _, name := range slices.Sorted(maps.Keys(n)) {
		out = append(out, queue.Client{Node: name, Connections: n[name]})
	}
	return out
}

// Stats says what was done for each job so far; clients in no job are under "".
func (r *Queue) Stats() map[string]Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]Served, len(r.served))
	for name, s := range r.served {
		out[name] = *s
	}
	each, _ := r.queue.waits(time.Now())
	for i, j := range r.sharing.jobs {
		s := out[j.Name]
		s.WaitedSeconds += each[i].Seconds()
		out[j.Name] = s
	}
	for c := range r.conns {
		name := r.sharing.jobs[c.lane].Name
		s := out[name]
		s.Connections++
		s.Waiting += c.waiting
		out[name] = s
	}
	return out
}

// Serve takes connections from l until ctx ends, and returns when all of them have ended. It owns l.
func (r *Queue) Serve(ctx context.Context, l net.Listener) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lease.end()
		r.hold.end()
	}()
	for {
		client, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(*net.OpError)) && !errors.Is(err, net.ErrClosed):
			r.cfg.Log.Error("accept", "err", err) // out of descriptors, perhaps: others may end
			time.Sleep(acceptPause)
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		all.Go(func() {
			if err := r.pass(ctx, client); err != nil && ctx.Err() == nil {
				r.cfg.Log.Info("connection ended", "client", client.RemoteAddr(), "err", err)
			}
		})
	}
}

const acceptPause = 100 * time.Millisecond

// pass serves one client until either side ends.
func (r *Queue) pass(ctx context.Context, client net.Conn) error {
	defer client.Close()
	from := clientAddr(client)
	peers := r.admit(from)
	if peers == nil {
		return fmt.Errorf("%s has %d connections already", from, maxEach)
	}
	defer r.dismiss(from)
	up, err := r.cfg.Dial(ctx)
	if err != nil {
		return fmt.Errorf("connect to the forwarder: %w", err)
	}
	defer up.Close()
	c := newConn(r, client, up, from, peers)
	if r.cfg.Name != nil {
		if name := r.cfg.Name(ctx, c.from); name != "" {
			c.name = name
		}
	}
	r.join(c)
	defer r.forget(c)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { client.Close(); up.Close() })
	defer stop()
	var parts sync.WaitGroup
	for _, part := range []func(context.Context) error{c.fromClient, c.toForwarder, c.fromForwarder, c.toClient} {
		parts.Go(func() { cancel(part(ctx)) })
	}
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// enqueue takes requests from a client, and says that it has as many here as it may have.
func (r *Queue) enqueue(c *conn, together [][]byte) (full bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.waiting += len(together)
	c.held += len(together)
	c.bytes += total(together)
	for _, frame := range together {
		if !r.merge.on() {
			r.push(request{conn: c, frame: frame, cost: cost(frame)})
		} else if err := r.merge.gather(c, frame); err != nil {
			return false, err
		}
	}
	r.pump()
	r.merge.rearm()
	return c.full(), nil
}

// push puts a request into its job's queue. r.mu is held.
func (r *Queue) push(q request) {
	r.arrived++
	q.seq = r.arrived
	r.queue.push(q.conn.lane, q)
}

// full says that a client has as many requests, or bytes of them or of answers, here as it may have. Queue.mu is held.
func (c *conn) full() bool {
	most := min(maxBytes, maxEachBytes / *c.peers)
	return c.held >= maxWaiting || c.bytes >= most || len(c.posts)+c.awaits >= most
}

// makeRoom lets a client go on that may have more here again. Queue.mu is held.
func (c *conn) makeRoom() {
	if !c.full() {
		notify(c.room)
	}
}

func total(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f)
	}
	return n
}

// full says that a client has as many requests here as it may have.
func (r *Queue) full(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.full()
}

// chosen takes what is to be written to c's forwarder, and the room of what was written before, which
// it then uses for the next.
func (r *Queue) chosen(c *conn, written [][]byte) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.free(len(written), total(written))
	out := c.out
	clear(written)
	c.out = written[:0]
	return out
}

// free makes room for more of a client's requests. Queue.mu is held.
func (c *conn) free(requests, bytes int) {
	c.held -= requests
	c.bytes -= bytes
	c.makeRoom()
}

// answered frees the places of requests whose replies have come, which are whole messages, and returns those that are
// the client's, in the same room.
func (r *Queue) answered(c *conn, replies []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := 0
	for at, n := 0, 0; at < len(replies); at += n {
		n = int(binary.LittleEndian.Uint32(replies[at:]))
		reply := replies[at : at+n]
		c.agreed(reply)
		if !r.answer(c, reply) {
			continue
		}
		if kept < at {
			copy(replies[kept:], reply)
		}
		kept += n
	}
	r.pump()
	r.merge.rearm()
	return replies[:kept]
}

// answer frees the place of the request that a reply belongs to; false where the reply is not for the client. r.mu is
// held.
func (r *Queue) answer(c *conn, reply []byte) (pass bool) {
	tag := tagOf(reply)
	f, found := c.flights[tag]
	if !found {
		return true
	}
	delete(c.flights, tag)
	r.landed(c)
	if f.flushes && reply[4] == p9.TFlush+1 {
		r.flushed(c, f.old)
	}
	if f.joint != nil {
		return r.merge.answer(c, f.joint, reply)
	}
	c.note(tag, reply)
	return true
}

// flushed frees the places of a request that was flushed, which has no reply of its own any more, and of other flushes
// of it: a server may answer the last one alone. r.mu is held.
func (r *Queue) flushed(c *conn, old uint16) {
	for tag, f := range c.flights {
		if f.flushes && f.old == old || tag == old && (f.joint == nil || f.joint.flushed) {
			delete(c.flights, tag)
			r.landed(c)
			c.conclude(tag, false)
		}
	}
}

// landed frees the place of one request. r.mu is held.
func (r *Queue) landed(c *conn) {
	r.inFlight--
	r.queue.flies(c.lane, -1)
}

// pump sends as many requests as there are places for. r.mu is held.
func (r *Queue) pump() {
	for r.inFlight < r.cfg.Window {
		q, found := r.queue.pop()
		if !found {
			return
		}
		c := q.conn
		f := flight{joint: q.joint}
		if q.frame[4] == p9.TFlush && len(q.frame) >= p9.HeaderBytes+2 {
			f.old, f.flushes = binary.LittleEndian.Uint16(q.frame[p9.HeaderBytes:]), true
		}
		tag := tagOf(q.frame)
		if _, twice := c.flights[tag]; !twice { // a client that repeats a tag in use has one reply for both
			r.inFlight++
			r.queue.flies(c.lane, 1)
		}
		c.flights[tag] = f
		if c.out = append(c.out, q.frame); len(c.out) == 1 {
			notify(c.wake)
		}
		if q.joint != nil {
			r.merge.depart(q)
			continue
		}
		c.waiting--
		s := r.byLane[c.lane]
		s.Requests++
		s.Bytes += int64(q.cost - requestCost)
		s.Cost += int64(q.cost)
	}
}

// clientAddr is where a connection comes from; not valid where that is not an IP address.
func clientAddr(c net.Conn) netip.Addr {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}
