package judge

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
	"fairway/remap"
	"fairway/tsdb/window"
)

// Watch is the detectors over the newest second of a running machine. Where a forwarder has no
// clock of its own in its service (diod), the time that its clients saw stands in for its
// execution times, weighted by their operations.
type Watch struct {
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

// NewWatch looks at the frames on board.
func NewWatch(board *window.Board, slow failslow.Settings, others interference.Settings) *Watch {
	return &Watch{board: board, set: slow, slow: failslow.New(slow), others: interference.New(others),
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
func (w *Watch) Verdicts(now time.Time, s *remap.Situation) []anomaly.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tellJobs(now, s)
	w.sumClients(now, s)
	w.obs, w.points = w.obs[:0], w.points[:0]
	clear(w.inside)
	w.board.Visit(func(f *collector.Frame) {
		if w.seen[f.Node] > now.Add(fresh).UnixMilli() {
			delete(w.seen, f.Node) // seen before this clock was set back
		}
		if f.Role < topology.Forwarder || f.TimeMillis <= w.seen[f.Node] ||
			now.UnixMilli()-f.TimeMillis > fresh.Milliseconds() {
			return
		}
		w.seen[f.Node] = f.TimeMillis
		if f.Role != topology.Forwarder {
			w.points = appendPoints(w.points, f)
			return
		}
		w.silence.take(f, now.Unix())
		w.obs = append(w.obs, w.observation(f))
	})
	// The board's order is none; the detector's answers must not depend on it.
	slices.SortFunc(w.obs, func(a, b failslow.Observation) int { return cmp.Compare(a.Node, b.Node) })
	w.slow.Backend(w.others.Pools())
	w.said = w.failSlow(now)
	for i := range w.said {
		w.addImpact(&w.said[i])
	}
	w.boundExec()
	read, write := w.slow.Common()
	layer := interference.Layer{Read: read, Write: write, PeakBytesPerSec: w.slow.PeakBytesPerSec()}
	w.said = append(w.said, w.others.Second(now, w.obs, layer)...)
	w.said = append(w.said, w.judgeTargets(now)...)
	w.said = append(w.said, w.silence.verdicts(now, func(n topology.NodeID) (used int) {
		for _, f := range s.Observed {
			if f.Node() == n {
				used++
			}
		}
		return used
	})...)
	return w.said
}

// failSlow asks the one detector of forwarders with a clock of their own, and the other of those
// that only their clients see; of these the first still judges the canaries.
func (w *Watch) failSlow(now time.Time) []anomaly.Verdict {
	w.clocked, w.byEyes = w.clocked[:0], w.byEyes[:0]
	eyes := map[topology.NodeID]bool{}
	for _, o := range w.obs {
		if !w.clock[o.Node] {
			w.byEyes = append(w.byEyes, o)
			eyes[o.Node] = true
			for c := range o.Class {
				o.Class[c].Exec = math.NaN()
			}
		}
		w.clocked = append(w.clocked, o)
	}
	said := slices.DeleteFunc(append(w.said[:0], w.slow.Second(now, w.clocked)...), func(v anomaly.Verdict) bool {
		return eyes[v.Node] && v.Level < anomaly.Doubt // it saw no service, and so no health
	})
	for _, v := range w.seenBy.Second(now, w.byEyes) {
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

func (w *Watch) observation(f *collector.Frame) failslow.Observation {
	inFlight := valueOr(f, collector.InFlight, math.NaN())
	// Where nobody counts what waits alone, all that is in flight bounds it.
	o := failslow.Observation{Node: f.Node, QueueLen: valueOr(f, collector.QueueLen, inFlight)}
	sums := w.clients[topology.ForwarderID(f.Node)]
	if t, ok := f.Value(collector.ServerTime); ok {
		w.inside[f.Node] = t
	}
	if serving := inFlight - o.QueueLen; serving > 0 {
		o.Serving = serving
	}
	for c, m := range classOf {
		k := &o.Class[c]
		k.Ops, k.Bytes = valueOr(f, m.ops, 0), valueOr(f, m.bytes, 0)
		k.Wait, k.Exec = valueOr(f, m.wait, math.NaN()), valueOr(f, m.exec, math.NaN())
		if !math.IsNaN(k.Exec) {
			w.clock[f.Node] = true
		} else if !w.clock[f.Node] && sums != nil && sums.ops[c] > 0 {
			k.Exec = sums.took[c] / sums.ops[c]
		}
	}
	if sums != nil {
		o.Packets, o.Lost = sums.packets, sums.lost
		if moved := o.Class[failslow.Read].Bytes +
			o.Class[failslow.Write].Bytes; moved > fullLink*w.slow.PeakBytesPerSec() {
			o.Lost = max(0, o.Lost-fullLoss*o.Packets)
		}
	}
	return o
}

// boundExec takes from the time that clients saw what was not spent in the server: what waits in a
// client or on the way holds none of the server's threads. All classes together held as many as were in service; of
// a server that does not tell how many nobody can say who holds its threads.
func (w *Watch) boundExec() {
	for i := range w.obs {
		o := &w.obs[i]
		if w.clock[o.Node] {
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
		if t, ok := w.inside[o.Node]; ok {
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

func (w *Watch) tellJobs(now time.Time, s *remap.Situation) {
	if len(s.Jobs) == 0 || now.Sub(w.toldAt) < tellEvery {
		return
	}
	w.toldAt = now
	jobs := make([]failslow.Job, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		at := map[topology.NodeID]bool{}
		one := failslow.Job{ID: j.ID}
		for _, n := range j.Nodes {
			if f, ok := s.Observed[n]; ok && !at[f.Node()] {
				at[f.Node()] = true
				one.Nodes = append(one.Nodes, f.Node())
			}
		}
		jobs = append(jobs, one)
	}
	w.slow.Jobs(jobs)
	w.others.Jobs(jobs)
}

// Due lists the nodes that want a canary probe now, those under suspicion and the others.
func (w *Watch) Due(now time.Time) (suspects, idle []topology.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slow.Due(now)
}

// Asked tells to which nodes one was sent.
func (w *Watch) Asked(now time.Time, nodes []topology.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		w.slow.Asked(now, n)
	}
}

// Probe takes what a canary saw.
func (w *Watch) Probe(now time.Time, p failslow.Probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow.Probe(now, p)
}
