// Package ganesha reads nfs-ganesha over D-Bus: a gateway that serves 9P or NFS to compute nodes, or the NFS server
// behind such gateways.
//
// It fills read_ops, write_ops, meta_ops, read_bytes, write_bytes, errors, answer_time (how long ganesha took to
// answer for its statistics), connections, cpu_seconds, the routes of a forwarder's clients and the back ends that it
// is a client of. Of requests over NFS ganesha counts the time too: read_exec, write_exec and meta_exec. 9P has no such
// clock, so a server that has served 9P in the second reports none. Bytes over 9P are those of the messages without the
// headers of reads and writes. Where the 9P service's address is known, meta_wait is a timed getattr a second. Ganesha
// reports no queue. A tick of one export is about 30 calls in 4 ms, of which 0.6 ms are CPU time of ganesha.
package ganesha

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"fairway/collector"
	"fairway/collector/hostname"
	"fairway/collector/rootfs"
	"fairway/collector/topology"
)

// DefaultBus is the system bus's socket on most distributions.
const DefaultBus = "/run/dbus/system_bus_socket"

// Options say where a ganesha is and what it is.
type Options struct {
	Bus  string          // the socket of its D-Bus; "" is DefaultBus
	Node topology.NodeID // this node
	// Forwarder says that the clients are compute nodes: their routes are reported.
	Forwarder bool
	Skip      []topology.NodeID // clients that are no compute nodes: collectors, monitors
	// Addr is the HOST:PORT of its 9P service and Export what is attached there as user UID, to time a getattr;
	// "" times none.
	Addr, Export string
	UID          uint32
}

// Source reads one ganesha.
type Source struct {
	opt  Options
	dial func(context.Context) (bus, error)
	// connections lists the established TCP connections of a process's network.
	connections func(pid int) ([]connection, error)
	cpuTime     func(pid int) (seconds float64, err error)
	names       *hostname.Names
	probe       *probe // nil: no getattr is timed

	bus collector.Held[bus]

	// What follows belongs to Read.
	owner string // the bus name of the ganesha that the counters are of
	pid   int    // its process, where that could be read; 0: not known
	rates collector.Rates[key]
}

// key is one counter: of the whole server, an export or a client.
type key struct {
	of   string
	what string
}

var _ collector.Source = (*Source)(nil)

// New returns the source of a ganesha. It connects at the first Read, and again whenever the connection was lost.
func New(opt Options) *Source {
	if opt.Bus == "" {
		opt.Bus = DefaultBus
	}
	s := newSource(opt, func(ctx context.Context) (bus, error) { return dialBus(ctx, opt.Bus) },
		hostname.New(hostname.Lookup))
	s.connections = func(pid int) ([]connection, error) { return readConnections("/proc", pid) }
	s.cpuTime = func(pid int) (float64, error) { return rootfs.CPUTime(os.DirFS("/proc"), pid) }
	if opt.Addr != "" {
		s.probe = newProbe(opt.Addr, opt.Export, opt.UID)
	}
	return s
}

func newSource(opt Options, dial func(context.Context) (bus, error), names *hostname.Names) *Source {
	return &Source{opt: opt, dial: dial, names: names}
}

// Name is "ganesha".
func (s *Source) Name() string { return "ganesha" }

// Close ends the connections and what runs beside Read.
func (s *Source) Close() error {
	err := s.bus.Close()
	s.probe.close()
	s.names.Close()
	return err
}

// Read asks for every counter once. Errors that cost only a part of it come with the rest.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := s.bus.Get(ctx, s.dial)
	if err != nil {
		return fmt.Errorf("ganesha: %w", err)
	}
	at := time.Now()
	owner, pid, err := b.Owner(ctx)
	var shown []export
	if err == nil {
		shown, err = askExports(ctx, b)
	}
	took := time.Since(at)
	if err != nil {
		if errors.Is(err, errBroken) {
			s.bus.Drop(b)
		} else if s.ended() { // who is not on the bus may serve yet: this one does not
			err = fmt.Errorf("%s (%d): %w", collector.ServiceEnded, s.pid, err)
		}
		return fmt.Errorf("ganesha: %w", err)
	}
	into.Add(collector.AnswerTime, took.Seconds())
	if s.owner != owner {
		if s.owner != "" { // another process: its counters began at 0
			into.Resets++
		}
		s.owner, s.rates = owner, collector.Rates[key]{}
	}
	s.rates.Begin(at)
	t, bad := s.count(ctx, b, shown)
	into.Resets += s.rates.Resets
	s.add(into, t)
	bad = errors.Join(bad, s.addProcess(ctx, into, pid, t))
	if wait, ok := s.probe.take(); ok {
		into.Add(collector.MetaWait, wait.Seconds())
	}
	if bad != nil {
		return fmt.Errorf("ganesha: %w", bad)
	}
	return nil
}

// ended reports whether the process that was read last is gone.
func (s *Source) ended() bool {
	if s.pid == 0 {
		return false
	}
	_, err := s.cpuTime(s.pid)
	return errors.Is(err, fs.ErrNotExist)
}

// add turns the second's totals into samples.
func (s *Source) add(into *collector.Reading, t *totals) {
	nine := [2]float64{} // reads and writes over 9P
	for i, m := range [...]struct{ ops, bytes, exec collector.Metric }{
		{collector.ReadOps, collector.ReadBytes, collector.ReadExec},
		{collector.WriteOps, collector.WriteBytes, collector.WriteExec},
	} {
		n, isNine := t.nine.ops[i].Value()
		nine[i] = n
		k, isNFS := t.nfs.ops[i].Value()
		if isNine || isNFS {
			into.Add(m.ops, n+k)
		}
		if over, known := t.nfs.nanos[i].Value(); known && n == 0 && k > 0 {
			into.Add(m.exec, over/k/1e9)
		}
	}
	for i, m := range [...]collector.Metric{collector.ReadBytes, collector.WriteBytes} {
		wire, isNine := t.nine.wire[i].Value()
		moved, isNFS := t.nfs.bytes[i].Value()
		if _, used := t.nine.ops[i].Value(); used != isNine || !isNine && !isNFS {
			continue // a part is not known
		}
		into.Add(m, moved+payload(wire, nine[i], nine[0]+nine[1], [2]float64{replyHead, requestHead}[i]))
	}
	meta, isNine := t.nine.meta.Value()
	more, isNFS := t.nfs.meta.Value()
	if isNine || isNFS {
		into.Add(collector.MetaOps, max(0, meta-s.probe.perSecond(s.rates.Seconds()))+more)
	}
	if nanos, known := t.nfs.metaNanos.Value(); known && meta == 0 && more > 0 {
		into.Add(collector.MetaExec, nanos/more/1e9)
	}
	into.AddTotal(collector.Errors, &t.errors)
}

// Bytes of a message beside its data: Tread and Twrite, and Rread and Rwrite.
const (
	requestHead = 23
	replyHead   = 11
)

// payload is the data among the bytes of the messages in one direction: 0 without a read or write.
func payload(wire, own, all, head float64) float64 {
	if own == 0 {
		return 0
	}
	return max(0, wire-all*head)
}

// addProcess adds what the machine reports of ganesha's process: its connections and its CPU time.
func (s *Source) addProcess(ctx context.Context, into *collector.Reading, pid int, t *totals) error {
	if pid == 0 {
		return nil
	}
	conns, err := s.connections(pid)
	if err == nil {
		s.addConnections(ctx, into, conns, t)
	}
	cpu, failed := s.cpuTime(pid)
	if failed != nil {
		return errors.Join(err, failed)
	}
	s.pid = pid
	const micro = 1e6
	if v, ok := s.rates.Rate(key{"process", "cpu"}, uint64(cpu*micro)); ok {
		into.Add(collector.CPUSeconds, v/micro)
	}
	return err
}

// addConnections adds who is connected, and to whom this server is a client itself.
func (s *Source) addConnections(ctx context.Context, into *collector.Reading, conns []connection, t *totals) {
	skip := map[string]bool{"localhost": true, string(s.opt.Node): true}
	for _, n := range s.opt.Skip {
		skip[string(n)] = true
	}
	clients, complete := 0, true
	routes, targets := map[string]bool{}, map[string]bool{}
	for _, c := range conns {
		addr := c.remote.Addr().Unmap()
		serves := c.local.Port() == port9P || c.local.Port() == portNFS
		asks := c.remote.Port() == portNFS && !serves
		if !serves && !asks || addr.IsLoopback() || addr == c.local.Addr().Unmap() {
			continue
		}
		name, ok := s.names.Of(ctx, addr)
		if asks {
			if ok && !targets[name] && len(targets) < maxTargets {
				targets[name] = true
				into.Targets = append(into.Targets, collector.TargetSamples{Target: topology.TargetID(name)})
			}
			continue
		}
		if ok && skip[name] {
			continue
		}
		if clients++; !s.opt.Forwarder {
			continue
		}
		if complete = complete && ok; ok && !routes[name] {
			routes[name] = true
			into.Routes = append(into.Routes, collector.Route{Client: topology.NodeID(name),
				Forwarder: topology.ForwarderID(s.opt.Node)})
		}
	}
	into.Add(collector.Connections, float64(clients))
	into.RoutesComplete = s.opt.Forwarder && complete
	if len(into.Targets) == 1 { // all that it serves it asks of this one
		for _, m := range []collector.Metric{collector.ReadOps, collector.WriteOps, collector.ReadBytes,
			collector.WriteBytes} {
			if v, ok := collector.SampleOf(into.Samples, m); ok {
				one := &into.Targets[0]
				one.Samples = append(one.Samples, collector.Sample{Metric: m, Value: v})
			}
		}
	}
}

const (
	port9P     = 564
	portNFS    = 2049
	maxTargets = 64
)

// connection is one established TCP connection.
type connection struct{ local, remote netip.AddrPort }
