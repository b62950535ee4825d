package watch

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Detectors are the detectors over the newest second of a running machine. Where a forwarder has no
// clock of its own in its service (diod), the time that its clients saw stands in for its
// execution times, weighted by their operations.
type Detectors struct {
	board *window.Board
	set   failslow.Settings

	mu      sync.Mutex // guards everything that follows
	slow    *failslow.Detector
	others  *interference.Detector
	seenBy  *clientslow.Detector      // of forwarders without a clock of their own
	seen    map[topology.NodeID]int64 // newest second taken, Unix ms
	clients map[topology.ForwarderID]*clientSums
	lost    map[topology.NodeID]map[topology.JobID]float64 // smoothed waiting by slow node and job
	obs     []failslow.Observation
	inside  map[topology.NodeID]float64 // newest seconds in the server, where it has no clock of its own
	clocked []failslow.Observation      // as obs, without what only clients saw
	byEyes  []failslow.Observation      // those that only clients saw
	said    []anomaly.Verdict
	silence silence
	targets *targetslow.Detector
	points  []targetslow.Point       // of storage and metadata servers in this second
	clock   map[topology.NodeID]bool // forwarders that tell their own execution times
	toldAt  time.Time                // when the jobs were last told
}

// NewDetectors looks at the frames on board.
func NewDetectors(board *window.Board, slow failslow.Settings, others interference.Settings) *Detectors {
	return &Detectors{board: board, set: slow, slow: failslow.New(slow), others: interference.New(others),
		seenBy: clientslow.New(slow.FalseAlarmEvery), seen: map[topology.NodeID]int64{},
		targets: targetslow.New(slow.FalseAlarmEvery, time.Second), silence: silence{heard: map[topology.NodeID]int64{},
			quiet: map[topology.NodeID]int64{}}, inside: map[topology.NodeID]float64{},
		clock: map[topology.NodeID]bool{}, clients: map[topology.ForwarderID]*clientSums{},
		lost: map[topology.NodeID]map[topology.JobID]float64{}}
}

// fresh is how old a frame may be and still belong to the present second.
const fresh = 3 * time.Second

// classOf are the metrics of a class on a forwarder and on its clients.
var classOf = [3]struct {
	ops, bytes, wait, exec, client collector.Metric
}{
	failslow.Read: {collector.ReadOps, collector.ReadBytes, collector.ReadWait, collector.ReadExec,
		collector.ClientRead},
	failslow.Write: {collector.WriteOps, collector.WriteBytes, collector.WriteWait, collector.WriteExec,
		collector.ClientWrite},
	failslow.Meta: {collector.MetaOps, collector.MetricNone, collector.MetaWait, collector.MetaExec,
		collector.ClientMeta},
}

// Verdicts implements Detector.
func (d *Detectors) Verdicts(now time.Time, m *Machine) []anomaly.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takeJobs(now, m)
	d.sumClients(now, m)
	d.obs, d.points = d.obs[:0], d.points[:0]
	clear(d.inside)
	d.board.Layer(topology.Forwarder, func(n *window.Node) {
		if d.isNew(n, now) {
			d.silence.take(&n.Frame, now.Unix())
			d.obs = append(d.obs, d.observation(&n.Frame))
		}
	})
	for _, servers := range []topology.Role{topology.Storage, topology.Metadata} {
		d.board.Layer(servers, func(n *window.Node) {
			if d.isNew(n, now) {
				d.points = appendPoints(d.points, &n.Frame)
			}
		})
	}
	// The board has no order; the detector's answers must not depend on it.
	slices.SortFunc(d.obs, func(a, b failslow.Observation) int { return cmp.Compare(a.Node, b.Node) })
	d.slow.Backend(d.others.Pools())
	d.said = d.failSlow(now)
	for i := range d.said {
		d.addImpact(&d.said[i])
	}
	d.boundExec()
	read, write := d.slow.Common()
	layer := interference.Layer{Read: read, Write: write, PeakBytesPerSec: d.slow.PeakBytesPerSec()}
	d.said = append(d.said, d.others.Second(now, d.obs, layer)...)
	d.said = append(d.said, d.judgeTargets(now)...)
	d.said = append(d.said, d.silence.verdicts(now, func(n topology.NodeID) (used int) {
		for _, f := range m.Mapping {
			if f.Node() == n {
				used++
			}
		}
		return used
	})...)
	return d.said
}

// isNew reports whether a node's newest second was not taken yet and is fresh; from then on it is taken.
func (d *Detectors) isNew(n *window.Node, now time.Time) bool {
	if d.seen[n.Node] > now.Add(fresh).UnixMilli() {
		delete(d.seen, n.Node) // seen before this clock was set back
	}
	if n.TimeMillis <= d.seen[n.Node] || now.UnixMilli()-n.TimeMillis > fresh.Milliseconds() {
		return false
	}
	d.seen[n.Node] = n.TimeMillis
	return true
}

// failSlow asks the one detector of forwarders with a clock of their own, and the other of those
// that only their clients see; of these the first still judges the canaries.
func (d *Detectors) failSlow(now time.Time) []anomaly.Verdict {
	d.clocked, d.byEyes = d.clocked[:0], d.byEyes[:0]
	eyes := map[topology.NodeID]bool{}
	for _, o := range d.obs {
		if !d.clock[o.Node] {
			d.byEyes = append(d.byEyes, o)
			eyes[o.Node] = true
			for c := range o.Class {
				o.Class[c].Exec = math.NaN()
			}
		}
		d.clocked = append(d.clocked, o)
	}
	said := slices.DeleteFunc(append(d.said[:0], d.slow.Second(now, d.clocked)...), func(v anomaly.Verdict) bool {
		return eyes[v.Node] && v.Level < anomaly.Doubt // it saw no service, and so no health
	})
	for _, v := range d.seenBy.Second(now, d.byEyes) {
		if i := slices.IndexFunc(said, func(o anomaly.Verdict) bool { return o.Node == v.Node }); i < 0 {
			said = append(said, v)
		} else if v.Level > said[i].Level {
			said[i] = v
		}
	}
	return said
}

// A link that is full loses packets, and nothing is wrong with it: beyond fullLink of its peak up to fullLoss
// of them are not held against it.
const (
	fullLink = 0.5
	fullLoss = 0.01
)

func (d *Detectors) observation(f *collector.Frame) failslow.Observation {
	inFlight := valueOr(f, collector.InFlight, math.NaN())
	// Where nobody counts what waits alone, all that is in flight bounds it.
	o := failslow.Observation{Node: f.Node, QueueLen: valueOr(f, collector.QueueLen, inFlight)}
	sums := d.clients[topology.ForwarderID(f.Node)]
	if t, ok := f.Value(collector.ServerTime); ok {
		d.inside[f.Node] = t
	}
	if serving := inFlight - o.QueueLen; serving > 0 {
		o.Serving = serving
	}
	for c, m := range classOf {
		k := &o.Class[c]
		k.Ops, k.Bytes = valueOr(f, m.ops, 0), valueOr(f, m.bytes, 0)
		k.Wait, k.Exec = valueOr(f, m.wait, math.NaN()), valueOr(f, m.exec, math.NaN())
		if !math.IsNaN(k.Exec) {
			d.clock[f.Node] = true
		} else if !d.clock[f.Node] && sums != nil && sums.ops[c] > 0 {
			k.Exec = sums.took[c] / sums.ops[c]
		}
	}
	if sums != nil {
		o.Packets, o.Lost = sums.packets, sums.lost
		if moved := o.Class[failslow.Read].Bytes +
			o.Class[failslow.Write].Bytes; moved > fullLink*d.slow.PeakBytesPerSec() {
			o.Lost = max(0, o.Lost-fullLoss*o.Packets)
		}
	}
	return o
}

// boundExec takes from the time that clients saw what was not spent in the server: what waits in a
// client or on the way holds none of the server's threads. All classes together held as many as were in service; of
// a server that does not tell how many nobody can say who holds its threads.
func (d *Detectors) boundExec() {
	for i := range d.obs {
		o := &d.obs[i]
		if d.clock[o.Node] {
			continue
		}
		ops, held := 0.0, 0.0
		for c := range o.Class {
			if k := &o.Class[c]; k.Ops > 0 {
				ops += k.Ops
				if k.Exec > 0 {
					held += k.Ops * k.Exec
				}
			}
		}
		scale := math.NaN()
		if t, ok := d.inside[o.Node]; ok {
			in := t * ops
			if o.Serving > 0 { // the others of its queue wait
				in = min(in, o.Serving)
			}
			scale = min(1, in/held)
		}
		for c := range o.Class {
			o.Class[c].Exec *= scale
		}
	}
}

func valueOr(f *collector.Frame, m collector.Metric, absent float64) float64 {
	if v, ok := f.Value(m); ok {
		return v
	}
	return absent
}

// tellEvery is how often the detector hears which forwarders serve which job.
const tellEvery = 10 * time.Second

func (d *Detectors) takeJobs(now time.Time, m *Machine) {
	if len(m.Jobs) == 0 || now.Sub(d.toldAt) < tellEvery {
		return
	}
	d.toldAt = now
	jobs := make([]failslow.Job, 0, len(m.Jobs))
	for _, j := range m.Jobs {
		at := map[topology.NodeID]bool{}
		one := failslow.Job{ID: j.ID}
		for _, n := range j.Nodes {
			if f, ok := m.Mapping[n]; ok && !at[f.Node()] {
				at[f.Node()] = true
				one.Nodes = append(one.Nodes, f.Node())
			}
		}
		jobs = append(jobs, one)
	}
	d.slow.Jobs(jobs)
	d.others.Jobs(jobs)
}

// Due lists the nodes that want a canary probe now, those under suspicion and the others.
func (d *Detectors) Due(now time.Time) (suspects, idle []topology.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow.Due(now)
}

// Asked tells to which nodes one was sent.
func (d *Detectors) Asked(now time.Time, nodes []topology.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range nodes {
		d.slow.Asked(now, n)
	}
}

// Probe takes what a canary saw.
func (d *Detectors) Probe(now time.Time, p failslow.Probe) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow.Probe(now, p)
}
