// Package simmachine is a seeded model of an I/O-forwarded machine that shows itself as frames: jobs
// with phases and I/O modes, forwarding nodes with a fixed thread pool, metadata priority and a
// bandwidth cap, a back end that is slow beyond its peak, and slow forwarders. It obeys remaps. It is for
// scale, screens and what-if; its numbers are never a measurement of anything.
//
// The model keeps no clock: Step takes the time and answers the second that ended then. The same
// seed and the same calls give the same frames.
package simmachine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Config is the size and the load of a machine.
type Config struct {
	Name       string
	Seed       uint64
	Compute    int
	Forwarders int
	// InService is how many forwarders the default mapping uses; the others are idle reserve.
	InService int
	Storage   int
	// Threads is the pool of one forwarder.
	Threads int
	// ForwarderBytesPerSec and ComputeBytesPerSec are peak bandwidths; StorageBytesPerSec is that of the
	// whole back end.
	ForwarderBytesPerSec float64
	ComputeBytesPerSec   float64
	StorageBytesPerSec   float64
	// Busy is the share of compute nodes that jobs keep, 0..1.
	Busy float64
	// JobSeconds is the mean length of a job.
	JobSeconds float64
	Habits
}

// Habits are how people use the machine.
type Habits struct {
	// RepeatSizes makes a program's jobs come in three sizes, as people repeat them: then a job has had runs
	// like it. Without it every job has a size of its own.
	RepeatSizes bool
	// Volume multiplies what the programs with large requests move in a phase; 0 is 1.
	Volume float64
	// NodeOpsPerSec bounds the requests of one node, and four nodes that write one file to those of one; 0: no bound.
	NodeOpsPerSec float64
	// LockHold is for how many seconds longer a request to one file of many nodes holds a thread: the lock changes
	// hands, whatever the size of the request. 0: every such request takes lockFactor times as long.
	LockHold float64
}

// TaihuLight is the published size of Sunway TaihuLight: 40,960 compute nodes, 240 forwarders of which
// 80 serve by default 512 compute nodes each, 288 storage nodes, 240 GB/s (FAST'19, section 2.1).
func TaihuLight(seed uint64) Config {
	return Config{Name: "taihulight-sim", Seed: seed, Compute: 40960, Forwarders: 240, InService: 80, Storage: 288,
		Threads:              16,
		ForwarderBytesPerSec: 2.5e9, ComputeBytesPerSec: 2.5e9 / 32, StorageBytesPerSec: 240e9,
		Busy: 0.8, JobSeconds: 1800}
}

// WorkingDay is the same machine under load: its forwarders in service move a third to two thirds of what they can. A
// program's nodes write more slowly and longer than the published peak allows, so that they do not fill their forwarder
// by themselves, and repeat the sizes of their jobs.
func WorkingDay(seed uint64) Config {
	c := TaihuLight(seed)
	c.ComputeBytesPerSec = 4.2e6
	c.Habits = Habits{RepeatSizes: true, Volume: 60, NodeOpsPerSec: 16, LockHold: 4e-3}
	return c
}

// Machine is the model's state. Its methods must not be called concurrently.
type Machine struct {
	cfg  Config
	rng  *rand.Rand
	topo topology.Machine
	index
	clock

	compute []computeNode
	fwds    []forwarder
	jobs    []*job
	moves   int // remaps so far
	nextJob int
	changes
	vacant
	// slowdown is the back end's factor on service times this second, 1 when healthy.
	slowdown float64
	reused
}

// index finds nodes by name.
type index struct {
	nodes  map[topology.NodeID]int // compute nodes
	fwdIdx map[topology.ForwarderID]int
}

type clock struct {
	started bool
	now     time.Time
	second  int // steps so far
}

// changes are what callers have asked for, or have yet to ask for.
type changes struct {
	ended  []PastRun               // since Ended was called
	listed map[topology.JobID]bool // by Changes
}

// vacant are the compute nodes without a job.
type vacant struct {
	free  []bool
	freeN int
}

// reused are what Step fills anew.
type reused struct {
	frames []collector.Frame
	demand []demand // one per forwarder
}

// computeNode is one client.
type computeNode struct {
	fwd     int // its forwarder
	gen     uint64
	changed bool
	job     *job

	moved
	begun   [3]float64 // parts of operations that are under way: read, write, metadata
	samples [8]collector.Sample
	route   [1]collector.Route
	share   [1]collector.JobSamples
}

// moved is what a compute node did in a second, and how long an operation took, seconds.
type moved struct {
	read, write, readOps, writeOps, metaOps float64
	latRead, latWrite, latMeta              float64
}

// New builds a machine at rest; its first steps fill it with jobs.
func New(cfg Config) (*Machine, error) {
	if cfg.Compute < 1 || cfg.Forwarders < 1 || cfg.InService < 1 || cfg.InService > cfg.Forwarders ||
		cfg.Threads < 1 || cfg.Storage < 0 {
		return nil,
			fmt.Errorf(
				"simulated machine %q: %d compute nodes, %d of %d forwarders in service, %d threads, %d storage "+
					"nodes is not a machine",
				cfg.Name, cfg.Compute, cfg.InService, cfg.Forwarders, cfg.Threads, cfg.Storage)
	}
	if cfg.Volume == 0 {
		cfg.Volume = 1
	}
	if cfg.NodeOpsPerSec == 0 {
		cfg.NodeOpsPerSec = math.Inf(1)
	}
	m := &Machine{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)),
		index: index{make(map[topology.NodeID]int, cfg.Compute),
			make(map[topology.ForwarderID]int, cfg.Forwarders)},
		slowdown: 1, nextJob: 88000, vacant: vacant{make([]bool, cfg.Compute), cfg.Compute}}
	m.topo = topology.Machine{Name: cfg.Name, Default: make(topology.Mapping, cfg.Compute)}
	m.compute = make([]computeNode, cfg.Compute)
	m.fwds = make([]forwarder, cfg.Forwarders)
	m.demand = make([]demand, cfg.Forwarders)
	for i := range m.fwds {
		id := topology.ForwarderID(fmt.Sprintf("fwd%03d", i))
		m.fwds[i].id = id
		m.fwdIdx[id] = i
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: id.Node(), Role: topology.Forwarder,
			Rack: fmt.Sprintf("r%02d", i/12), Addr: fmt.Sprintf("%s:564", id),
			PeakBytesPerSec: cfg.ForwarderBytesPerSec})
	}
	perFwd := (cfg.Compute + cfg.InService - 1) / cfg.InService
	for i := range m.compute {
		id := topology.NodeID(fmt.Sprintf("c%05d", i))
		f := i / perFwd
		m.compute[i] = computeNode{fwd: f, gen: 1}
		m.free[i] = true
		m.nodes[id] = i
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: id, Role: topology.Compute,
			PeakBytesPerSec: cfg.ComputeBytesPerSec})
		m.topo.Default[id] = m.fwds[f].id
	}
	for i := range cfg.Storage {
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprintf("oss%03d", i)),
			Role: topology.Storage, PeakBytesPerSec: cfg.StorageBytesPerSec / float64(cfg.Storage)})
	}
	m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: "mds000", Role: topology.Metadata})
	m.frames = make([]collector.Frame, len(m.topo.Nodes))
	return m, nil
}

// Machine describes the nodes and the default mapping; it must not be changed.
func (m *Machine) Machine() *topology.Machine { return &m.topo }

// Route says which forwarder a compute node uses now and how often it was remapped.
func (m *Machine) Route(n topology.NodeID) (collector.Route, error) {
	i, ok := m.nodes[n]
	if !ok {
		return collector.Route{}, fmt.Errorf("%s is not a compute node of %s", n, m.cfg.Name)
	}
	c := &m.compute[i]
	return collector.Route{Client: n, Forwarder: m.fwds[c.fwd].id, Generation: c.gen}, nil
}

// Remap moves a compute node to a forwarder; moving it to where it is changes nothing.
func (m *Machine) Remap(n topology.NodeID, f topology.ForwarderID) error {
	if _, err := m.Route(n); err != nil {
		return err
	}
	to, ok := m.fwdIdx[f]
	if !ok {
		return fmt.Errorf("%s is not a forwarder of %s", f, m.cfg.Name)
	}
	if c := &m.compute[m.nodes[n]]; c.fwd != to {
		c.fwd, c.changed = to, true
		m.moves++
		c.gen++
	}
	return nil
}

// Step lives through one second and answers its frames, one a node, for the second that ended at now.
// The frames and all they hold are good until the next Step.
func (m *Machine) Step(now time.Time) []collector.Frame {
	m.pass(now)
	for _, j := range m.jobs {
		m.fill(j)
	}
	m.endJobs()
	m.show()
	m.second++
	return m.frames
}

// Pass lives through one second that nobody watches.
func (m *Machine) Pass(now time.Time) {
	m.pass(now)
	m.endJobs()
	m.second++
}

func (m *Machine) pass(now time.Time) {
	m.now = now
	m.startJobs()
	m.backEnd()
	for i := range m.demand {
		m.demand[i].reset()
	}
	for _, j := range m.jobs {
		m.ask(j)
	}
	for i := range m.fwds {
		m.fwds[i].serve(m, &m.demand[i])
	}
	for _, j := range m.jobs {
		m.deliver(j)
	}
}
