package model

import "time"

// message is one message on its way. Its payload is at most 1 MiB.
type message struct {
	kind     Kind
	size     int
	src, dst *Node
	via      *Node         // the router; chosen when it is sent, or the one that the question came by
	pinned   bool          // via was not chosen
	arrived  time.Duration // at the router
	pool     *Pool
	got      func(m *message) // at its destination
}

// fabric is the site as its messages see it.
type fabric struct{ *Site }

const (
	headerBytes = 200
	page        = 4096
	// The LND's work on a processor: for a message, and for each MiB of it (checksums, copies).
	cpuMessage = 10 * time.Microsecond
	cpuMiB     = 120 * time.Microsecond
	// noRoute is when a message without a usable route, or one that was dropped, is sent again.
	noRoute = time.Second
	wire    = 10 * time.Microsecond
)

func took(bytes int, rate float64) time.Duration {
	return time.Duration(float64(bytes+headerBytes) / rate * 1e9)
}

// send sends a message from its source, over the router that the source chooses.
func (s fabric) send(m *message) {
	n := m.src
	if !m.pinned {
		if m.via = n.choose(m.dst); m.via == nil {
			n.LNet.Errors++
			s.After(noRoute, func() { s.send(m) })
			return
		}
	}
	s.post(m, n.peerOf(m.via, n.NIs[0].Net))
}

// post takes a peer's credit or waits for one, then one of the interface.
func (s fabric) post(m *message, p *Peer) {
	p.Queued += m.size + headerBytes
	p.Tx.take()
	if p.Tx.Now < 0 {
		p.waiting = append(p.waiting, m)
		return
	}
	s.postNI(m, p)
}

func (s fabric) postNI(m *message, p *Peer) {
	c := &p.ni.Tx[p.cpt]
	c.take()
	if c.Now < 0 {
		p.ni.waiting[p.cpt] = append(p.ni.waiting[p.cpt], m)
		return
	}
	s.transmit(m, p)
}

// transmit puts a message on the link of whoever sends it now: its source, or the router.
func (s fabric) transmit(m *message, p *Peer) {
	p.Sent[m.kind]++
	p.ni.Sent[m.kind]++
	if p.node == m.dst {
		s.lastHop(m, p)
		return
	}
	n := m.src
	n.LNet.Alloc++
	n.LNet.AllocMax = max(n.LNet.AllocMax, n.LNet.Alloc)
	done := p.ni.out.Serve(s.now, took(m.size, p.ni.rate))
	s.At(done+wire, func() { s.atRouter(m, p) })
}

// release gives a peer's and an interface's credit back: the other end has the message.
func (s fabric) release(m *message, p *Peer) {
	p.ni.OutBytes += uint64(m.size + headerBytes)
	p.Queued -= m.size + headerBytes
	p.Tx.Now++
	if len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		s.postNI(next, p)
	}
	c := &p.ni.Tx[p.cpt]
	c.Now++
	if w := p.ni.waiting[p.cpt]; len(w) > 0 {
		next := w[0]
		p.ni.waiting[p.cpt] = w[1:]
		s.transmit(next, s.hopOf(next, p.ni))
	}
}

// hopOf finds the peer that a message which waits at an interface goes to.
func (s fabric) hopOf(m *message, ni *NI) *Peer {
	if m.arrived > 0 {
		return m.via.peerOf(m.dst, ni.Net)
	}
	return m.src.peerOf(m.via, ni.Net)
}

// atRouter is a message's header at the router: its LND must get a processor, then LNet counts the message and
// finds it a buffer.
func (s fabric) atRouter(m *message, from *Peer) {
	r := m.via
	if r.Health.Hold(func() { s.atRouter(m, from) }) {
		return
	}
	r.work(m.size, func() {
		p := r.peerOf(m.src, from.ni.Net)
		m.arrived = s.now
		r.LNet.Alloc++
		r.LNet.AllocMax = max(r.LNet.AllocMax, r.LNet.Alloc)
		p.Rtr.take()
		if p.Rtr.Now < 0 {
			p.holding = append(p.holding, m)
			return
		}
		s.buffer(m, p)
	})
}

// buffer takes one of the router's buffers or waits for it.
func (s fabric) buffer(m *message, p *Peer) {
	i := 0
	if m.size > page {
		i = 2
	} else if m.size > 0 {
		i = 1
	}
	pools := m.via.Buffers[i]
	m.pool = pools[p.cpt%len(pools)]
	m.pool.Credits--
	m.pool.Min = min(m.pool.Min, m.pool.Credits)
	if m.pool.Credits < 0 {
		m.pool.waiting = append(m.pool.waiting, m)
		return
	}
	s.receive(m)
}

// receive moves a message's bytes over the link into the router.
func (s fabric) receive(m *message) {
	r := m.via
	p := r.peerOf(m.src, m.src.NIs[0].Net)
	d := time.Duration(float64(took(m.size, p.ni.rate)) / r.Health.LinkIn)
	s.At(p.ni.in.Serve(s.now, d)+r.Health.delay(s.Site, p.ni.Net, m.size, false), func() {
		p.Received[m.kind]++
		p.ni.Received[m.kind]++
		p.ni.InBytes += uint64(m.size + headerBytes)
		m.src.LNet.Alloc--
		m.src.LNet.Sent++
		m.src.LNet.SentBytes += uint64(m.size)
		s.release(m, m.src.peerOf(r, m.src.NIs[0].Net))
		if r.Health.Hold(func() { s.forward(m) }) {
			return
		}
		s.forward(m)
	})
}

func (s fabric) forward(m *message) {
	m.via.work(m.size, func() { s.post(m, m.via.peerOf(m.dst, m.dst.NIs[0].Net)) })
}

// lastHop moves a message from the router to its destination.
func (s fabric) lastHop(m *message, p *Peer) {
	r, d := m.via, m.dst
	if r.Health.Hold(func() { s.lastHop(m, p) }) {
		return
	}
	out := time.Duration(float64(took(m.size, p.ni.rate)) / r.Health.LinkOut)
	s.At(p.ni.out.Serve(s.now, out)+r.Health.delay(s.Site, p.ni.Net, m.size, true), func() {
		ni := d.NIs[0]
		in := time.Duration(float64(took(m.size, ni.rate)) / d.Health.LinkIn)
		s.At(ni.in.Serve(s.now, in)+wire, func() {
			ni.InBytes += uint64(m.size + headerBytes)
			s.left(m, p)
			s.arrive(m)
		})
	})
}

// left ends a message's stay in the router.
func (s fabric) left(m *message, to *Peer) {
	r := m.via
	r.LNet.Alloc--
	r.LNet.Routed++
	r.LNet.RoutedBytes += uint64(m.size)
	r.Truth.Left++
	r.Truth.Inside += s.now - m.arrived
	c := m.src
	if c.Role != Client {
		c = m.dst
	}
	r.Truth.From[c.NID()] += uint64(m.size)
	s.release(m, to)
	from := r.peerOf(m.src, m.src.NIs[0].Net)
	m.pool.Credits++
	s.wake(m.pool)
	from.Rtr.Now++
	if w := from.holding; len(w) > 0 {
		from.holding = w[1:]
		s.buffer(w[0], from)
	}
}

// arrive hands a message to its destination, which drops what comes by a router that it would not use itself
// when it was set so.
func (s fabric) arrive(m *message) {
	d := m.dst
	p := d.peerOf(m.via, d.NIs[0].Net)
	p.Received[m.kind]++
	d.NIs[0].Received[m.kind]++
	if d.Table.DropAsym && !d.hasRoute(m.src, m.via) {
		d.LNet.Dropped++
		d.LNet.DroppedBytes += uint64(m.size)
		again := *m
		again.arrived, again.pool, again.pinned = 0, nil, false
		s.After(noRoute, func() { again.src.LNet.Resent++; s.send(&again) })
		return
	}
	d.LNet.Received++
	d.LNet.ReceivedBytes += uint64(m.size)
	m.got(m)
}

// work runs the LND's part of a message on a processor, then next.
func (n *Node) work(size int, next func()) {
	c := &n.CPU
	need := cpuMessage + time.Duration(float64(cpuMiB)*float64(size)/MiB)
	need = time.Duration(float64(need) / n.Health.Heat.Speed(n.site.now)) // it has the processor, which is slow
	d := time.Duration(float64(need) / n.Health.CPU)
	begins, ends := c.lane.serve(n.site.now, d)
	c.Ran += need
	c.Waited += begins - n.site.now + d - need
	c.Stalls += d - need
	c.Slices++
	n.site.At(ends, next)
}
