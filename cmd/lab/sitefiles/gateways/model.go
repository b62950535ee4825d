// Package gateways is a site in files whose compute nodes reach Lustre through gateways: NFS servers, DVS servers,
// LWFS servers. A small model writes what such nodes have in /proc and /sys, so that fairway's programs run on it
// unchanged, and orders reach it by the programs that a real node has: mount, umount, a site's own command.
package gateways

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// Op is a class of operations.
type Op int

// The classes.
const (
	Read Op = iota
	Write
	Meta
	classes
)

// What the model is made of. Clients wait for each answer, so that a slow gateway is asked for less.
const (
	depth     = 4 // calls that a client keeps under way
	think     = 12 * time.Millisecond
	metadata  = 0.1     // of all calls
	callBytes = 1 << 19 // of a data call
	threads   = 6       // of a gateway
	workers   = 256     // of a protocol node, whose NFS server is ganesha: its default (Nb_Worker)
	callCPU   = 300 * time.Microsecond
	linkRate  = 1e9 // of a gateway to its storage, bytes a second
	diskMean  = 6 * time.Millisecond
	diskSigma = 0.3 // of the logarithm
	metaMean  = 700 * time.Microsecond
)

// counted are calls of one class: how many, their bytes, and their time.
type counted struct {
	n, bytes uint64
	took     time.Duration
	queued   time.Duration // of a gateway's, before that
}

// Client is a compute node.
type Client struct {
	Name, Addr string
	on         *Gateway // nil: nothing is mounted, or nobody answers at its address
	address    string   // GPFS: what it has mounted; else its gateway's own
	mounted    time.Duration
	mount      [classes]counted // since then
	ever       [classes]counted
	under      []*call // calls that wait for their answers
	parked     int     // calls that wait for a mount
	job        string
	think      time.Duration // between an answer and the next call
	run        int           // counts jobs, so that calls of one that has ended begin no further ones
	runs       bool
}

// call is a call under way.
type call struct {
	on             *Gateway
	op             Op
	asked, mounted time.Duration
}

// Gateway is a forwarding node.
type Gateway struct {
	Name, Addr string
	calls      [classes]counted
	wait, exec [classes][8]uint64     // by decades from 10 microseconds on
	waited     [classes]time.Duration // sum over the calls that have begun, which no file shows
	llite      model.Stats
	osc        []model.Stats // a row a storage target
	waiting    []func()
	free       int
	Health     model.Health
	link, cpu  model.Line
	bytesOf    map[string]uint64 // by client
	traced     uint64            // calls at the newest line of its trace
}

// compute is when work is done that needs some time of the gateway's processor.
func (g *Gateway) compute(now, need time.Duration) time.Duration {
	return g.cpu.Serve(now, time.Duration(float64(need)/g.Health.CPU/g.Health.Heat.Speed(now)))
}

// send is when something has crossed the gateway's link, which is one for both directions and healthy needs some time.
func (g *Gateway) send(now, need time.Duration) time.Duration {
	return g.link.Serve(now, time.Duration(float64(need)/min(g.Health.LinkIn, g.Health.LinkOut)))
}

// Model is the site at one moment.
type Model struct {
	model.Engine
	rng      *rand.Rand
	Clients  []*Client
	Gateways []*Gateway
	disks    []float64 // the share of its speed that each storage target has
	ces      *ces      // of GPFS, else nil
}

// NewModel builds a site of 8 clients, 4 gateways and 4 storage targets.
func NewModel(seed uint64) *Model {
	const clients, gateways, targets = 8, 4, 4
	m := &Model{rng: rand.New(rand.NewPCG(seed, 16))}
	for range targets {
		m.disks = append(m.disks, 1)
	}
	for i := range gateways {
		m.Gateways = append(m.Gateways, &Gateway{Name: fmt.Sprintf("gw%d", i+1), Addr: fmt.Sprintf("10.2.0.%d", i+1),
			osc: make([]model.Stats, targets), free: threads, Health: model.Healthy(),
			bytesOf: map[string]uint64{}})
	}
	for i := range clients {
		c := &Client{Name: fmt.Sprintf("cn%d", i+1), Addr: fmt.Sprintf("10.2.1.%d", i+1), on: m.Gateways[i%gateways]}
		m.Clients = append(m.Clients, c)
		m.start(c, "", think)
	}
	return m
}

// start has a client ask.
func (m *Model) start(c *Client, job string, think time.Duration) {
	c.run, c.runs, c.job, c.think = c.run+1, true, job, think
	for range depth {
		m.ask(c, c.run)
	}
}

// stop ends a client's job; what is under way is still answered.
func (c *Client) stop() { c.runs, c.job, c.parked = false, "", 0 }

// quiet has nothing run, and clients use all gateways but the last ones.
func (m *Model) quiet(spares int) {
	for i, c := range m.Clients {
		c.stop()
		c.on = m.Gateways[i%(len(m.Gateways)-spares)]
	}
	if m.ces != nil {
		m.float(len(m.Clients)-2, spares) // most clients have an address of their own
	}
}

func (m *Model) ask(c *Client, run int) {
	m.After(time.Duration(m.rng.ExpFloat64()*float64(c.think)), func() { m.call(c, run) })
}

// call is one call of a client: it waits for a thread of its gateway, which asks the storage.
func (m *Model) call(c *Client, run int) {
	if !c.runs || c.run != run {
		return
	}
	if c.on == nil {
		c.parked++
		return
	}
	op := Meta
	if r := m.rng.Float64(); r >= metadata {
		op = Op(m.rng.IntN(2))
	}
	g, one := c.on, &call{on: c.on, op: op, asked: m.Now(), mounted: c.mounted}
	c.under = append(c.under, one)
	start := func() { m.serve(c, one, run) }
	if g.free == 0 {
		g.waiting = append(g.waiting, start)
		return
	}
	g.free--
	start()
}

func (m *Model) serve(c *Client, one *call, run int) {
	g, op, asked, begun := one.on, one.op, one.asked, m.Now()
	count(&g.wait[op], begun-asked)
	g.waited[op] += begun - asked
	sent := g.compute(begun, callCPU)
	back, target, bytes := sent+metaMean, 0, uint64(0)
	if op != Meta {
		target, bytes = m.rng.IntN(len(m.disks)), callBytes
		disk := float64(diskMean) * math.Exp(m.rng.NormFloat64()*diskSigma-diskSigma*diskSigma/2) / m.disks[target]
		back = g.send(sent, time.Duration(callBytes/linkRate*float64(time.Second))) + time.Duration(disk)
	}
	var answer func()
	answer = func() {
		if g.Health.Hold(answer) {
			return
		}
		g.note(op, c, target, bytes, m.Now()-sent, m.Now()-begun)
		g.calls[op].queued += begun - asked
		if m.lost(g, op) {
			m.After(model.Retransmit, func() { m.deliver(c, one, bytes, run) })
		} else {
			m.deliver(c, one, bytes, run)
		}
		if len(g.waiting) > 0 {
			next := g.waiting[0]
			g.waiting = g.waiting[1:]
			next()
		} else {
			g.free++
		}
	}
	m.At(back, answer)
}

// deliver brings an answer to its client, which thinks and asks again.
func (m *Model) deliver(c *Client, one *call, bytes uint64, run int) {
	c.under = slices.DeleteFunc(c.under, func(o *call) bool { return o == one })
	c.ever[one.op].add(bytes, m.Now()-one.asked)
	if (c.on == one.on || c.address != "") && c.mounted == one.mounted {
		c.mount[one.op].add(bytes, m.Now()-one.asked)
	}
	m.ask(c, run)
}

// lost says whether an answer is lost on the way to its client.
func (m *Model) lost(g *Gateway, op Op) bool {
	if g.Health.Loss <= 0 || m.rng.Float64() >= g.Health.Loss {
		return false
	}
	if g.Health.Damage.Resent++; op == Read {
		g.Health.Damage.Resent += callBytes / model.SegmentBytes
	}
	return true
}

func (c *counted) add(bytes uint64, took time.Duration) {
	c.n, c.bytes, c.took = c.n+1, c.bytes+bytes, c.took+took
}

func count(buckets *[8]uint64, took time.Duration) {
	i := 0
	for edge := 10 * time.Microsecond; i < len(buckets)-1 && took >= edge; edge *= 10 {
		i++
	}
	buckets[i]++
}

// note counts an answered call at the gateway.
func (g *Gateway) note(op Op, c *Client, target int, bytes uint64, back, took time.Duration) {
	g.calls[op].add(bytes, took)
	count(&g.exec[op], took)
	g.bytesOf[c.Name] += bytes
	name := [...]string{"read", "write", "getattr"}[op]
	g.llite.Of(name, "usec").Add(uint64(took.Microseconds()))
	if op == Meta {
		return
	}
	g.llite.Of(name+"_bytes", "bytes").Add(bytes)
	osc := &g.osc[target]
	osc.Of("req_waittime", "usec").Add(uint64(back.Microseconds()))
	osc.Of(name+"_bytes", "bytes").Add(bytes)
	osc.Of("ost_"+name, "usec").Add(uint64(back.Microseconds()))
}

// use has a client use a gateway from now on; nil: none. A client that uses one refuses without force while something
// runs there: its programs have files open. What is under way ends where it began.
func (m *Model) use(c *Client, g *Gateway, force bool) error {
	if c.on != nil && c.runs && !force {
		return fmt.Errorf("target is busy")
	}
	c.on = g
	if g == nil {
		return nil
	}
	c.mounted, c.mount = m.Now(), [classes]counted{}
	m.unpark(c)
	return nil
}

// unpark has the calls of a client ask that waited for a gateway.
func (m *Model) unpark(c *Client) {
	for ; c.parked > 0; c.parked-- {
		m.ask(c, c.run)
	}
}

// disk is the place of a storage target by its name, ost0 to ost3, or -1.
func (m *Model) disk(name string) int {
	for i := range m.disks {
		if name == fmt.Sprintf("ost%d", i) {
			return i
		}
	}
	return -1
}

// Break makes a fault begin: of a gateway, or of a storage target's disk.
func (m *Model) Break(f model.Fault) error {
	if err := f.Check(); err != nil {
		return err
	}
	if i := m.disk(f.Node); i >= 0 && f.Kind == model.FaultDisk {
		m.disks[i] = f.Value
		return nil
	}
	g := m.gateway(func(g *Gateway) bool { return g.Name == f.Node })
	if g == nil {
		return fmt.Errorf("fault %s of %q: want a gateway, or %s of ost0 to ost%d", f.Kind, f.Node, model.FaultDisk,
			len(m.disks)-1)
	}
	return g.Health.Break(f, m.Now())
}

// Mend ends every fault of a node.
func (m *Model) Mend(node string) error {
	if i := m.disk(node); i >= 0 {
		m.disks[i] = 1
		return nil
	}
	g := m.gateway(func(g *Gateway) bool { return g.Name == node })
	if g == nil {
		return fmt.Errorf("no node %q", node)
	}
	for _, answer := range g.Health.Mend(m.Now()) {
		m.After(0, answer)
	}
	return nil
}

func (m *Model) client(name string) *Client {
	for _, c := range m.Clients {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (m *Model) gateway(is func(*Gateway) bool) *Gateway {
	for _, g := range m.Gateways {
		if is(g) {
			return g
		}
	}
	return nil
}
