package model

import (
	"math/rand/v2"
	"time"
)

// Op is what a remote procedure call asks for.
type Op uint8

// The operations.
const (
	Read Op = iota
	Write
	Open
	Close
	Getattr
	Create
	Unlink
	Ping
)

// Data says whether the operation moves file data.
func (o Op) Data() bool { return o <= Write }

func (o Op) String() string {
	return [...]string{"read", "write", "open", "close", "getattr", "mknod", "unlink", "ping"}[o]
}

// Server is an OSS or MDS: one service with its threads, and targets.
type Server struct {
	Targets []*Target
	Service Service
}

// Service is a request service.
type Service struct {
	Threads int
	Active  int
	Waiting []*RPC
	Stats   Stats
	Hung    bool
}

// Target is an OST or MDT.
type Target struct {
	Name  string // FSNAME-OST0000
	Stats Stats
	Jobs  []*JobStats // by job, in the order of their first operation
	disks lanes
	speed float64 // share of its disks' speed
	node  *Node
	rng   *rand.Rand
}

// JobStats is what one job did at a target.
type JobStats struct {
	Job   string
	Stats Stats
	Last  time.Duration
}

// RPC is one call of a client.
type RPC struct {
	Op      Op
	Size    int
	client  *Node
	job     *Job
	import_ *Import
	sent    time.Duration
	arrived time.Duration
	begun   time.Duration
	served  time.Duration // in service
	left    int           // bulk messages that are not over
	done    func()
}

// shortIO is up to where data rides in the request or its reply, bytes.
const shortIO = 16 << 10

const (
	requestBytes = 500
	replyBytes   = 300
)

// calls is the site as its calls see it.
type calls struct{ *Site }

// call sends an RPC to its target; done is called with the reply.
func (s calls) call(r *RPC) {
	r.sent = s.now
	r.import_.InFlight++
	r.import_.Stats.Of("req_active", "reqs").Add(uint64(r.import_.InFlight))
	size := requestBytes
	if r.Op == Write && r.Size <= shortIO {
		size += r.Size
	}
	fabric(s).send(&message{kind: Put, size: size, src: r.client, dst: r.import_.Target.node, got: func(*message) {
		s.request(r)
	}})
}

// request is a call's arrival at its server.
func (s calls) request(r *RPC) {
	r.arrived = s.now
	t := r.import_.Target
	if r.Op == Ping { // not of the service that moves data
		s.After(50*time.Microsecond, func() { s.reply(r) })
		return
	}
	const wakeUp = 15 * time.Microsecond // until a thread has seen it
	s.After(draw(t.rng, wakeUp), func() {
		v := &t.node.Server.Service
		v.Waiting = append(v.Waiting, r)
		s.serve(t.node)
	})
}

// serve gives waiting requests to free threads.
func (s calls) serve(n *Node) {
	v := &n.Server.Service
	for !v.Hung && v.Active < v.Threads && len(v.Waiting) > 0 {
		r := v.Waiting[0]
		v.Waiting = v.Waiting[1:]
		v.Active++
		r.begun = s.now
		v.Stats.Of("req_waittime", "usec").Add(micros(s.now - r.arrived))
		v.Stats.Of("req_qdepth", "reqs").Add(uint64(len(v.Waiting)))
		v.Stats.Of("req_active", "reqs").Add(uint64(v.Active))
		v.Stats.Of("req_timeout", "sec").Add(1)
		v.Stats.Of("reqbuf_avail", "bufs").Add(uint64(max(0, 64-len(v.Waiting)/8)))
		s.handle(r)
	}
}

func micros(d time.Duration) uint64 { return uint64(max(d, 0) / time.Microsecond) }

func (s calls) handle(r *RPC) {
	switch {
	case !r.Op.Data():
		r.import_.Target.disk(s.Site, r, func() { s.answer(r) })
	case r.Op == Read:
		r.import_.Target.disk(s.Site, r, func() { s.bulk(r, func() { s.answer(r) }) })
	default:
		s.bulk(r, func() { r.import_.Target.disk(s.Site, r, func() { s.answer(r) }) })
	}
}

// bulk moves a call's data in messages of at most 1 MiB: PUTs for a read, each of which is acknowledged, GETs for a
// write, each of which is replied to with the data. The server chooses the router, and what answers goes the same way.
func (s calls) bulk(r *RPC, done func()) {
	if r.Size <= shortIO {
		done()
		return
	}
	server := r.import_.Target.node
	over := func(*message) {
		if r.left--; r.left == 0 {
			done()
		}
	}
	for rest := r.Size; rest > 0; rest -= MiB {
		size := min(rest, MiB)
		r.left++
		ask, back := &message{kind: Put, size: size}, &message{kind: Ack}
		if r.Op == Write {
			ask, back = &message{kind: Get}, &message{kind: Reply, size: size}
		}
		ask.src, ask.dst = server, r.client
		ask.got = func(m *message) {
			back.src, back.dst, back.via, back.pinned, back.got = r.client, server, m.via, true, over
			fabric(s).send(back)
		}
		fabric(s).send(ask)
	}
}

// Disk service: a seek, and the bytes.
const (
	diskSeek = 700 * time.Microsecond
	diskMiB  = 3300 * time.Microsecond
	metaTime = 120 * time.Microsecond
)

// disk serves a call at its target: log-normal around its mean.
func (t *Target) disk(s *Site, r *RPC, done func()) {
	mean, spread := diskSeek+time.Duration(float64(diskMiB)*float64(r.Size)/MiB), 0.3
	if !r.Op.Data() {
		mean = metaTime
		if r.Op == Create || r.Op == Unlink {
			mean *= 2
		}
	}
	d := time.Duration(float64(mean) * logNormal(t.rng, spread) / t.speed)
	_, ends := t.disks.serve(s.now, d)
	s.At(ends, done)
}

// answer ends a call at the server: its thread is free, the reply goes.
func (s calls) answer(r *RPC) {
	t := r.import_.Target
	v := &t.node.Server.Service
	v.Active--
	name, unit := serviceName(r.Op)
	if unit == "usec" {
		v.Stats.Of(name, unit).Add(micros(s.now - r.begun))
	} else {
		v.Stats.Of(name, unit).Add(1)
	}
	r.served = s.now - r.begun
	took := micros(r.served)
	for _, st := range []*Stats{&t.Stats, t.ofJob(s.Site, r)} {
		if r.Op.Data() {
			st.Of(r.Op.String()+"_bytes", "bytes").Add(uint64(r.Size))
		}
		st.Of(r.Op.String(), "usecs").Add(took)
		if r.Op == Create { // an open that creates
			st.Of(Open.String(), "usecs").Add(took)
		}
	}
	s.serve(t.node)
	s.reply(r)
}

func (t *Target) ofJob(s *Site, r *RPC) *Stats {
	for _, j := range t.Jobs {
		if j.Job == r.job.ID {
			j.Last = s.Now()
			return &j.Stats
		}
	}
	j := &JobStats{Job: r.job.ID, Last: s.Now()}
	t.Jobs = append(t.Jobs, j)
	return &j.Stats
}

// serviceName is an operation's line in its service's file. Opens, creations and unlinks are only counted there.
func serviceName(o Op) (name, unit string) {
	switch o {
	case Read:
		return "ost_read", "usec"
	case Write:
		return "ost_write", "usec"
	case Open:
		return "ldlm_ibits_enqueue", "reqs"
	case Close:
		return "mds_close", "usec"
	case Getattr:
		return "mds_getattr", "usec"
	case Create:
		return "mds_reint_open", "reqs"
	case Unlink:
		return "mds_reint_unlink", "reqs"
	}
	return "obd_ping", "usec"
}

// reply sends a call's answer, with the data of a short read.
func (s calls) reply(r *RPC) {
	size := replyBytes
	if r.Op == Read && r.Size <= shortIO {
		size += r.Size
	}
	fabric(s).send(&message{kind: Put, size: size, src: r.import_.Target.node, dst: r.client, got: func(*message) {
		s.answered(r)
	}})
}

// Meta says whether the target is an MDT.
func (t *Target) Meta() bool { return t.node.Role == MDS }

// NID is that of the target's server.
func (t *Target) NID() string { return t.node.NID() }

// Exports is the number of its clients.
func (t *Target) Exports() int {
	if t.Meta() {
		return (t.node.site.cfg.Clients + t.node.site.cfg.MDS - 1) / t.node.site.cfg.MDS
	}
	return t.node.site.cfg.Clients
}
