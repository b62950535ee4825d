package simmachine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
)

// MetaStorm is the mode of a job that makes little but metadata requests.
const MetaStorm topology.Mode = "metadata"

// app is a kind of program that users run again and again.
type app struct {
	name, user  string
	nodes       int // of a large machine; scaled down on a small one
	mode        topology.Mode
	period      float64 // seconds of computing between two I/O phases
	writeBytes  float64 // per node doing I/O and phase
	readBytes   float64
	request     float64 // bytes
	metaPerNode float64 // metadata operations per node and second of an I/O phase
	// backCost is how much longer the back end takes for its requests at the same size: random reads
	// and synchronous writes cost 3 to 8 times as much.
	backCost float64
}

// apps are programs of the kinds of the paper's Table 2, with volumes and sizes of their order.
var apps = []app{
	{"ROMS", "wei", 480, topology.ModeNN, 180, 40e6, 0, 1 << 20, 2, 1},
	{"XCFD", "lin", 1024, topology.ModeNN, 240, 120e6, 10e6, 1 << 20, 1, 1},
	{"WRF", "zhao", 512, topology.ModeN1, 300, 8e6, 0, 256 << 10, 1, 1},
	{"CAM", "olsen", 256, topology.ModeNN, 120, 2e6, 1e6, 128 << 10, 4, 1},
	{"AWP", "mika", 1024, topology.ModeN1, 360, 12e6, 0, 1 << 20, 1, 1},
	{"LAMMPS", "ravi", 256, topology.Mode11, 90, 400e6, 0, 1 << 20, 0.2, 1},
	{"DNDC", "sara", 64, MetaStorm, 60, 1e5, 2e5, 4 << 10, 150, 1},
	{"APT", "tom", 512, topology.ModeNN, 100, 3e6, 1e6, 1 << 10, 1, 1},
	{"swDNN", "yu", 512, topology.ModeNN, 40, 0, 25e6, 256 << 10, 1, 4},
	{"NWCHEM", "ana", 128, topology.ModeNN, 80, 15e6, 15e6, 64 << 10, 3, 3},
	{"MACDRP", "gao", 2048, topology.ModeNN, 420, 60e6, 0, 4 << 20, 1, 1},
	{"POST", "kim", 16, topology.ModeNN, 20, 150e6, 300e6, 1 << 20, 1, 1},
	{"BUILD", "dev", 8, MetaStorm, 30, 2e6, 3e6, 16 << 10, 40, 1},
}

// largeRequest is the least request, bytes, of programs that move much.
const largeRequest = 64 << 10

// job is one run.
type job struct {
	id    topology.JobID
	app   *app
	nodes []int // compute nodes, ascending
	start time.Time
	end   time.Time
	// io is how many of the nodes do I/O, the first ones.
	io int
	// wait is the seconds of computing left; at 0 an I/O phase begins.
	wait float64
	// Left of this phase over all nodes doing I/O: bytes, and seconds of metadata operations.
	left phase
	// did is what it has done so far.
	did PastRun
	// had is what each of its nodes asked for in this second, unless it was idle; quiet that its nodes show nothing.
	had         wish
	idle, quiet bool
	// ways are the forwarders of its nodes that do I/O, as of the machine's moves.
	ways    []way
	waysFor int
}

// way is how many of a job's nodes that do I/O use a forwarder.
type way struct {
	fwd int
	n   float64
}

// phase is what is left to do of an I/O phase, summed over the nodes that do I/O.
type phase struct{ read, write, meta float64 }

func (p phase) over() bool { return p.read <= 0 && p.write <= 0 && p.meta <= 0 }

// Job is what a scheduler would know of a run, and the mode that only the model knows.
type Job struct {
	ID    topology.JobID
	User  string
	App   string
	Mode  topology.Mode
	Nodes []topology.NodeID
	Start time.Time
}

// Jobs lists the running jobs in the order of their start.
func (m *Machine) Jobs() []Job {
	out := make([]Job, 0, len(m.jobs))
	for _, j := range m.jobs {
		out = append(out, m.describe(j))
	}
	return out
}

func (m *Machine) describe(j *job) Job {
	v := Job{ID: j.id, User: j.app.user, App: j.app.name, Mode: j.app.mode, Start: j.start,
		Nodes: make([]topology.NodeID, len(j.nodes))}
	for k, n := range j.nodes {
		v.Nodes[k] = m.computeID(n)
	}
	return v
}

func (m *Machine) computeID(i int) topology.NodeID { return m.topo.Nodes[len(m.fwds)+i].ID }

// startJobs fills the machine up to its busy share, all at once at the beginning and then as room
// comes free; jobs of the beginning are somewhere in their life already.
func (m *Machine) startJobs() {
	want := int(m.cfg.Busy * float64(m.cfg.Compute))
	for tries := 0; m.cfg.Compute-m.freeN < want && tries < 20; tries++ {
		a := &apps[m.rng.IntN(len(apps))]
		if nodes := m.place(min(m.size(a), m.cfg.Compute/4)); nodes != nil {
			m.launch(a, nodes)
			tries = 0
		}
	}
	m.started = true
}

// size draws the number of nodes of a job.
func (m *Machine) size(a *app) int {
	spread := m.rng.NormFloat64()
	if !m.cfg.RepeatSizes {
		return max(1, int(float64(a.nodes)*math.Exp(spread*0.5)*m.scale()))
	}
	return a.sizes(m.scale())[1+int(min(1, max(-1, math.Round(spread*0.7))))]
}

// sizes are the numbers of nodes that users run a program on, half, usual and double, on a machine of
// some scale: people repeat sizes.
func (a *app) sizes(scale float64) [3]int {
	usual := float64(a.nodes) * scale
	return [3]int{max(1, int(usual/2)), max(1, int(usual)), max(1, int(usual*2))}
}

// scale shrinks jobs with the machine.
func (m *Machine) scale() float64 { return min(1, math.Sqrt(float64(m.cfg.Compute)/40960)) }

// place finds n free nodes, the first that come, as a scheduler without topology does.
func (m *Machine) place(n int) []int {
	if m.freeN < n {
		return nil
	}
	nodes := make([]int, 0, n)
	for i := 0; i < len(m.free) && len(nodes) < n; i++ {
		if m.free[i] {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

func (m *Machine) launch(a *app, nodes []int) {
	length := m.cfg.JobSeconds * (0.3 + m.rng.ExpFloat64())
	past := 0.0
	if !m.started {
		past = m.rng.Float64() * length
	}
	j := &job{id: topology.JobID(fmt.Sprint(m.nextJob)), app: a, nodes: nodes, io: len(nodes),
		wait: a.period * m.rng.Float64()}
	j.start = m.now.Add(-time.Duration(past * float64(time.Second)))
	j.end = j.start.Add(time.Duration(length * float64(time.Second)))
	if a.mode == topology.Mode11 {
		j.io = 1
	}
	for _, n := range nodes {
		m.free[n] = false
		m.compute[n].job = j
	}
	m.freeN -= len(nodes)
	m.nextJob++
	m.jobs = append(m.jobs, j)
}

// endJobs frees the nodes of jobs whose time is over; a job never ends inside an I/O phase, so slow
// I/O makes it longer.
func (m *Machine) endJobs() {
	m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool {
		if m.now.Before(j.end) || !j.left.over() {
			return false
		}
		m.ended = append(m.ended, m.past(j))
		for _, n := range j.nodes {
			m.free[n] = true
			m.compute[n].job = nil
		}
		m.freeN += len(j.nodes)
		return true
	})
}

// ask puts what a job wants to move this second to the forwarders of its nodes.
func (m *Machine) ask(j *job) {
	if j.left.over() {
		if j.wait--; j.wait > 0 {
			return
		}
		n, a := float64(j.io), j.app
		volume := n
		if a.request >= largeRequest {
			volume *= m.cfg.Volume
		}
		j.left = phase{read: volume * a.readBytes, write: volume * a.writeBytes, meta: n * a.metaPerNode * 10}
		j.wait = a.period * (0.9 + 0.2*m.rng.Float64())
	}
	w, hold := m.wish(j), m.cfg.hold(j.app)
	for _, v := range m.waysOf(j) {
		m.demand[v.fwd].add(j, w, v.n, hold)
	}
}

// waysOf counts a job's nodes by forwarder, anew after a move.
func (m *Machine) waysOf(j *job) []way {
	if j.waysFor == m.moves && len(j.ways) > 0 {
		return j.ways
	}
	j.ways, j.waysFor = j.ways[:0], m.moves
	at := make(map[int]int, 8)
	for _, n := range j.nodes[:j.io] {
		f := m.compute[n].fwd
		i, ok := at[f]
		if !ok {
			i = len(j.ways)
			at[f], j.ways = i, append(j.ways, way{fwd: f})
		}
		j.ways[i].n++
	}
	return j.ways
}

// wish is what one node doing I/O wants this second.
type wish struct{ read, write, meta float64 }

func (m *Machine) wish(j *job) wish {
	n, peak := float64(j.io), m.cfg.ComputeBytesPerSec
	ops := m.cfg.NodeOpsPerSec
	switch j.app.mode {
	case topology.Mode11:
		peak *= 8 // one process streaming, not limited by its neighbours on the node
		ops *= 8
	case topology.ModeN1:
		ops /= 4
	}
	peak = min(peak, ops*j.app.request)
	w := wish{read: max(0, j.left.read/n), write: max(0, j.left.write/n),
		meta: max(0, min(j.left.meta/n, 2*j.app.metaPerNode))}
	if all := w.read + w.write; all > peak {
		w.read *= peak / all
		w.write *= peak / all
	}
	return w
}

// deliver counts a job's phase down by what its forwarders served.
func (m *Machine) deliver(j *job) {
	if j.idle = j.left.over(); j.idle {
		return
	}
	j.had = m.wish(j)
	var read, write, meta, most, queue float64
	for _, v := range j.ways {
		f := &m.fwds[v.fwd]
		r, w := j.had.read*f.granted.read, j.had.write*f.granted.write
		read, write, meta = read+v.n*r, write+v.n*w, meta+v.n*j.had.meta*f.granted.meta
		most, queue = max(most, r+w), queue+v.n*f.metaQueue
	}
	j.left.read, j.left.write, j.left.meta = j.left.read-read, j.left.write-write, j.left.meta-meta
	j.did.count(read, write, meta, (read+write)/j.app.request, most, queue/float64(j.io))
	// What is left of a phase below a request and an operation is done.
	if j.left.read < j.app.request {
		j.left.read = 0
	}
	if j.left.write < j.app.request {
		j.left.write = 0
	}
	if j.left.meta < 1 {
		j.left.meta = 0
	}
}

// fill gives each node of a job its part of what its forwarder served, for those who watch.
func (m *Machine) fill(j *job) {
	if j.idle && j.quiet {
		return
	}
	for _, n := range j.nodes {
		m.compute[n].moved = moved{}
	}
	if j.quiet = j.idle; j.quiet {
		return
	}
	w := j.had
	for _, n := range j.nodes[:j.io] {
		c := &m.compute[n]
		f := &m.fwds[c.fwd]
		c.read, c.write, c.metaOps = w.read*f.granted.read, w.write*f.granted.write, w.meta*f.granted.meta
		c.readOps, c.writeOps = c.read/j.app.request, c.write/j.app.request
		c.latRead, c.latWrite, c.latMeta = f.readWait+f.readExec, f.writeWait+f.writeExec, f.metaWait+f.metaExec
	}
}
