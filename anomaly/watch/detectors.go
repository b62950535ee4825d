package watch

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/backend"
	"fairway/anomaly/capacity"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/compare"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Detectors judge the newest second of a running machine. A forwarder that does not report the times of its own
// service (diod) is judged by the times that its clients saw, weighted by their operations.
type Detectors struct {
	board *window.Board
	set   failslow.Settings

	mu       sync.Mutex               // guards everything that follows
	slow     *failslow.Detector       // forwarders that report their own execution times, and all canaries
	byClient *clientslow.Detector     // the other forwarders
	targets  *targetslow.Detector     // storage and metadata servers
	backEnds *backend.Detector        // servers behind gateways
	others   *interference.Detector   // what else explains a slow second
	routers  routers                  // forwarders that route messages
	silence  silence                  // what nodes report of themselves, or no longer
	ownClock map[topology.NodeID]bool // forwarders that report their own execution times
	clients  clients
	second   second
	trend    trend
	tally    tally
}

// second is what was read of the newest second. Its memory is used again in the next one.
type second struct {
	rows      []failslow.Observation
	clocked   []failslow.Observation // rows, without the times that only clients saw
	byClients []failslow.Observation // rows with times that only clients saw
	points    []targetslow.Point     // of storage and metadata servers
	servers   []backend.Second       // of back ends
	waiters   waiters
	verdicts  []anomaly.Verdict
}

// NewDetectors judges the frames on board.
func NewDetectors(board *window.Board, slow failslow.Settings) *Detectors {
	return &Detectors{board: board, set: slow, slow: failslow.New(slow), byClient: clientslow.New(slow.FalseAlarmEvery),
		targets:  targetslow.New(targetslow.DefaultRules(), slow.FalseAlarmEvery, time.Second),
		others:   interference.New(),
		backEnds: backend.New(slow.FalseAlarmEvery),
		routers:  newRouters(slow.FalseAlarmEvery),
		silence: silence{last: map[topology.NodeID]int64{}, agents: map[topology.NodeID]agentSays{},
			quiet: map[topology.NodeID]int64{},
			rates: linkRates{}, causes: newCauses(), full: capacity.Judge{}},
		ownClock: map[topology.NodeID]bool{},
		clients: clients{of: map[topology.ForwarderID]*clientSums{}, asked: asked{}, slow: newSlowClients(),
			judges: map[topology.ForwarderID]*judged{},
			plain:  compare.New(slow.FalseAlarmEvery, compare.Gateways()), links: newLinks(slow.FalseAlarmEvery),
			sights: newSights(slow.FalseAlarmEvery),
			lost:   map[topology.NodeID]*losses{}, full: full{}},
		second: second{waiters: waiters{}}, trend: newTrend(),
		tally: tally{seen: map[topology.NodeID]int64{}, came: map[topology.NodeID]uint64{}}}
}

// fresh is how old a frame may be and still belong to the present second.
const fresh = 3 * time.Second

// classMetrics are the metrics of a class on a forwarder and on its clients.
type classMetrics struct{ ops, bytes, wait, exec, client collector.Metric }

// classOf are those of each class.
var classOf = [3]classMetrics{
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
	d.second.rows, d.second.points = d.second.rows[:0], d.second.points[:0]
	clear(d.second.waiters)
	d.tally.begin(now)
	d.board.Layer(topology.Forwarder, func(n *window.Node) {
		taken := d.tally.isNew(n, now)
		d.second.waiters.take(&n.Frame)
		if d.tally.note(n, taken); taken {
			d.silence.take(&n.Frame, now.Unix())
			d.silence.rates.take(&n.Frame, now.Unix())
			d.silence.causes.take(&n.Frame, now.Unix())
			if d.routers.is(&n.Frame) {
				d.routers.take(&n.Frame)
				return
			}
			d.clients.sights.take(&n.Frame, d.clients.sights.forwarders)
			d.second.rows = append(d.second.rows, d.observation(&n.Frame))
		}
	})
	for _, servers := range []topology.Role{topology.Storage, topology.Metadata} {
		d.board.Layer(servers, func(n *window.Node) {
			if now.UnixMilli()-n.TimeMillis > fresh.Milliseconds() {
				return
			}
			isNew := d.tally.isNew(n, now)
			d.routers.addSender(&n.Frame, isNew)
			if isNew {
				d.silence.take(&n.Frame, now.Unix())
				d.second.points = appendPoints(d.second.points, &n.Frame)
				d.silence.full.Take(&n.Frame, now.Unix())
				d.silence.causes.take(&n.Frame, now.Unix())
			}
		})
	}
	d.second.rows = d.clients.addSilent(d.second.rows)
	// The window has no order, and verdicts must not depend on it.
	slices.SortFunc(d.second.rows, func(a, b failslow.Observation) int { return cmp.Compare(a.Node, b.Node) })
	d.takeBackEnds(now)
	d.clients.full.mark(d.second.rows, m.Peaks)
	second := &moment{now: now, machine: m}
	for _, j := range judgesOf(d) {
		more := j.second(second)
		d.second.verdicts = anomaly.Merge(d.second.verdicts, more)
	}
	for i := range d.second.verdicts {
		d.addImpact(now, &d.second.verdicts[i])
	}
	d.second.verdicts = d.clients.noteWaits(d.ownClock, d.second.verdicts)
	d.silence.causes.explain(now, d.second.verdicts)
	d.second.waiters.explain(d.second.verdicts)
	return d.second.verdicts
}

// judge is one of those whose verdicts make up a second.
type judge struct {
	name   string
	second func(*moment) []anomaly.Verdict
}

// moment is the second that is judged, and what judges leave for those after them.
type moment struct {
	now     time.Time
	machine *Machine
	routers []anomaly.Verdict
}

// judgesOf are asked in this order, the one nearest to the cause first: of equal verdicts about one node its own stays.
// Adding one is a function, or a package, and a row.
func judgesOf(d *Detectors) []judge {
	return []judge{
		{"forwarders", func(m *moment) []anomaly.Verdict { return judgeForwarders(d, m) }},
		{"neighbours", func(m *moment) []anomaly.Verdict { return judgeNeighbours(d, m) }},
		{"jobs", func(m *moment) []anomaly.Verdict { // they accuse nobody, and note who explains what they wait
			takeJobTrends(d, m.now, m.machine)
			return nil
		}},
		{"servers", func(m *moment) []anomaly.Verdict {
			m.routers = d.routers.judge(m.now)
			return d.judgeTargets(m.now, m.routers)
		}},
		{"back ends", func(*moment) []anomaly.Verdict { return d.judgeBackEnds() }},
		{"routers", func(m *moment) []anomaly.Verdict { return m.routers }},
		{"own requests", func(m *moment) []anomaly.Verdict { return d.clients.sights.judgeAskers(m.now) }},
		{"hung", func(m *moment) []anomaly.Verdict { return judgeHung(d, m) }},
		{"links' rates", func(m *moment) []anomaly.Verdict { return d.silence.rates.verdicts(m.now) }},
		{"silence", func(m *moment) []anomaly.Verdict { return d.silence.verdicts(m.now, m.machine.mapped) }},
		{"capacity", func(m *moment) []anomaly.Verdict { return d.silence.full.Verdicts(m.now) }},
		{"second speakers", func(m *moment) []anomaly.Verdict { return d.silence.speakerVerdicts(m.now) }},
	}
}

// judgeForwarders judges forwarders by their own clocks and by their clients', and what else needs these; theirs begin
// the second's list.
func judgeForwarders(d *Detectors, m *moment) []anomaly.Verdict {
	d.second.verdicts = d.failSlow(m.now)
	d.tally.noteClasses(d.slow.Served())
	d.takeTrend(m.now)
	return nil
}

// judgeNeighbours says what else explains that forwarders are slow.
func judgeNeighbours(d *Detectors, m *moment) []anomaly.Verdict {
	d.boundExec()
	read, write := d.slow.Common()
	return d.others.Second(m.now, d.second.rows,
		interference.Layer{Read: read, Write: write, PeakBytesPerSec: d.slow.PeakBytesPerSec()})
}

// judgeHung accuses those that answer nothing, who are not judged by what they answered before.
func judgeHung(d *Detectors, m *moment) []anomaly.Verdict {
	hung := d.silence.bury(m.now, d.clients.hangs(m.now, d.silence.mute))
	for i := range hung {
		d.clients.plain.Forget(hung[i].Node)
	}
	return hung
}

// mapped is how many compute nodes have a forwarder as theirs, or as one of several.
func (m *Machine) mapped(n topology.NodeID) (nodes int) {
	for _, f := range m.Mapping {
		if f.Node() == n {
			nodes++
		}
	}
	for _, shares := range m.Spread {
		for _, s := range shares {
			if s.Forwarder.Node() == n {
				nodes++
			}
		}
	}
	return nodes
}

// isNew reports whether a node's newest second was not taken yet and is fresh; from then on it is taken.
func (t *tally) isNew(n *window.Node, now time.Time) bool {
	if t.seen[n.Node] > now.Add(fresh).UnixMilli() {
		delete(t.seen, n.Node) // seen before this clock was set back
	}
	if n.TimeMillis <= t.seen[n.Node] || now.UnixMilli()-n.TimeMillis > fresh.Milliseconds() {
		return false
	}
	t.seen[n.Node] = n.TimeMillis
	return true
}

// failSlow judges forwarders that report their own execution times by these, and the others by their clients' times.
// The canaries of all of them are judged alike.
func (d *Detectors) failSlow(now time.Time) []anomaly.Verdict {
	d.second.clocked, d.second.byClients = d.second.clocked[:0], d.second.byClients[:0]
	unclocked := map[topology.NodeID]bool{}
	for _, o := range d.second.rows {
		if sums := d.clients.of[topology.ForwarderID(o.Node)]; d.ownClock[o.Node] && sums != nil {
			d.clients.links.take(o, sums)
		}
		if !d.ownClock[o.Node] {
			d.second.byClients = append(d.second.byClients, o)
			d.clients.takeGateway(&o)
			unclocked[o.Node] = true
			for c := range o.Class {
				o.Class[c].Exec = math.NaN()
			}
		}
		d.second.clocked = append(d.second.clocked, o)
	}
	server := map[topology.NodeID]topology.NodeID{}
	for i := range d.second.rows {
		server[d.second.rows[i].Node] = d.second.rows[i].Behind
	}
	clocked := slices.DeleteFunc(d.slow.Second(now, d.second.clocked), func(v anomaly.Verdict) bool {
		if v.Level >= anomaly.Doubt && d.backEnds.Sick(server[v.Node]) {
			return true // canaries go through to it
		}
		return unclocked[v.Node] && v.Level < anomaly.Doubt // without service times no clean second can be seen
	})
	// what the load suffers says more than what canaries do
	out := append(d.second.verdicts[:0], d.byClient.Second(now, d.second.byClients)...)
	out = anomaly.Merge(anomaly.Merge(out, clocked), d.clients.plain.Second(now))
	return anomaly.Merge(out, d.clients.links.judge(now, out))
}

// A healthy link loses packets when it is full: beyond fullLink of its peak up to fullLoss of them do not count.
const (
	fullLink = 0.5
	fullLoss = 0.01
)

func (d *Detectors) observation(f *collector.Frame) failslow.Observation {
	inFlight := valueOr(f, collector.InFlight, math.NaN())
	// A source that does not count the waiting requests alone bounds them by all that are in flight.
	// Its rates are by the second, however long ago the detectors last looked.
	o := failslow.Observation{Node: f.Node, Spans: 1, QueueLen: valueOr(f, collector.QueueLen, inFlight)}
	sums := d.clients.of[topology.ForwarderID(f.Node)]
	o.Behind, o.Inside = behind(f), valueOr(f, collector.ServerTime, 0)
	if serving := inFlight - o.QueueLen; serving > 0 {
		o.Serving = serving
	}
	_, counted := f.Value(collector.WriteBytes)
	// Times without bytes cannot be judged by the size of a request: a DVS server's, whose clients time it as well.
	if clientsTime := !counted && sums != nil && sums.ops != [3]float64{}; clientsTime {
		delete(d.ownClock, f.Node)
	} else if slices.ContainsFunc(classOf[:], func(m classMetrics) bool { _, ok := f.Value(m.exec); return ok }) {
		d.ownClock[f.Node] = true
	}
	threads := threadsOf(f)
	if was := d.clients.judges[topology.ForwarderID(f.Node)]; was != nil && !threads.counted {
		threads.noneIdle, threads.counted = was.threads.noneIdle, was.threads.counted
	}
	for c, m := range classOf {
		k := &o.Class[c]
		k.Ops, k.Bytes = valueOr(f, m.ops, 0), valueOr(f, m.bytes, 0)
		if !counted && sums != nil {
			k.Bytes = sums.bytes[c]
		}
		k.Wait, k.Exec = valueOr(f, m.wait, math.NaN()), valueOr(f, m.exec, math.NaN())
		if !d.ownClock[f.Node] && sums != nil && sums.ops[c] > 0 {
			k.Exec = sums.execOf(failslow.Class(c), threads)
		}
	}
	if id := topology.ForwarderID(f.Node); d.ownClock[f.Node] {
		delete(d.clients.judges, id)
	} else if sums != nil {
		d.clients.judges[id] = &judged{threads, o.Behind, sums.newest}
	}
	for c := range o.Class {
		o.Completed, o.Moved = o.Completed+o.Class[c].Ops, o.Moved+o.Class[c].Bytes
	}
	if o.Completed == 0 { // a router forwards messages
		o.Completed, o.Moved = valueOr(f, collector.RoutedOps, 0), valueOr(f, collector.RoutedBytes, 0)
	}
	if inFlight > 0 {
		o.InFlight = inFlight
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

// boundExec reduces the times that clients saw to the part spent in the server: a request that waits in a client or
// on the way holds no thread of the server. All classes together held as many threads as requests were in service;
// of a server that does not report those, the holders of its threads are unknown.
func (d *Detectors) boundExec() {
	for i := range d.second.rows {
		o := &d.second.rows[i]
		if d.ownClock[o.Node] {
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
		if in := o.Inside * ops; o.Inside > 0 {
			if o.Serving > 0 { // the other requests of its queue wait
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

// jobsEvery is how often the detectors get the jobs and the forwarders that serve them.
const jobsEvery = 10 * time.Second

func (d *Detectors) takeJobs(now time.Time, m *Machine) {
	if len(m.Jobs) == 0 || now.Sub(d.clients.jobsAt) < jobsEvery {
		return
	}
	d.clients.jobsAt = now
	jobs := make([]failslow.Job, 0, len(m.Jobs))
	for _, j := range m.Jobs {
		at := map[topology.NodeID]bool{}
		one := failslow.Job{ID: j.ID}
		for _, n := range j.Nodes {
			m.over(n, func(f topology.ForwarderID, _ float64) {
				if !at[f.Node()] {
					at[f.Node()] = true
					one.Nodes = append(one.Nodes, f.Node())
				}
			})
		}
		jobs = append(jobs, one)
	}
	d.slow.Jobs(jobs)
	d.others.Jobs(jobs)
	d.others.Moves(func(n topology.NodeID, job topology.JobID) float64 {
		if sums := d.clients.of[topology.ForwarderID(n)]; sums != nil && sums.jobs[job] != nil {
			return sums.jobs[job].bytes
		}
		return 0
	})
}

// Forget implements Detector.
func (d *Detectors) Forget(n topology.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, part := range partsOf(d) {
		if judge, ok := part.(interface{ Forget(topology.NodeID) }); ok {
			judge.Forget(n)
		}
	}
	delete(d.clients.beside, n)
}

// Due lists the nodes that are due for a canary probe, those under suspicion and the others.
func (d *Detectors) Due(now time.Time) (suspects, idle []topology.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow.Due(now)
}

// Asked notes the nodes to which a canary was sent.
func (d *Detectors) Asked(now time.Time, nodes []topology.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range nodes {
		d.slow.Asked(now, n)
	}
}

// Probe takes the result of a canary.
func (d *Detectors) Probe(now time.Time, p failslow.Probe) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow.Probe(now, p)
}
