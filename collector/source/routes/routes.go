// Package routes observes which forwarders a compute node uses, on layers where the node itself can be asked: LNet's
// routes, NFS's mounts, DVS's mounts, LWFS's volume files. It reads only; to look needs no right to move.
//
// It fills the frame's routes. A node that may use several forwarders reports all of them with their shares: those of
// LNet as its messages went, where lnetctl counts them by peer (2.10 and later), those of NFS as its mounts' bytes
// went. Where neither was counted yet the shares are even and marked as assumed; those of DVS always are.
//
// Where NFS's servers have addresses that float, a client reports the address that each mount uses, and a forwarder
// (Addresses) those that its kernel has now; the daemon puts them together.
//
// On LNet it fills round_trip_time and round_trips of each router too, where lnetctl has them (2.17.55 and later).
//
// A tick reads one or two files of a few kB. On LNet lnetctl is run every ten seconds, beside the ticks.
package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"fairway/collector"
	"fairway/collector/source/lnet"
	"fairway/collector/topology"
)

// The kinds of layer.
const (
	LNet = "lnet"
	NFS  = "nfs"
	DVS  = "dvs"
	LWFS = "lwfs"
	// Addresses is the other end of such a layer: which addresses this forwarder has.
	Addresses = "addresses"
)

// Kinds lists them.
func Kinds() []string { return []string{LNet, NFS, DVS, LWFS, Addresses} }

// Options say what to look at.
type Options struct {
	Kind string
	Node topology.NodeID
	Root fs.FS // holds proc and sys
	// Forwarders are by name what the layer calls them: a router's NIDs, with commas between them, a server's
	// address, a DVS server's name, the name of LWFS's volume file. Of NFS none at all: its servers' addresses float.
	Forwarders map[topology.ForwarderID]string
	Net        string // of LNet, the file system's
	Volume     string // of LWFS, the link to the volume file in use, below Root
	Beside     string // of NFS, a folder whose mounts do not count: a move is tried there; "" for none
	// Run runs a program and returns what it printed; nil: LNet's shares are not measured.
	Run func(ctx context.Context, argv ...string) ([]byte, error)
}

// Source reports the node's way to storage once a second.
type Source struct {
	opt       Options
	names     map[string]topology.ForwarderID
	manyPeers atomic.Bool // lnetctl prints too much of all of them
	shares
}

var _ collector.Source = (*Source)(nil)

// New makes a source.
func New(opt Options) *Source {
	s := &Source{opt: opt, names: map[string]topology.ForwarderID{}}
	for f, name := range opt.Forwarders {
		for one := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ',' || r == ' ' }) {
			s.names[spelled(one)] = f
		}
	}
	return s
}

// spelled writes an address as the kernel does; what is not one stays.
func spelled(name string) string {
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return a.Unmap().String()
	}
	return name
}

// Name is "routes".
func (*Source) Name() string { return "routes" }

// Close has nothing to release.
func (*Source) Close() error { return nil }

// Read reports the forwarders that the node may use now. A node that uses none reports that. An error beside routes is
// that of the newest count.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var over map[topology.ForwarderID]bool
	var count func() counted
	var err error
	switch s.opt.Kind {
	case Addresses:
		return s.ownAddresses(into)
	case LNet:
		over, err = s.lnet()
		count = func() counted { return s.messages(over) }
		if s.opt.Run == nil {
			count = nil
		}
	case NFS:
		over, err = s.nfs()
		if len(over) > 1 { // else all goes one way
			count = func() (c counted) { c.counts, c.err = s.nfsBytes(over); return c }
		}
	case DVS:
		over, err = s.dvs()
	case LWFS:
		over, err = s.lwfs()
	}
	if err != nil {
		return err
	}
	into.RoutesComplete = true
	if len(over) == 0 && s.floating() {
		return fmt.Errorf("%w: no NFS file system is mounted", collector.ErrNoData)
	}
	if len(over) == 0 {
		return fmt.Errorf("%w: none of the forwarders of [routes.forwarders] is in use", collector.ErrNoData)
	}
	s.poll(count, into)
	parts, measured := s.divide(over, into.Now.Unix())
	for _, f := range slices.Sorted(maps.Keys(over)) {
		r := collector.Route{Client: s.opt.Node, Forwarder: f}
		if s.floating() {
			r.Forwarder, r.Address = "", string(f)
		}
		if len(over) > 1 {
			if r.Share, r.Assumed = parts[f], !measured; r.Share <= 0 {
				continue // it may, and does not
			}
		}
		into.Routes = append(into.Routes, r)
	}
	return s.bad
}

// shares measures by which of several forwarders a node's traffic goes.
type shares struct {
	asked int64                            // when the newest count began
	last  *counted                         // that has ended well; nil: none has
	parts map[topology.ForwarderID]float64 // measured; nil: never
	of    int64                            // when they were measured
	under chan counted                     // the count under way
	bad   error                            // why the newest count failed
}

const (
	// countEvery seconds the counts are taken, and fewest of them in between say where the traffic goes.
	countEvery, fewest = 10, 50
	// keepFor seconds a measured division stands while the node is quiet.
	keepFor = 600
)

// poll begins a count every ten seconds, and takes the outcome of the one before.
func (s *shares) poll(count func() counted, into *collector.Reading) {
	s.collect(into)
	now := into.Now.Unix()
	if count == nil || s.under != nil || now-s.asked < countEvery && now >= s.asked {
		return
	}
	s.asked, s.under = now, make(chan counted, 1)
	go func(to chan<- counted) { // a program may take longer than a tick
		var c counted
		if err := collector.Fenced(func() error { c = count(); return nil }); err != nil {
			c.err = err
		}
		c.at = now
		to <- c
	}(s.under)
}

// divide returns the forwarders' parts: measured, or even.
func (s *shares) divide(over map[topology.ForwarderID]bool, now int64) (parts map[topology.ForwarderID]float64,
	measured bool) {
	if len(over) < 2 {
		s.parts = nil
	}
	sum := 0.0
	for f := range over {
		sum += s.parts[f]
	}
	parts = map[topology.ForwarderID]float64{}
	measured = sum > 0.5 && now-s.of <= keepFor && now >= s.of
	for f := range over {
		if parts[f] = 1 / float64(len(over)); measured {
			parts[f] = s.parts[f] / sum
		}
	}
	return parts, measured
}

// counted is the outcome of one count.
type counted struct {
	at     int64
	counts map[topology.ForwarderID]uint64
	trips  map[string]lnet.RoundTrip // by a router's network id
	err    error
}

// collect takes the outcome of the count under way, if it has ended.
func (s *shares) collect(into *collector.Reading) {
	var c counted
	select {
	case c = <-s.under:
		s.under = nil
	default:
		return
	}
	was := s.last
	s.last, s.bad = nil, nil
	if errors.Is(c.err, exec.ErrNotFound) {
		return // a release without the tool: the shares are marked as assumed
	}
	if c.err != nil {
		s.bad = fmt.Errorf(
			"what goes by each forwarder was not counted; the shares of before stand for %d s, then even "+
				"ones: %w", keepFor, c.err)
		return
	}
	if s.last = &c; was == nil {
		return
	}
	c.roundTrips(was, into)
	parts, sum := map[topology.ForwarderID]float64{}, 0.0
	for f, n := range c.counts {
		if before, ok := was.counts[f]; ok && n >= before {
			parts[f] = float64(n - before)
			sum += parts[f]
		}
	}
	if sum < fewest {
		return
	}
	for f := range parts {
		parts[f] /= sum
	}
	s.parts, s.of = parts, c.at
}

// order compares ways as their kernels choose among them, the better first.
func order(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
