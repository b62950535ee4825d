// Package lnet reads a node's LNet, Lustre's network: what it received, sent and routed, what it dropped, and which
// messages wait for what.
//
// It fills link_rx_bytes and link_tx_bytes (routed bytes count on both sides), errors (errors and drops) and, where the
// peers can be read, queue_len and tx_waiting, the messages that wait for credits to be sent with. On a router it
// fills routed_bytes, routed_ops, in_flight (the messages in it, sampled 20 times a second), transit_time (by Little's
// law) and buffers_free_ratio, and for each peer with messages on their way or waiting in_flight, tx_waiting and
// queue_len (those of its own messages that wait to be received). Its own interfaces are among them, with routed_ops.
// On other nodes the peers that are routers are reported so: what a sender has on its way through each, and route_up,
// whether its own table says that the router can be used. TCP gives a message's credit back when the socket has it, so
// that more is on its way over TCP than these gauges say. Lustre up to 2.10 lets everybody read its files, later ones
// root alone.
//
// A tick reads three small files, the sampler three more each time, about 15 microseconds each; peers is a system call
// for each of its lines and is read once a second, of a node with more than 4,000 peers every ten seconds.
package lnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"fairway/collector"
	"fairway/collector/topology"
)

// roots are where releases put LNet's files: up to 2.10, and later.
var roots = []string{"proc/sys/lnet", "sys/kernel/debug/lnet"}

// Limits of the table of peers.
const (
	manyPeers   = 4000 // more of them are read every manyEvery ticks only
	manyEvery   = 10
	mostTargets = 256 // peers that one second reports
)

// Source reads LNet once a second.
type Source struct {
	fsys   fs.FS
	counts collector.Rates[string]
	bytes  collector.Rates[string]

	was     Stats           // of the second before
	skip    int             // ticks until the peers are read again
	routers map[string]bool // that it sends through, and whether a route over each is up
	peers   []Peer

	gauges  collector.Sampler[gauges] // of a router
	sampled string                    // the root of the files that are sampled; empty: none are
}

var _ collector.Source = (*Source)(nil)

// New makes a source over the root of a file system.
func New(root fs.FS) *Source {
	s := &Source{fsys: root, routers: map[string]bool{}}
	s.counts.Wrap32 = true
	return s
}

// Name is "lnet".
func (s *Source) Name() string { return "lnet" }

// Close ends the sampling.
func (s *Source) Close() error { return s.gauges.Close() }

// retries is how often a table is read again that changed while it was read.
const retries = 2

// ReadTable reads a whole file of LNet. A table from which a line was taken while it was read gives ESTALE.
func ReadTable(root fs.FS, name string) (b []byte, err error) {
	for range 1 + retries {
		if b, err = fs.ReadFile(root, name); !errors.Is(err, syscall.ESTALE) {
			return b, err
		}
	}
	return nil, fmt.Errorf("%s: the table changed each time while it was read; it is not known in this second: %w",
		name, err)
}

func (s *Source) read(name string) ([]byte, error) { return ReadTable(s.fsys, name) }

// Read reads the counters and, where it may, the peers. What one file does not give costs its own values.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var refused error
	for _, root := range roots {
		name := path.Join(root, "stats")
		b, err := s.read(name)
		switch {
		case errors.Is(err, fs.ErrPermission):
			refused = err
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		st, err := ParseStats(b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return s.readAll(root, st, into)
	}
	if refused != nil {
		return fmt.Errorf("LNet's counters: %w; run the agent as root, from Lustre 2.12 on they are for root only",
			refused)
	}
	return fmt.Errorf("%w: no LNet below %v", collector.ErrNoData, roots)
}

func (s *Source) readAll(root string, st Stats, into *collector.Reading) error {
	routes, err := s.routes(root)
	router := st.RoutedBytes > 0 // some clients count a routed message without bytes
	if routes != nil {
		router = *routes
	}
	perSecond := s.rates(st, router, into)
	if router {
		s.interfaces(root, perSecond, into)
	}
	waiting, known, bad := s.readPeers(root, router, into)
	g, sampled := s.readGauges(root, router)
	if router && s.bytes.Seconds() > 0 { // else they are of more than the second
		waiting += emitGauges(g, perSecond, into)
	}
	if known {
		into.Add(collector.QueueLen, waiting)
	}
	return errors.Join(err, bad, sampled)
}

// routes says whether the node routes; nil where that is not known. The routers that it sends through are noted, and
// whether they are up.
func (s *Source) routes(root string) (*bool, error) {
	clear(s.routers)
	name := path.Join(root, "routes")
	b, err := s.read(name)
	if err != nil {
		return nil, unlessAbsent(err)
	}
	routing, routes, err := ParseRoutes(b)
	if err != nil && routes == nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, r := range routes {
		s.routers[r.Router] = s.routers[r.Router] || r.State == "up"
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return &routing, err
}

// unlessAbsent forgets the errors of a file that is not there or for root alone.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// rates reports the counters; perSecond is the messages routed a second, not a number where that is not known.
func (s *Source) rates(st Stats, router bool, into *collector.Reading) (perSecond float64) {
	s.counts.Begin(into.Now)
	s.bytes.Begin(into.Now)
	if st.wentBack(&s.was) {
		s.counts.Restart()
	}
	s.was = st
	var rx, tx, errs collector.Total
	s.bytes.AddTo(&rx, "recv", st.ReceivedBytes)
	s.bytes.AddTo(&tx, "send", st.SentBytes)
	routed, ok := s.bytes.Rate("route", st.RoutedBytes)
	messages, counted := s.counts.Rate("routed", st.Routed)
	if ok {
		rx.Add(routed)
		tx.Add(routed)
	}
	if router && ok {
		into.Add(collector.RoutedBytes, routed)
	}
	if router && counted {
		into.Add(collector.RoutedOps, messages)
		perSecond = messages
	}
	s.counts.AddTo(&errs, "errors", st.Errors)
	s.counts.AddTo(&errs, "drops", st.Dropped)
	into.AddTotal(collector.LinkRxBytes, &rx)
	into.AddTotal(collector.LinkTxBytes, &tx)
	into.AddTotal(collector.Errors, &errs)
	into.Resets += s.counts.Resets + s.bytes.Resets
	return perSecond
}

// readPeers reports who waits for whom: waiting are the messages that wait for a peer's credit. With a bad line in the
// table the other peers are reported, and the sum over all of them is not known.
func (s *Source) readPeers(root string, router bool, into *collector.Reading) (waiting float64, known bool, err error) {
	if s.skip > 0 {
		s.skip--
		s.peers = s.peers[:0]
		s.targets(router, into)
		return 0, false, nil
	}
	name := path.Join(root, "peers")
	b, err := s.read(name)
	if err != nil {
		s.peers = s.peers[:0]
		s.targets(router, into)
		return 0, false, unlessAbsent(err)
	}
	if s.peers, err = ParsePeers(b); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if len(s.peers) > manyPeers {
		s.skip = manyEvery - 1
	}
	for i := range s.peers {
		waiting += float64(s.peers[i].Waiting())
	}
	if err == nil {
		into.Add(collector.TxWaiting, waiting)
	}
	s.targets(router, into)
	return waiting, err == nil, err
}

// targets reports the peers that something is on its way to or waits for; of a node that is not a router its routers,
// whatever is on its way through them.
func (s *Source) targets(router bool, into *collector.Reading) {
	listed := s.peers[:0]
	for _, p := range s.peers {
		if _, through := s.routers[p.NID]; through || router && (p.InFlight() > 0 || p.RtrCredits < 0) {
			listed = append(listed, p)
		}
	}
	if len(listed) > mostTargets {
		slices.SortFunc(listed, func(a, b Peer) int { return b.Waiting() + b.InFlight() - a.Waiting() - a.InFlight() })
		listed = listed[:mostTargets]
	}
	for i := range listed {
		p := &listed[i]
		samples := []collector.Sample{{Metric: collector.InFlight, Value: float64(p.InFlight())},
			{Metric: collector.TxWaiting, Value: float64(p.Waiting())},
			{Metric: collector.QueueLen, Value: float64(max(0, -p.RtrCredits))}}
		if up, through := s.routers[p.NID]; through {
			samples = append(samples, routeUp(up))
			delete(s.routers, p.NID)
		}
		into.Targets = append(into.Targets,
			collector.TargetSamples{Target: topology.TargetID(p.NID), Samples: samples})
	}
	for _, nid := range slices.Sorted(maps.Keys(s.routers)) { // of which nothing else is known
		into.Targets = append(into.Targets, collector.TargetSamples{Target: topology.TargetID(nid),
			Samples: []collector.Sample{routeUp(s.routers[nid])}})
	}
}

func routeUp(up bool) collector.Sample {
	if up {
		return collector.Sample{Metric: collector.RouteUp, Value: 1}
	}
	return collector.Sample{Metric: collector.RouteUp, Value: 0}
}

// interfaces reports a router's own interfaces, so that others know whose they send to: those alone have routed_ops,
// of the whole router.
func (s *Source) interfaces(root string, perSecond float64, into *collector.Reading) {
	b, err := s.read(path.Join(root, "nis"))
	if err != nil {
		return // then others are compared without what is on its way to this one
	}
	nis, _ := ParseNIs(b)
	waiting := map[string]float64{}
	var order []string
	for _, ni := range nis {
		if _, again := waiting[ni.NID]; !again && ni.Max > 0 { // not the loopback
			order = append(order, ni.NID)
		}
		waiting[ni.NID] += float64(max(0, -ni.Credits))
	}
	for _, nid := range order {
		into.Targets = append(into.Targets, collector.TargetSamples{Target: topology.TargetID(nid),
			Samples: []collector.Sample{{Metric: collector.RoutedOps, Value: perSecond},
				{Metric: collector.TxWaiting, Value: waiting[nid]}}})
	}
}

// emitGauges reports a router's gauges and returns the messages that wait for a buffer or an interface.
func emitGauges(g gauges, perSecond float64, into *collector.Reading) (waiting float64) {
	if g.samples > 0 {
		inside := g.inside / g.samples
		into.Add(collector.InFlight, inside)
		if perSecond > 0 {
			into.Add(collector.TransitTime, inside/perSecond)
		}
	}
	if g.pools > 0 {
		into.Add(collector.BuffersFreeRatio, g.free/g.pools)
		waiting += g.noBuffer / g.pools
	}
	if g.nis > 0 {
		waiting += g.noCredit / g.nis
	}
	return waiting
}
