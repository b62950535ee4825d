// Package model is a site with LNet routers as a queueing model: clients that wait for their answers, routers that
// store and forward messages under credits, servers with threads and disks. It is event driven and closed loop,
// and one seed gives one course of events. It knows no file and no clock of the machine; others write what its
// nodes would show.
package model

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Config is a site.
type Config struct {
	Seed       uint64
	Clients    int
	Routers    int
	OSS        int
	MDS        int
	OSTs       int     // of each OSS
	RouterRate float64 // of each direction of each of a router's links, bytes a second
	ClientRate float64 // of a client's link
	ServerRate float64
	Load       float64 // data asked for, as a share of what the routers pass in one direction; 1: no pauses
	Groups     int     // static routes: the clients in this many groups, each with its part of the routers; 0: all
	Spares     int     // the last routers, which everybody has routes over, behind the others
	Discovery  bool    // nodes know a router by its far identifier
	Older      int     // this many routers have older hardware: a fifth slower
	Jobs       []Job   // nil: four jobs share the clients; empty: none runs until one is started
}

// Site is the model of one. It is not safe for concurrent use.
type Site struct {
	Engine
	Nodes   []*Node
	Jobs    []*Job
	cfg     Config
	clients []*Node
	routers []*Node
	servers []*Node
	byNID   map[string]*Node
	byName  map[string]*Node
	near    [][]*Peer // of each node by its index, by that of the neighbour; nil: none
	rng     *rand.Rand
}

// The nets of a site.
const (
	ClientNet = "tcp"
	ServerNet = "o2ib"
	// FSName is the file system's name.
	FSName = "scratch"
)

// Small is the site of four routers that tests run.
func Small(seed uint64) Config {
	return Config{Seed: seed, Clients: 8, Routers: 4, OSS: 2, MDS: 1, OSTs: 2, RouterRate: 300e6, ClientRate: 600e6,
		ServerRate: 2.5e9, Load: 0.6}
}

// Large is the site of a thousand clients.
func Large(seed uint64) Config {
	return Config{Seed: seed, Clients: 1000, Routers: 16, OSS: 30, MDS: 2, OSTs: 2, RouterRate: 1 << 30,
		ClientRate: 1.25e9, ServerRate: 10e9, Load: 0.3}
}

// New builds a site, with all of its nodes up for days.
func New(cfg Config) (*Site, error) {
	switch {
	case cfg.Clients < 1 || cfg.Routers < 1 || cfg.OSS < 1 || cfg.MDS < 1 || cfg.OSTs < 1:
		return nil, fmt.Errorf("%d clients, %d routers, %d OSS with %d OSTs, %d MDS: want at least one of each",
			cfg.Clients, cfg.Routers, cfg.OSS, cfg.OSTs, cfg.MDS)
	case cfg.RouterRate <= 0 || cfg.ClientRate <= 0 || cfg.ServerRate <= 0 || cfg.Load <= 0:
		return nil, fmt.Errorf("rates and load must be above 0: %+v", cfg)
	case cfg.Groups < 0 || cfg.Groups > cfg.Routers:
		return nil, fmt.Errorf("%d groups for %d routers", cfg.Groups, cfg.Routers)
	case cfg.Spares < 0 || cfg.Spares >= cfg.Routers:
		return nil, fmt.Errorf("%d of %d routers are spare: want one at least that is not", cfg.Spares, cfg.Routers)
	}
	s := &Site{cfg: cfg, byNID: map[string]*Node{}, byName: map[string]*Node{},
		rng: rand.New(rand.NewPCG(cfg.Seed, 1))}
	s.build()
	for _, j := range s.Jobs {
		s.At(j.Begin, func() { s.start(j) })
	}
	s.After(0, s.pinger)
	return s, nil
}

// Config is what the site was built from.
func (s *Site) Config() Config { return s.cfg }

// Node finds a node by its name, nil if the site has no such node.
func (s *Site) Node(name string) *Node { return s.byName[name] }

// Of lists the nodes of a role.
func (s *Site) Of(r Role) []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.Role == r {
			out = append(out, n)
		}
	}
	return out
}

func (s *Site) build() {
	c := s.cfg
	for i := range c.Clients {
		n := s.add(fmt.Sprintf("cn%0*d", digits(c.Clients), i+1), Client)
		n.addNI(fmt.Sprintf("10.0.%d.%d@%s", i/250, i%250+1, ClientNet), ClientNet, "eth0", c.ClientRate, 1)
		s.clients = append(s.clients, n)
	}
	for i := range c.Routers {
		n := s.add(fmt.Sprintf("rtr%d", i+1), Router)
		rate := c.RouterRate
		if i < c.Older {
			rate /= 1.2
		}
		n.addNI(fmt.Sprintf("10.0.255.%d@%s", i+1, ClientNet), ClientNet, "eth0", rate, 2)
		n.addNI(fmt.Sprintf("10.1.255.%d@%s", i+1, ServerNet), ServerNet, "ib0", rate, 2)
		n.buffers(2)
		s.routers = append(s.routers, n)
	}
	ost := 0
	for i := range c.OSS + c.MDS {
		role, name := OSS, fmt.Sprintf("oss%d", i+1)
		if i >= c.OSS {
			role, name = MDS, fmt.Sprintf("mds%d", i-c.OSS+1)
		}
		n := s.add(name, role)
		n.addNI(fmt.Sprintf("10.1.0.%d@%s", i+1, ServerNet), ServerNet, "ib0", c.ServerRate, 2)
		n.Server = &Server{Service: Service{Threads: 64}}
		for k := range c.OSTs {
			if role == MDS && k > 0 {
				break
			}
			t := &Target{Name: fmt.Sprintf("%s-OST%04x", FSName, ost), speed: 1, node: n, disks: make(lanes, 8),
				rng: rand.New(rand.NewPCG(c.Seed, 1000+uint64(len(s.Nodes)*100+k)))}
			if role == MDS {
				t.Name = fmt.Sprintf("%s-MDT%04x", FSName, i-c.OSS)
			} else {
				ost++
			}
			n.Server.Targets = append(n.Server.Targets, t)
		}
		s.servers = append(s.servers, n)
	}
	s.routes()
	s.imports()
	s.jobs()
	for _, n := range s.Nodes {
		n.age(s.rng)
	}
}

func digits(n int) int { return len(fmt.Sprint(n)) }

func (s *Site) add(name string, role Role) *Node {
	n := &Node{Name: name, Index: len(s.Nodes), Role: role, site: s, Health: Healthy(),
		Table: &Table{preferred: map[string][]string{}}, Truth: Truth{From: map[string]uint64{}},
		CPU: CPU{Cores: 2, lane: make(lanes, 2)}}
	s.Nodes, s.near = append(s.Nodes, n), append(s.near, nil)
	s.byName[name] = n
	return n
}

// addNI adds an interface; cpts is the number of partitions of processors that serve it.
func (n *Node) addNI(nid, net, link string, rate float64, cpts int) {
	const credits = 256
	ni := &NI{NID: nid, Net: net, Link: link, PeerTx: 8, PeerRtr: 128, rate: rate,
		RateBits: rate * 8, waiting: make([][]*message, cpts)}
	for range cpts {
		ni.Tx = append(ni.Tx, Credits{credits / cpts, credits / cpts, credits / cpts})
	}
	n.NIs = append(n.NIs, ni)
	n.site.byNID[nid] = n
}

func (n *Node) buffers(cpts int) {
	for i, size := range []struct{ pages, count int }{{0, 2048}, {1, 8192}, {256, 512}} {
		for range cpts {
			c := size.count / cpts
			n.Buffers[i] = append(n.Buffers[i], &Pool{Pages: size.pages, Count: c, Credits: c, Min: c, whole: c})
		}
	}
}

// routes gives every client the routers of its group, and every server all of them.
func (s *Site) routes() {
	behind := func(k int) int { // a route's priority: the lower the sooner
		if k >= len(s.routers)-s.cfg.Spares {
			return 1
		}
		return 0
	}
	for i, c := range s.clients {
		for k, r := range s.routers {
			if g := s.cfg.Groups; g == 0 || k*g/len(s.routers) == i*g/len(s.clients) {
				s.must(c.AddRoute(ServerNet, r.NIs[0].NID, -1, behind(k)))
				c.peerOf(r, ClientNet)
			}
		}
	}
	for _, o := range s.servers {
		for k, r := range s.routers {
			s.must(o.AddRoute(ClientNet, r.NIs[1].NID, -1, behind(k)))
			o.peerOf(r, ServerNet)
		}
	}
	for _, r := range s.routers {
		for _, c := range s.clients {
			r.peerOf(c, ClientNet)
		}
		for _, o := range s.servers {
			r.peerOf(o, ServerNet)
		}
	}
}

// must is for routes of the model's own making.
func (s *Site) must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *Site) imports() {
	for i, c := range s.clients {
		c.Front = &Front{rng: rand.New(rand.NewPCG(s.cfg.Seed, 100000+uint64(i)))}
		var mdt *Target
		for _, o := range s.servers {
			if o.Role == MDS {
				if mdt == nil || i%s.cfg.MDS == o.Index-s.servers[s.cfg.OSS].Index {
					mdt = o.Server.Targets[0]
				}
				continue
			}
			for _, t := range o.Server.Targets {
				c.Front.Imports = append(c.Front.Imports, &Import{Target: t})
			}
		}
		c.Front.Imports = append(c.Front.Imports, &Import{Target: mdt})
		for k, im := range c.Front.Imports {
			s.After(time.Duration(i*131+k*977)*time.Millisecond%(25*time.Second), func() { calls{s}.ping(c, im) })
		}
	}
}

// Mixes are the kinds of work that jobs do.
func Mixes() []Mix {
	whole := []Size{{MiB, 0.8}, {4 * MiB, 0.1}, {64 << 10, 0.05}, {4 << 10, 0.05}}
	return []Mix{
		{Depth: 8, Reads: 0.5, Metadata: 0.05, Sizes: whole},
		{Depth: 8, Reads: 0.1, Metadata: 0.02, Sizes: []Size{{MiB, 0.5}, {4 * MiB, 0.2}, {256 << 10, 0.3}}},
		{Depth: 8, Reads: 0.9, Metadata: 0.05, Sizes: whole},
		{Depth: 8, Reads: 0.5, Metadata: 0.3, Sizes: []Size{{MiB, 0.6}, {64 << 10, 0.2}, {4 << 10, 0.2}}},
	}
}

// jobs shares the clients among four jobs whose pauses give the load that was asked for.
func (s *Site) jobs() {
	if s.cfg.Jobs != nil {
		for _, j := range s.cfg.Jobs {
			s.Jobs = append(s.Jobs, &j)
		}
		return
	}
	mixes := Mixes()
	n := min(len(mixes), s.cfg.Clients)
	for k := range n {
		j := &Job{ID: fmt.Sprint(1001 + k), Mix: mixes[k]}
		for i := range s.clients {
			if i*n/len(s.clients) == k {
				j.Clients = append(j.Clients, i)
			}
		}
		if s.cfg.Load < 1 {
			j.Mix.Think = s.Think(j.Mix, s.cfg.Load)
		}
		s.Jobs = append(s.Jobs, j)
	}
}

// Think is the pause with which a mix, on all clients, asks for a share of what the routers pass in one direction.
func (s *Site) Think(m Mix, load float64) time.Duration {
	const answer = 0.012 // s that a call takes about
	perCall := m.mean() * (1 - m.Metadata)
	rate := load * float64(s.cfg.Routers) * s.cfg.RouterRate
	pause := float64(s.cfg.Clients*m.Depth)*perCall/rate - answer
	return max(time.Millisecond, time.Duration(pause*float64(time.Second)))
}

// age gives a node counters of many days, and its router's near where 32 bits end.
func (n *Node) age(rng *rand.Rand) {
	n.Since = -time.Duration(2+rng.IntN(40)) * 24 * time.Hour
	const near = 1<<32 - 1
	c := &n.LNet
	c.AllocMax = 40 + rng.IntN(400)
	switch n.Role {
	case Router:
		c.Routed = near - uint32(rng.IntN(200_000))
		c.RoutedBytes = uint64(rng.Int64N(1 << 50))
		c.Sent = uint32(rng.IntN(1e6))
		c.Received = c.Sent + uint32(rng.IntN(100))
		c.SentBytes, c.ReceivedBytes = uint64(c.Sent)*80, uint64(c.Received)*80
	default:
		c.Sent, c.Received = rng.Uint32(), rng.Uint32()
		c.SentBytes, c.ReceivedBytes = uint64(rng.Int64N(1<<44)), uint64(rng.Int64N(1<<44))
	}
	c.Dropped = uint32(rng.IntN(300))
	c.DroppedBytes = uint64(c.Dropped) * 520
	for _, ni := range n.NIs {
		ni.InBytes, ni.OutBytes = uint64(rng.Int64N(1<<44)), uint64(rng.Int64N(1<<44))
	}
	for _, p := range n.Peers {
		for k := range kinds {
			p.Sent[k], p.Received[k] = uint32(rng.IntN(1e6)), uint32(rng.IntN(1e6))
		}
	}
}
