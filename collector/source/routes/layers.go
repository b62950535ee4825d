package routes

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/rootfs"
	"fairway/collector/source/dvs"
	"fairway/collector/source/lnet"
	"fairway/collector/source/nfs"
	"fairway/collector/topology"
)

// lnetRoots are where releases put LNet's files: up to 2.10, and later.
var lnetRoots = []string{"proc/sys/lnet", "sys/kernel/debug/lnet"}

// lnet are the routers that LNet chooses among: of those that are up the best priority, of these the fewest hops.
func (s *Source) lnet() (map[topology.ForwarderID]bool, error) {
	var refused error
	for _, root := range lnetRoots {
		name := path.Join(root, "routes")
		b, err := lnet.ReadTable(s.opt.Root, name)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				refused = fmt.Errorf("%w; run the agent as root, from Lustre 2.12 on it is for root only", err)
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		_, routes, err := lnet.ParseRoutes(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return s.best(routes), nil
	}
	return nil, refused
}

func (s *Source) best(routes []lnet.Route) map[topology.ForwarderID]bool {
	over := map[topology.ForwarderID]bool{}
	best := [2]int{math.MaxInt, math.MaxInt}
	for _, r := range routes {
		f, known := s.names[r.Router]
		if !known || r.State != "up" || s.opt.Net != "" && r.Net != s.opt.Net {
			continue
		}
		at := [2]int{r.Priority, max(1, r.Hops)} // hops that are not set: direct
		switch c := order(at, best); {
		case c < 0:
			best = at
			clear(over)
			over[f] = true
		case c == 0:
			over[f] = true
		}
	}
	return over
}

const (
	// countFor bounds one count: it runs beside the ticks, and a busy node takes seconds to start a program.
	countFor = time.Minute
	// muchOutput bytes of lnetctl cost too much to read every ten seconds: then each router is asked for by itself.
	muchOutput = 256 << 10
)

// messages counts what went to and came from each router, both ways: servers send data by routers of their own choice.
func (s *Source) messages(over map[topology.ForwarderID]bool) (c counted) {
	ctx, stop := context.WithTimeout(context.Background(), countFor)
	defer stop()
	ask := [][]string{{"lnetctl", "peer", "show", "-v", "1"}}
	if s.manyPeers.Load() {
		ask = nil
		for nid, f := range s.names {
			if over[f] {
				ask = append(ask, []string{"lnetctl", "peer", "show", "--nid", nid, "-v", "1"})
			}
		}
	}
	c.counts, c.trips = map[topology.ForwarderID]uint64{}, map[string]lnet.RoundTrip{}
	for _, argv := range ask {
		out, err := s.opt.Run(ctx, argv...)
		s.manyPeers.Store(s.manyPeers.Load() || len(out) > muchOutput)
		if err != nil {
			return counted{err: err}
		}
		interfaces, err := lnet.ParsePeerShow(out)
		if err == nil {
			err = s.count(&c, interfaces, over)
		}
		if err != nil {
			return counted{err: fmt.Errorf("%s: %w", strings.Join(argv, " "), err)}
		}
	}
	if len(c.counts) == 0 {
		return counted{err: fmt.Errorf("lnetctl peer show: none of the %d routers in use is among its peers; compare "+
			"the network ids of [routes.forwarders] with lnetctl route show", len(over))}
	}
	return c
}

// count adds what a router's interfaces counted, all of those that one of its network ids belongs to.
func (s *Source) count(c *counted, interfaces []lnet.PeerInterface, over map[topology.ForwarderID]bool) error {
	of := map[string]topology.ForwarderID{} // by primary network id
	for _, p := range interfaces {
		if f, known := s.names[p.NID]; known && over[f] {
			of[p.Primary] = f
		}
	}
	for _, p := range interfaces {
		f, router := of[p.Primary]
		if !router {
			continue
		}
		if !p.Counted {
			return fmt.Errorf("no counts of %s", p.NID)
		}
		c.counts[f] += p.Messages
		if p.RoundTrips.Count > 0 {
			c.trips[p.NID] = p.RoundTrips
		}
	}
	return nil
}

// roundTrips reports how long requests over each router took since the count before.
func (c *counted) roundTrips(was *counted, into *collector.Reading) {
	seconds := float64(c.at - was.at)
	for _, nid := range slices.Sorted(maps.Keys(c.trips)) {
		now, before := c.trips[nid], was.trips[nid]
		if now.Count <= before.Count || now.NanosecondsSum < before.NanosecondsSum || seconds <= 0 {
			continue // quiet, or begun anew
		}
		n := float64(now.Count - before.Count)
		into.Targets = append(into.Targets, collector.TargetSamples{Target: topology.TargetID(nid),
			Samples: []collector.Sample{{Metric: collector.RoundTrips, Value: n / seconds},
				{Metric: collector.RoundTripTime, Value: float64(now.NanosecondsSum-before.NanosecondsSum) / n / 1e9}}})
	}
}

// nfs are the servers of the node's NFS mounts, by their addresses: the name before the colon need not be one.
func (s *Source) nfs() (map[topology.ForwarderID]bool, error) {
	servers, err := s.nfsServers()
	over := map[topology.ForwarderID]bool{}
	for _, f := range servers {
		over[f] = true
	}
	return over, err
}

// nfsServers are the forwarders of the mount points.
func (s *Source) nfsServers() (map[string]topology.ForwarderID, error) {
	b, err := rootfs.ReadOfSelf(s.opt.Root, "proc", "mounts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]topology.ForwarderID{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 4 || f[2] != "nfs" && f[2] != "nfs4" || s.opt.Beside != "" &&
			strings.HasPrefix(f[1], s.opt.Beside+"/") {
			continue
		}
		host, _, _ := strings.Cut(f[0], ":/")
		server := strings.Trim(host, "[]")
		for o := range strings.SplitSeq(f[3], ",") {
			if addr, ok := strings.CutPrefix(o, "addr="); ok {
				server = addr
			}
		}
		if on, known := s.names[spelled(server)]; known {
			out[f[1]] = on
		} else if on, known = s.names[host]; known { // as it was mounted
			out[f[1]] = on
		}
		if addr, err := netip.ParseAddr(server); err == nil && s.floating() {
			out[f[1]] = topology.ForwarderID(addr.Unmap().String())
		}
	}
	return out, nil
}

// floating says that the addresses of NFS's servers belong to no server for good; they stand for the forwarders then.
func (s *Source) floating() bool { return s.opt.Kind == NFS && len(s.names) == 0 }

// maxAddresses bounds what a forwarder reports; protocol nodes have a few.
const maxAddresses = 256

// ownAddresses reports the addresses that this node's kernel answers to, as its routing tables have them.
func (s *Source) ownAddresses(into *collector.Reading) error {
	b, err := fs.ReadFile(s.opt.Root, "proc/net/fib_trie")
	if err != nil {
		return fmt.Errorf("which addresses this node has: %w", err)
	}
	own, last := map[string]bool{}, netip.Addr{}
	add := func(a netip.Addr) {
		if a.IsGlobalUnicast() {
			own[a.String()] = true
		}
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		switch {
		case len(f) == 2 && string(f[0]) == "|--":
			last, _ = netip.ParseAddr(string(f[1]))
		case len(f) == 3 && string(f[0]) == "/32" && string(f[2]) == "LOCAL":
			add(last)
		}
	}
	if b, err = fs.ReadFile(s.opt.Root, "proc/net/if_inet6"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("which addresses this node has: %w", err)
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if a := [16]byte{}; len(f) > 4 && len(f[0]) == 2*len(a) && answers(string(f[4])) {
			if _, err := hex.Decode(a[:], f[0]); err == nil {
				add(netip.AddrFrom16(a))
			}
		}
	}
	if len(own) == 0 || len(own) > maxAddresses {
		return fmt.Errorf("proc/net/fib_trie: it has %d addresses of this node: want 1 to %d", len(own), maxAddresses)
	}
	for _, a := range slices.Sorted(maps.Keys(own)) {
		into.Routes = append(into.Routes, collector.Route{Forwarder: topology.ForwarderID(s.opt.Node), Address: a})
	}
	return nil
}

// answers says by the flags of an IPv6 address whether the node answers to it: not while it looks whether another node
// has it (tentative, unless optimistic), and not when one has (dadfailed). One that is deprecated does: so floating
// addresses are often given, lest the node's own connections leave by them.
func answers(flags string) bool {
	const optimistic, failed, tentative = 0x04, 0x08, 0x40
	is, err := strconv.ParseUint(flags, 16, 32)
	return err == nil && is&failed == 0 && (is&tentative == 0 || is&optimistic != 0)
}

// nfsBytes sums what was exchanged with each server, by its file systems: a share mounted twice counts once.
func (s *Source) nfsBytes(over map[topology.ForwarderID]bool) (map[topology.ForwarderID]uint64, error) {
	servers, err := s.nfsServers()
	if err != nil {
		return nil, err
	}
	proc, err := fs.Sub(s.opt.Root, "proc")
	if err != nil {
		return nil, err
	}
	counts := map[topology.ForwarderID]uint64{}
	for f := range over {
		counts[f] = 0
	}
	err = nfs.EachExchange(proc, func(points []string, bytes uint64) {
		if i := slices.IndexFunc(points, func(p string) bool { return servers[p] != "" }); i >= 0 {
			counts[servers[points[i]]] += bytes
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return counts, err
}

// dvs are the servers that the node's DVS mounts use now. Which of several serves a request is the mount's choice by
// file, or by offset: how much goes where is not counted.
func (s *Source) dvs() (map[topology.ForwarderID]bool, error) {
	mounts, err := dvs.Mounts(s.opt.Root)
	over := map[topology.ForwarderID]bool{}
	for _, m := range mounts {
		for _, name := range m.Servers {
			if on, known := s.names[name]; known {
				over[on] = true
			}
		}
	}
	return over, err
}

// lwfs is the server that the link to the node's volume file leads to.
func (s *Source) lwfs() (map[topology.ForwarderID]bool, error) {
	file, err := fs.ReadLink(s.opt.Root, s.opt.Volume)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; want a link to the volume file in use", err)
	}
	over := map[topology.ForwarderID]bool{}
	if on, known := s.names[path.Base(file)]; known {
		over[on] = true
	}
	return over, nil
}
