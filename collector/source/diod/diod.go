// Package diod reads a forwarding node from outside: through the control tree of its diod, LLNL's
// 9P2000.L I/O forwarding daemon.
//
// It fills read_bytes, write_bytes, read_ops, write_ops, meta_ops, in_flight (requests queued and in
// service, sampled 20 times a second and averaged), queue_len (of those the ones for which no worker thread of
// their tree is free), server_time (by Little's law: mean requests in flight
// over completion rate), meta_wait (a timed getattr a second in each tree's own worker pool),
// connections, open_handles, the routes of its clients, each job's share where jobs attach to .../jobs/ID, and,
// where the process is known, cpu_seconds. diod does not report latencies by class: waits and exec times
// of reads and writes stay absent. Overhead: about 90 small requests a second.
package diod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"fairway/collector"
	"fairway/collector/rootfs"
	"fairway/collector/topology"
)

// queueHz is how often a second the queue gauge is sampled.
const queueHz = 20

// DefaultWorkers is how many threads diod gives each tree by default.
const DefaultWorkers = 16

// Options say where a diod is.
type Options struct {
	Addr string            // HOST:PORT
	Node topology.NodeID   // the forwarding node, which routes lead to
	UID  uint32            // the user to attach as
	Skip []topology.NodeID // clients that are no compute nodes: collectors, monitors
	// Behind says that a queue stands in front: its address is the only client, and routes and connections
	// are left to the queue's own source.
	Behind bool
	// Workers is how many threads diod has for each tree (its --nwthreads); 0 is DefaultWorkers.
	Workers int
	PID     func() (int, bool) // diod's process on this machine; nil is not known
}

// Source reads one diod.
type Source struct {
	opt  Options
	dial func(context.Context) (control, error)
	skip map[string]bool

	link collector.Held[*link]

	// What follows belongs to Read.
	rates    collector.Rates[key]
	complete bool // the newest snapshot: it had every tree
	cpu      collector.Rates[string]
	known    names
	text     []byte
	pools    []pool
	clients  map[string]bool
	timeouts int // ticks without an answer
}

type key struct {
	tree string
	c    counter
}

var _ collector.Source = (*Source)(nil)

// New returns the source of a diod. It connects at the first Read, and again whenever the connection
// was lost.
func New(opt Options) *Source {
	return newSource(opt, dialDiod(opt.Addr, opt.UID))
}

func newSource(opt Options, dial func(context.Context) (control, error)) *Source {
	if opt.Workers <= 0 {
		opt.Workers = DefaultWorkers
	}
	s := &Source{opt: opt, dial: dial, skip: map[string]bool{"localhost": true, string(opt.Node): true}, known: names{},
		clients: map[string]bool{}}
	s.rates.FromZero = func(key) bool { return s.complete }
	for _, n := range opt.Skip {
		s.skip[string(n)] = true
	}
	return s
}

// Name is "diod".
func (s *Source) Name() string { return "diod" }

// Close ends the connection and the sampling.
func (s *Source) Close() error { return s.link.Close() }

// connected returns the link to diod, made anew if needed.
func (s *Source) connected(ctx context.Context) (*link, error) {
	dial := func(ctx context.Context) (*link, error) {
		c, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		return newLink(c, uint64(s.opt.Workers)), nil
	}
	l, err := s.link.Get(ctx, dial)
	if err == nil && l.broken() != nil {
		s.link.Drop(l)
		return s.link.Get(ctx, dial)
	}
	return l, err
}

// failed drops the link when its connection is gone: at once where that is known, after some ticks
// without an answer otherwise.
func (s *Source) failed(ctx context.Context, l *link, err error) {
	const patience = 10
	if ctx.Err() != nil {
		s.timeouts++
	}
	var refusal syscall.Errno
	if s.timeouts > patience || ctx.Err() == nil && !errors.As(err, &refusal) {
		s.timeouts = 0
		s.link.Drop(l)
	}
}

// Read takes one snapshot of the control tree. Errors that cost only a part of it come with the rest.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := s.connected(ctx)
	if err != nil {
		return err
	}
	text, err := l.control.ReadFile(ctx, "tpools", s.text)
	at := time.Now()
	s.text = text[:0]
	if errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("diod %s has no tpools in its control tree: %w", s.opt.Addr, collector.ErrNoData)
	}
	if err != nil {
		s.failed(ctx, l, err)
		return fmt.Errorf("diod %s: tpools: %w", s.opt.Addr, err)
	}
	s.timeouts = 0
	pools, bad := parseTpools(s.pools[:0], text, s.known)
	s.pools = pools
	if bad != nil {
		bad = fmt.Errorf("diod %s: %w", s.opt.Addr, bad)
	}
	s.samples(into, l, at, bad == nil)
	l.hold(ctx, pools)
	if s.opt.Behind {
		return errors.Join(bad, s.readCPU(into))
	}
	return errors.Join(bad, s.readRoutes(ctx, l, into), s.readCPU(into))
}

// samples turns the snapshot into rates; complete says that no tree's line was unreadable, without
// which the node's totals are not known.
func (s *Source) samples(into *collector.Reading, l *link, at time.Time, complete bool) {
	q := l.takeQueue()
	s.rates.Begin(at)
	var total [counters]float64
	handles := uint64(0)
	complete = complete && len(s.pools) > 0 // our own attach is in one
	known := complete && s.complete && s.rates.Seconds() > 0
	defer func() { s.complete = complete }()
	for i := range s.pools {
		p := &s.pools[i]
		if p.tree == ownPool || p.tree == "ctl" {
			continue
		}
		handles += p.fids
		perSec, ok := s.poolRates(l, p)
		if !ok {
			known = false
			continue
		}
		for c, v := range perSec {
			total[c] += v
		}
		if job, isJob := jobOf(p.tree); isJob && s.rates.Seconds() > 0 {
			js := collector.JobSamples{Job: job, Samples: make([]collector.Sample, 0, len(reported)+1)}
			for _, m := range reported {
				js.Samples = append(js.Samples, collector.Sample{Metric: m.metric, Value: perSec[m.c]})
			}
			sum, seen := q.trees[p.tree]
			if mean, ok := q.mean(sum); ok && seen {
				js.Samples = append(js.Samples, collector.Sample{Metric: collector.InFlight, Value: mean})
			}
			into.Jobs = append(into.Jobs, js)
		}
	}
	into.Resets += s.rates.Resets
	if known {
		into.Add(collector.OpenHandles, float64(handles))
		for _, m := range reported {
			into.Add(m.metric, total[m.c])
		}
	}
	wait, waited := l.takeMetaWait()
	if s.rates.Seconds() == 0 {
		return // what was sampled over a gap is not of this second
	}
	if mean, ok := q.mean(q.sum); ok {
		into.Add(collector.InFlight, mean)
		if known && total[allOps] > 0 {
			into.Add(collector.ServerTime, mean/total[allOps])
		}
	}
	if mean, ok := q.mean(q.waiting); ok {
		into.Add(collector.QueueLen, mean)
	}
	if waited {
		into.Add(collector.MetaWait, wait.Seconds())
	}
}

var reported = [...]struct {
	c      counter
	metric collector.Metric
}{
	{readBytes, collector.ReadBytes}, {writeBytes, collector.WriteBytes}, {readOps, collector.ReadOps},
	{writeOps, collector.WriteOps}, {metaOps, collector.MetaOps},
}

// poolRates answers a tree's rates without our own getattrs; ok is false after a reset.
func (s *Source) poolRates(l *link, p *pool) (perSec [counters]float64, ok bool) {
	ok = true
	ours := 0.0
	if sec := s.rates.Seconds(); sec > 0 {
		ours = float64(l.takeProbes(p.tree)) / sec
	}
	resets := s.rates.Resets
	for c := range counters {
		v, grown := s.rates.Rate(key{p.tree, c}, p.counts[c])
		if !grown {
			continue
		}
		if c == metaOps || c == allOps {
			v = max(0, v-ours)
		}
		perSec[c] = v
	}
	return perSec, s.rates.Resets == resets
}

// readRoutes reads which clients diod serves.
func (s *Source) readRoutes(ctx context.Context, l *link, into *collector.Reading) error {
	text, err := l.control.ReadFile(ctx, "connections", s.text)
	s.text = text[:0]
	if err != nil {
		return fmt.Errorf("diod %s: connections: %w", s.opt.Addr, err)
	}
	clear(s.clients)
	n := 0
	err = parseConnections(text, func(host []byte) {
		name := s.known.of(host)
		if s.skip[name] {
			return
		}
		n++
		if !s.clients[name] {
			s.clients[name] = true
			into.Routes = append(into.Routes, collector.Route{Client: topology.NodeID(name),
				Forwarder: topology.ForwarderID(s.opt.Node)})
		}
	})
	if err != nil {
		return fmt.Errorf("diod %s: %w", s.opt.Addr, err)
	}
	into.RoutesComplete = true
	into.Add(collector.Connections, float64(n))
	return nil
}

// readCPU adds the CPU time of diod's process, where it is known.
func (s *Source) readCPU(into *collector.Reading) error {
	if s.opt.PID == nil {
		return nil
	}
	pid, ok := s.opt.PID()
	if !ok {
		return nil
	}
	seconds, err := rootfs.CPUTime(os.DirFS("/proc"), pid)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it ended; the control tree reports it
		}
		return err
	}
	s.cpu.Begin(time.Now())
	const micro = 1e6
	if v, ok := s.cpu.Rate("cpu", uint64(seconds*micro)); ok {
		into.Add(collector.CPUSeconds, v/micro)
	}
	return nil
}
