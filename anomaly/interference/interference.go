// Package interference names slowness that is not a forwarder's own: a job that pins its threads with
// one shared file, floods it with metadata or fills it, and a back end that is slow for everybody.
package interference

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Rules of what is named. Others stand where they are used.
const (
	// serving is how many requests a forwarder serves at once.
	serving = 16.0
	// pinnedExec is the service time from which a write waits for a lock, pinnedWait the least wait of the requests
	// behind such writes, s.
	pinnedExec, pinnedWait = 5e-3, 5e-3
	// stormShare is the share of the threads on metadata in a metadata storm, stormOps the operations a second.
	stormShare, stormOps = 0.2, 500
	// fullShare is the share of its peak at which a forwarder is full, fullSeconds for how long it must be.
	fullShare, fullSeconds = 0.85, 20
	// brownoutFrom is the service time in a brown-out, as a multiple of the usual.
	brownoutFrom = 1.6
)

// Layer is what is known of a second beyond the forwarders' own rows.
type Layer struct {
	// Read and Write are how many times as long as usual the whole layer takes (failslow's common
	// factor); 0 where not known.
	Read, Write float64
	// PeakBytesPerSec is what a forwarder can move; 0 where not known yet.
	PeakBytesPerSec float64
	// Pools are the mean service times of the storage pools in seconds; empty where not known.
	Pools []float64
}

// Detector names interference second by second. It has no clock; its methods must not be called concurrently.
type Detector struct {
	nodes    map[topology.NodeID]*node
	jobs     map[topology.NodeID][]failslow.Job
	moves    func(topology.NodeID, topology.JobID) float64
	now      int64
	gap      int64
	verdicts []anomaly.Verdict
	backend  backend
}

// New makes a detector.
func New() *Detector {
	return &Detector{nodes: map[topology.NodeID]*node{}}
}

// Jobs sets which forwarders serve which job from now on. It need not be called.
func (d *Detector) Jobs(jobs []failslow.Job) {
	d.jobs = map[topology.NodeID][]failslow.Job{}
	for _, j := range jobs {
		for _, n := range j.Nodes {
			d.jobs[n] = append(d.jobs[n], j)
		}
	}
}

// Moves sets how to learn how many bytes/s a job moves through a node: jobs that fill a node differ in it from those
// that wait there. It need not be called.
func (d *Detector) Moves(of func(topology.NodeID, topology.JobID) float64) { d.moves = of }

// Second takes what arrived in one second and returns one verdict for each interference that goes on.
// The slice is used again by the next call.
func (d *Detector) Second(now time.Time, obs []failslow.Observation, layer Layer) []anomaly.Verdict {
	d.gap, d.now = now.Unix()-d.now, now.Unix()
	d.verdicts = d.verdicts[:0]
	for i := range obs {
		d.look(&obs[i], layer)
	}
	for _, id := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[id]
		for k := range n.streaks {
			if n.seen != d.now {
				n.streaks[k].step(d.now, false, 1, release)
			}
			if n.streaks[k].open {
				d.name(n, k)
			}
		}
	}
	d.judgeBackend(layer)
	return d.verdicts
}

// The kinds that a single forwarder can suffer.
const (
	pinned = iota
	storm
	full
	kinds
)

var names = [kinds]anomaly.Kind{anomaly.N1Pin, anomaly.MetaStorm, anomaly.HighBandwidth}

const release = 5 // seconds without it that end an interference

// node is what is kept of one forwarder.
type node struct {
	id      topology.NodeID
	seen    int64
	usual   background
	streaks [kinds]streak
	newest  [kinds]float64 // what the sentence says
	held    stormHold
	moved   map[topology.JobID]int64 // when a job last moved bytes through it
}

// stormHold is what a metadata storm does to its forwarder: the share of its threads' time, and how long
// reads and writes wait for a thread, seconds.
type stormHold struct{ share, wait float64 }

// background is the write trickle that a node always has.
type background struct{ ops, exec float64 }

// streak counts the seconds in which something was seen.
type streak struct {
	on, off int
	since   int64
	open    bool
}

func (s *streak) step(now int64, hit bool, need, release int) {
	if !hit {
		if s.off++; s.off >= release {
			*s = streak{off: s.off}
		}
		if !s.open {
			s.on = 0
		}
		return
	}
	if s.on == 0 {
		s.since = now
	}
	s.on, s.off = s.on+1, 0
	s.open = s.open || s.on >= need
}

func (d *Detector) look(o *failslow.Observation, layer Layer) {
	n := anomaly.Entry(d.nodes, o.Node)
	n.id = o.Node
	bytes := o.Class[failslow.Read].Bytes + o.Class[failslow.Write].Bytes
	if n.seen == d.now || d.gap > 1 && n.seen != 0 || bytes > 1e12 || o.Class[failslow.Meta].Ops > 1e7 {
		n.seen = d.now
		return // counters over a gap, or a reset
	}
	n.seen = d.now
	hit, exec := d.pins(n, o, max(1, layer.Write))
	n.step(d.now, pinned, hit, exec, 4, release)

	m := &o.Class[failslow.Meta]
	busy := m.Ops * m.Exec / serving
	wait := max(o.Class[failslow.Read].Wait, o.Class[failslow.Write].Wait)
	stormy := m.Ops >= stormOps && busy >= stormShare
	if stormy {
		n.held = stormHold{min(busy, 1), wait}
	}
	n.step(d.now, storm, stormy, m.Ops, 3, release)

	share := 0.0
	if layer.PeakBytesPerSec > 0 {
		share = bytes / layer.PeakBytesPerSec
	}
	// A peak that was learnt may only be the most that was asked for: a full node makes requests wait.
	waits := o.QueueLen > waiting || wait > noticed
	if o.Peak > 0 {
		share = max(o.Class[failslow.Read].Bytes, o.Class[failslow.Write].Bytes) / o.Peak
		several := d.shared(n) // also in a second that needs no more: it notes who moves bytes
		waits = waits || several
	}
	n.step(d.now, full, share >= fullShare && waits, share, fullSeconds, 3)
}

// pause is for how many seconds a job counts as at work on a node after it moved bytes there: programs compute between
// their writes.
const pause = 10

// shared says whether several jobs are at work on a node: at its known peak they then wait for each other, also where
// the queue is in the network and nobody sees it.
func (d *Detector) shared(n *node) bool {
	if d.moves == nil {
		return false
	}
	moved := map[topology.JobID]int64{}
	for _, j := range d.jobs[n.id] {
		if d.moves(n.id, j.ID) > 0 {
			moved[j.ID] = d.now
		} else if last := n.moved[j.ID]; d.now-last <= pause {
			moved[j.ID] = last
		}
	}
	n.moved = moved
	return len(moved) > 1
}

// step counts one second of a kind. The number that the sentence says is that of the newest second in
// which it was seen: those that only wait for its end have others.
func (n *node) step(now int64, k int, hit bool, number float64, need, release int) {
	if hit {
		n.newest[k] = number
	}
	n.streaks[k].step(now, hit, need, release)
}

const (
	noticed = 1e-3 // seconds that requests wait before it is worth a word
	waiting = 0.5  // requests that wait in the mean of a second: an instant of one shows now and then
)

const trickle = 24 << 10 // bytes a request, mean, of seconds with nothing but the background

// pins says that the job's writes hold the threads: they take far longer than the back end explains,
// requests wait for them, and reads that got a thread are served as ever.
func (d *Detector) pins(n *node, o *failslow.Observation, common float64) (hit bool, exec float64) {
	w, r := &o.Class[failslow.Write], &o.Class[failslow.Read]
	if !(w.Ops > 0) || !(w.Exec > 0) {
		return false, 0
	}
	if w.Bytes/w.Ops < trickle && w.Wait < pinnedWait {
		n.usual.ops += (w.Ops - n.usual.ops) / 30
		n.usual.exec += (w.Exec - n.usual.exec) / 30
	}
	jobOps := w.Ops - min(n.usual.ops, 0.9*w.Ops)
	exec = (w.Ops*w.Exec - (w.Ops-jobOps)*n.usual.exec) / jobOps
	size := (w.Bytes - (w.Ops-jobOps)*16e3) / jobOps
	held := w.Ops * w.Exec / serving
	readsWell := !(r.Ops >= 5 && r.Bytes/r.Ops < trickle) || r.Exec < exec/4
	hit = w.Wait >= pinnedWait && exec >= pinnedExec*common && exec >= size*1.5e-8+0.002 && held >= 0.4 &&
		size > 24<<10 && size < 420<<10 && readsWell
	return hit, exec
}

// name writes the verdict of an interference that goes on.
func (d *Detector) name(n *node, k int) {
	s := &n.streaks[k]
	since := time.Unix(s.since, 0).UTC()
	v := anomaly.Verdict{Node: n.id, Kind: names[k], Level: anomaly.Alarm, Since: since,
		Confidence: min(0.99, 0.7+0.02*float64(s.on)), Score: float64(s.on)}
	who := ""
	for i, j := range d.culprits(n, k) {
		if i > 0 {
			who += " or "
		}
		who += string(j)
		v.Culprits = append(v.Culprits, j)
	}
	if who == "" {
		who = "a job that is not known"
	}
	switch k {
	case pinned:
		v.Sentence = fmt.Sprintf(
			"%s is pinned by %s: writes to one shared file hold its threads for %.0f ms each; what gets a "+
				"thread is served as ever", n.id, who, 1e3*n.newest[k])
		v.Evidence = map[string]float64{"write_exec_seconds": n.newest[k]}
	case storm:
		v.Sentence = fmt.Sprintf(
			"%s serves %.0f metadata operations a second for %s; they take %.0f%% of its threads' time", n.id,
			n.newest[k], who, 100*n.held.share)
		if n.held.wait > noticed {
			v.Sentence += fmt.Sprintf(", and reads and writes wait %.0f ms for a thread", 1e3*n.held.wait)
		}
		v.Evidence = map[string]float64{"meta_ops": n.newest[k], "meta_thread_share": n.held.share}
	case full:
		v.Sentence = fmt.Sprintf("%s is filled by %s: %.0f%% of its peak bandwidth", n.id, who, 100*n.newest[k])
		v.Evidence = map[string]float64{"share_of_peak": n.newest[k]}
	}
	d.verdicts = append(d.verdicts, v)
}

// culprits are the jobs that explain it best: those of the node whose other forwarders suffer alike.
func (d *Detector) culprits(n *node, k int) []topology.JobID {
	best, share := []topology.JobID(nil), 0.0
	for _, j := range d.jobs[n.id] {
		alike := 0
		for _, id := range j.Nodes {
			if p := d.nodes[id]; p != nil && p.streaks[k].on > 0 {
				alike++
			}
		}
		s := float64(alike*alike) / float64(len(j.Nodes)) // many alike, few spared
		switch {
		case math.Abs(s-share) < 1e-9:
			best = append(best, j.ID)
		case s > share:
			best, share = []topology.JobID{j.ID}, s
		}
	}
	if k == full && d.moves != nil && len(best) > 1 {
		most := 0.0
		for _, j := range best {
			most = max(most, d.moves(n.id, j))
		}
		best = slices.DeleteFunc(best, func(j topology.JobID) bool { return d.moves(n.id, j) < most/2 })
	}
	slices.Sort(best)
	return best[:min(len(best), 3)]
}
