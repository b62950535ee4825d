package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Front is a client's file system as its programs use it.
type Front struct {
	Imports []*Import // a row a target; the metadata target is the last
	Ops     Stats     // llite's
	Job     *Job      // that runs on the node; nil: no job
	rng     *rand.Rand
}

// Import is a client's side of one target.
type Import struct {
	Target   *Target
	Stats    Stats // osc's or mdc's
	InFlight int
}

// Sharing is how a job's processes share its files.
type Sharing string

// The ways.
const (
	Anyhow   Sharing = ""    // its metadata calls open and create as they are drawn
	OneFile  Sharing = "N-1" // one of its clients creates a file, and all open it
	FileEach Sharing = "N-N" // each of its clients creates a file
)

// Job is a program on several clients.
type Job struct {
	ID      string
	Clients []int // indexes of the clients
	Begin   time.Duration
	End     time.Duration // 0: never
	Mix     Mix
	// Files is what it opens when it begins and at the beginning of each of its phases.
	Files Sharing
	// MetaWaited is how long its metadata calls that have been answered were under way and not in service, which no
	// file shows.
	MetaWaited time.Duration
}

// Mix is what a job asks for.
type Mix struct {
	Depth    int           // calls that a client keeps under way
	Think    time.Duration // mean, between a call's answer and the next
	Reads    float64       // share of the data calls that read
	Metadata float64       // share of all calls that are metadata
	Sizes    []Size        // of the data calls
	On, Off  time.Duration // it works for On, then not for Off; Off 0: always
}

// Size is a size of calls and how often it is drawn.
type Size struct {
	Bytes  int
	Weight float64
}

// mean is the mean size of a data call, bytes.
func (m Mix) mean() float64 {
	var sum, weights float64
	for _, z := range m.Sizes {
		sum += float64(z.Bytes) * z.Weight
		weights += z.Weight
	}
	return sum / weights
}

// Start begins a job now; what ran on its clients ends everywhere.
func (s *Site) Start(j Job) error {
	for _, i := range j.Clients {
		if i < 0 || i >= len(s.clients) {
			return fmt.Errorf("job %q: no client %d", j.ID, i)
		}
	}
	if len(j.Clients) == 0 || j.Mix.Depth < 1 || len(j.Mix.Sizes) == 0 {
		return fmt.Errorf("job %q: want clients, a depth and sizes", j.ID)
	}
	j.Begin = s.now
	s.Jobs = append(s.Jobs, &j)
	s.start(&j)
	return nil
}

// Stop ends a running job now.
func (s *Site) Stop(id string) error {
	for _, j := range s.Jobs {
		if j.ID == id && s.now < endOf(j) {
			j.End = s.now
			return nil
		}
	}
	return fmt.Errorf("no job %q runs", id)
}

// start begins a job on its clients.
func (s *Site) start(j *Job) {
	for _, i := range j.Clients {
		c := s.clients[i]
		if c.Front.Job != nil {
			c.Front.Job.End = min(s.now, endOf(c.Front.Job)) // one job a node
		}
		c.Front.Job = j
		for range j.Mix.Depth {
			s.After(draw(c.Front.rng, j.Mix.Think+10*time.Millisecond), func() { s.slot(c, j) })
		}
	}
	if j.Files != Anyhow {
		s.open(j)
	}
}

// open opens a job's files, and comes back for its next phase.
func (s *Site) open(j *Job) {
	if s.now >= endOf(j) {
		return
	}
	for k, i := range j.Clients {
		f := s.clients[i].Front
		r := &RPC{Op: Create, client: s.clients[i], job: j, import_: f.Imports[len(f.Imports)-1], done: func() {}}
		if k > 0 && j.Files == OneFile {
			r.Op = Open
		}
		calls{s}.call(r)
	}
	if j.Mix.Off > 0 {
		s.After(j.Mix.On+j.Mix.Off, func() { s.open(j) })
	}
}

func endOf(j *Job) time.Duration {
	if j.End == 0 {
		return math.MaxInt64
	}
	return j.End
}

// slot makes one of a client's calls and comes back for the next.
func (s *Site) slot(c *Node, j *Job) {
	if c.Front.Job != j || s.now >= endOf(j) {
		if c.Front.Job == j {
			c.Front.Job = nil
		}
		return
	}
	if on := j.Mix.On; j.Mix.Off > 0 && (s.now-j.Begin)%(on+j.Mix.Off) >= on {
		next := j.Begin + ((s.now-j.Begin)/(on+j.Mix.Off)+1)*(on+j.Mix.Off)
		s.At(next, func() { s.slot(c, j) })
		return
	}
	f := c.Front
	r := &RPC{client: c, job: j}
	mdt := len(f.Imports) - 1
	if f.rng.Float64() < j.Mix.Metadata {
		r.Op = [...]Op{Open, Close, Getattr, Getattr, Create, Unlink}[f.rng.IntN(6)]
		if j.Files != Anyhow {
			r.Op = Getattr
		}
		r.import_ = f.Imports[mdt]
	} else {
		r.Op = Write
		if f.rng.Float64() < j.Mix.Reads {
			r.Op = Read
		}
		r.Size = pick(f.rng, j.Mix.Sizes)
		r.import_ = f.Imports[f.rng.IntN(mdt)]
	}
	r.done = func() { s.After(draw(f.rng, j.Mix.Think), func() { s.slot(c, j) }) }
	calls{s}.call(r)
}

func pick(rng *rand.Rand, sizes []Size) int {
	total := 0.0
	for _, z := range sizes {
		total += z.Weight
	}
	at := rng.Float64() * total
	for _, z := range sizes {
		if at -= z.Weight; at < 0 {
			return z.Bytes
		}
	}
	return sizes[len(sizes)-1].Bytes
}

// draw draws from an exponential distribution.
func draw(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(mean))
}

// logNormal draws with mean 1.
func logNormal(rng *rand.Rand, spread float64) float64 {
	return math.Exp(rng.NormFloat64()*spread - spread*spread/2)
}

// answered is a call's end at its client.
func (s calls) answered(r *RPC) {
	im := r.import_
	im.InFlight--
	took := micros(s.now - r.sent)
	im.Stats.Of("req_waittime", "usec").Add(took)
	if r.Op == Ping {
		im.Stats.Of("obd_ping", "usec").Add(took)
		return
	}
	ops := &r.client.Front.Ops
	if r.Op.Data() {
		im.Stats.Of(r.Op.String()+"_bytes", "bytes").Add(uint64(r.Size))
		ops.Of(r.Op.String()+"_bytes", "bytes").Add(uint64(r.Size))
	}
	if name, unit := serviceName(r.Op); unit == "usec" {
		im.Stats.Of(name, unit).Add(took)
	}
	ops.Of(r.Op.String(), "usecs").Add(took)
	if r.Op == Create { // an open that creates counts as both
		ops.Of(Open.String(), "usecs").Add(took)
	}
	if !r.Op.Data() {
		r.job.MetaWaited += s.now - r.sent - r.served
	}
	r.done()
}

// ping keeps an import that is not used from being taken for dead.
func (s calls) ping(c *Node, im *Import) {
	const every = 25 * time.Second
	s.After(every, func() { s.ping(c, im) })
	s.call(&RPC{Op: Ping, client: c, import_: im, job: &Job{}})
}
