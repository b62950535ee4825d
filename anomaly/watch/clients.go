package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// clients are what compute nodes saw of the forwarders.
type clients struct {
	jobsAt time.Time // when the detectors last got the jobs
	ran    ranOn
	of     map[topology.ForwarderID]*clientSums
	slow   slowClients
	beside map[topology.NodeID]*mateTimes   // of forwarders that are accused, in the last seconds
	lost   map[topology.NodeID]*losses      // by slow node
	full   full                             // forwarders at their peak
	asked  asked                            // what is not answered yet
	links  links                            // to forwarders that report their own execution times
	sights sights                           // of the storage targets and servers that they ask
	judges map[topology.ForwarderID]*judged // forwarders that their clients judge
	plain  *compare.Judge                   // of these, by all their clients together
}

// judged is a forwarder that its clients judge, as it was when it reported last.
type judged struct {
	threads threads
	behind  topology.NodeID
	newest  int64 // of its clients' seconds, when they were taken last
}

// clientSums gather what the clients of one forwarder saw in their newest second.
type clientSums struct {
	ops, took [3]float64 // by failslow.Class: operations that ended, and seconds of all of them together
	bytes     [3]float64 // that they moved
	// underWay is how many were under way of those of nodes that count them, open what they waited in this second less
	// what those took that ended.
	underWay, open float64
	newest         int64 // of their seconds, Unix ms
	waits          waits
	// Packets on the way between the forwarder and its clients, and those of them that were lost.
	packets, lost float64
	jobs          map[topology.JobID]*jobSums
}

// jobSums are one job's nodes behind one forwarder.
type jobSums struct {
	took  [3]float64 // seconds waited in this second, by failslow.Class
	ops   [3]float64 // requests that ended, where the source counts them by job
	ended [3]float64 // seconds that these took, also before this second
	bytes float64
	nodes float64 // of one that uses several forwarders its part here
	// stuck are those of the nodes with a request that is not answered, oldest the ages of these together, seconds.
	stuck, oldest float64
}

// sumClients adds up the compute nodes' seconds by the forwarder that each of them uses.
func (d *Detectors) sumClients(now time.Time, m *Machine) {
	clear(d.clients.of)
	d.clients.slow.begin()
	d.clients.ran.take(m.Jobs)
	oldest := now.Add(-fresh).UnixMilli()
	var askers *compare.Judge
	if len(d.routers.nets) > 0 {
		askers = d.clients.sights.clients
	}
	d.board.Layer(topology.Compute, func(f *window.Node) {
		if f.TimeMillis < oldest {
			return
		}
		known, isNew := false, d.tally.isNew(f, now)
		d.routers.addSender(&f.Frame, isNew)
		if isNew {
			d.clients.sights.take(&f.Frame, askers)
		}
		m.over(f.Node, func(fwd topology.ForwarderID, part float64) {
			sums := d.clients.of[fwd]
			if sums == nil {
				sums = &clientSums{jobs: map[topology.JobID]*jobSums{}}
				d.clients.of[fwd] = sums
			}
			sums.newest = max(sums.newest, f.TimeMillis)
			if known = true; part == 1 { // times of a node that uses several say nothing of any one of them
				sums.add(&f.Frame, d.clients.slow.take(fwd, &f.Frame), d.clients.asked.elsewhere(&f.Frame, fwd))
			}
			sums.addJobs(&f.Frame, d.clients.ran.jobsOf(&f.Frame), part)
		})
		if known {
			d.trend.counted(&f.Frame)
		}
	})
	d.clients.slow.compare()
	if now.Unix()%60 == 0 {
		d.clients.asked.forget(now)
	}
}

// takeGateway notes what all clients of an NFS server that counts who waits for its threads saw of it, by the size of
// requests. Others' clients may wait for a thread unseen.
func (c *clients) takeGateway(o *failslow.Observation) {
	if known := c.judges[topology.ForwarderID(o.Node)]; known == nil || !known.threads.counted {
		return
	}
	for class := range o.Class {
		k := &o.Class[class]
		if o.Full || o.Excused[class] || !(k.Ops > 0) {
			continue
		}
		c.plain.Take(compare.Sighting{Observer: o.Behind, Subject: o.Node, Class: failslow.Class(class).String(),
			Size: int(math.Round(math.Log2(max(1, k.Bytes/k.Ops)) / 2)), Ops: k.Ops, Took: k.Exec})
	}
}

// addSilent adds what clients saw in this second of forwarders that they judge and that report nothing just now: who is
// starved or cut off does not leave its own trial.
func (c *clients) addSilent(rows []failslow.Observation) []failslow.Observation {
	for f, known := range c.judges {
		sums := c.of[f]
		if sums == nil || sums.newest <= known.newest {
			continue
		}
		known.newest = sums.newest
		node := f.Node()
		if sums.ops == [3]float64{} ||
			slices.ContainsFunc(rows, func(o failslow.Observation) bool { return o.Node == node }) {
			continue
		}
		o := failslow.Observation{Node: node, Spans: 1, QueueLen: math.NaN(), Behind: known.behind}
		for class := range o.Class {
			k := &o.Class[class]
			k.Ops, k.Bytes, k.Wait, k.Exec = sums.ops[class], sums.bytes[class], math.NaN(), math.NaN()
			if k.Ops > 0 {
				k.Exec = sums.execOf(failslow.Class(class), known.threads)
			}
		}
		rows = append(rows, o)
	}
	return rows
}

// segmentBytes is the payload of a full packet on most networks: it weighs one client's loss against another's.
const segmentBytes = 1448

// add takes one compute node's second; the times of those of its classes that are slow on this node alone say nothing
// of the forwarder, nor does what it asked elsewhere.
func (c *clientSums) add(f *collector.Frame, alone [3]bool, elsewhere bool) {
	c.waits.take(f, elsewhere)
	if w, _ := collector.WaitingOf(f.Samples); w.Counted && !elsewhere && alone == [3]bool{} {
		c.underWay += w.UnderWay
		c.open += w.UnderWay - w.Ended()
	}
	if loss, ok := f.Value(collector.PathLossRatio); ok {
		read, write := valueOr(f, collector.ReadBytes, 0), valueOr(f, collector.WriteBytes, 0)
		packets := (read+write)/segmentBytes + valueOr(f, collector.MetaOps, 0)
		c.packets += packets
		c.lost += loss * packets
	}
	for i, m := range classOf {
		c.bytes[i] += valueOr(f, m.bytes, 0)
		if ops, t, ok := spent(f.Samples, m.ops, m.client); ok {
			if alone[i] {
				continue
			}
			c.ops[i] += ops
			c.took[i] += t
		}
	}
}

// threads are those of a forwarder's service, and the share of requests that found none idle, where that is counted.
type threads struct {
	many, noneIdle float64
	counted        bool
}

func threadsOf(f *collector.Frame) (t threads) {
	t.many = valueOr(f, collector.Threads, math.Inf(1))
	t.noneIdle, t.counted = f.Value(collector.NoThreadRatio)
	return t
}

// shortestExec is the mean of a class whose operations waited less than the others', by chance, seconds.
const shortestExec = 1e-6

// execOf is what an operation of a class took, without its wait for one of the forwarder's threads. By Little's law the
// seconds that all operations took are how many of them were under way, and those beyond the threads were not in
// service. A thread takes whatever came first, so that each operation waits as long as any other: a stat many times
// its own time, where a write hardly differs. Clients that gather at a healthy forwarder make each other wait; a slow
// one ends fewer operations with as many threads, and that time stays. Where the forwarder counts how many requests
// found no idle thread, no more than those waited: what is under way beyond the threads may be so on the way.
func (c *clientSums) execOf(class failslow.Class, t threads) float64 {
	ops, underway := 0.0, 0.0
	for i := range c.ops {
		ops += c.ops[i]
		underway += c.took[i]
	}
	waited := max(0, underway-t.many) / ops
	if t.counted {
		waited *= t.noneIdle
	}
	return max(c.took[class]/c.ops[class]-waited, shortestExec)
}

// meanWait is what an operation took the clients, seconds; NaN without one.
func (c *clientSums) meanWait() float64 {
	ops, took := c.ops[0]+c.ops[1]+c.ops[2], c.took[0]+c.took[1]+c.took[2]
	if ops == 0 && c.waits.stuck > 0 {
		return c.waits.oldest // at least so long
	}
	return took / ops
}

// addJobs adds a part of what a node's jobs waited.
func (c *clientSums) addJobs(f *collector.Frame, jobs []collector.JobSamples, part float64) {
	ofNode, _ := collector.WaitingOf(f.Samples)
	for k := range jobs {
		j := &jobs[k]
		job := anomaly.Entry(c.jobs, j.Job)
		job.nodes += part
		read, _ := collector.SampleOf(j.Samples, collector.ReadBytes)
		write, _ := collector.SampleOf(j.Samples, collector.WriteBytes)
		job.bytes += part * (read + write)
		w, known := collector.WaitingOf(j.Samples)
		if !known {
			w = ofNode
		}
		for i, t := range w.ByClass() {
			if !known {
				t *= shareOf(jobs, k, classOf[i].bytes)
			}
			job.took[i] += part * t
			if ops, counted := collector.SampleOf(j.Samples, classOf[i].ops); known && counted {
				job.ops[i] += part * ops
				if _, took, timed := spent(j.Samples, classOf[i].ops, classOf[i].client); timed {
					t = took
				}
				job.ended[i] += part * t
			}
		}
		if w.Stuck() && (known || len(jobs) == 1) {
			job.stuck += part
			job.oldest += part * w.Oldest
		}
	}
}

// spent returns the operations of a second, and the seconds that they took together.
func spent(samples []collector.Sample, ops, mean collector.Metric) (n, seconds float64, ok bool) {
	n, okOps := collector.SampleOf(samples, ops)
	t, okMean := collector.SampleOf(samples, mean)
	return n, n * t, okOps && okMean && n > 0
}

// shareOf is the part of a node's operations that one of its jobs did, by the bytes that the jobs moved: for sources
// that do not count operations by job. Metadata operations of several jobs go to none of them.
func shareOf(jobs []collector.JobSamples, k int, bytes collector.Metric) float64 {
	if len(jobs) == 1 {
		return 1
	}
	own, all := 0.0, 0.0
	for i := range jobs {
		v, _ := collector.SampleOf(jobs[i].Samples, bytes)
		all += v
		if i == k {
			own = v
		}
	}
	if all <= 0 {
		return 0
	}
	return own / all
}

// smooth is the weight of a new second in the impact shown.
const smooth = 0.1

// longGone is after how many seconds what hung elsewhere since begins to hang anew when it is back.
const longGone = 60

// leastShare is the smallest share of its nodes' time for which a job is named; less would read as 0 %.
const leastShare = 0.005

// losses are what jobs lose by one node that is accused, 0..1 of their nodes' time.
type losses struct {
	at time.Time // of the second that was taken last
	of map[topology.JobID]loss
}

// loss is what one job loses. Means of requests that ended are smoothed; requests without an answer are a fact.
type loss struct {
	share float64
	stuck bool // in the newest second
	// before are the seconds that what hangs had waited when it was noticed.
	before float64
	// gone are the seconds for which nothing has come from what hung: it was moved, or its frames are late.
	gone int
}

// take smooths what a job lost in a second. The smoothed second is what it lost while nothing hung; where something
// begins or ceases to hang the second counts as it is, so that all seconds together are what was lost.
func (l loss) take(share float64, j *jobSums) loss {
	stuck := j.stuck > 0
	switch {
	case stuck && !l.stuck:
		l.before = j.oldest / j.nodes
		l.share = share
	case stuck, l.stuck:
		l.share, l.before = share, 0
	default:
		l.share, l.before = l.share+smooth*(share-l.share), 0
	}
	l.stuck, l.gone = stuck, 0
	return l
}

// takeLosses are those of the newest second; it is taken once, however many findings the node has.
func takeLosses(d *Detectors, now time.Time, node topology.NodeID) map[topology.JobID]loss {
	sums := d.clients.of[topology.ForwarderID(node)]
	known := d.clients.lost[node]
	switch {
	case known == nil && sums == nil:
		return nil // no forwarder
	case known == nil:
		known = &losses{of: map[topology.JobID]loss{}}
		d.clients.lost[node] = known
	case known.at.Equal(now):
		return known.of
	}
	known.at = now
	ratios := ratiosOf(d, node)
	for c := range ratios {
		if part := d.clients.links.lost(node, c); part < 1 {
			ratios[c] = max(ratios[c], 1/(1-part))
		}
	}
	for job, l := range known.of {
		if sums != nil && sums.jobs[job] != nil {
			continue
		}
		if l.gone++; l.stuck && l.gone < longGone { // what comes back has not begun to hang anew
			l.share, l.before = 0, 0
			known.of[job] = l
			continue
		}
		// frames that are late do not say that nobody waits any more: what was known fades
		if l.share, l.before = l.share*(1-smooth), 0; l.share < 0.001 {
			delete(known.of, job)
		} else {
			known.of[job] = l
		}
	}
	if sums != nil {
		for job, j := range sums.jobs {
			known.of[job] = known.of[job].take(j.lost(ratios), j)
		}
	}
	return known.of
}

// ratiosOf are how many times as long as at its peers requests take at a forwarder, by class.
func ratiosOf(d *Detectors, node topology.NodeID) (ratios [collector.Classes]float64) {
	ratios = d.byClient.Ratio(node)
	if own, ok := d.slow.Ratio(node); ok && d.ownClock[node] {
		ratios = own
	}
	return ratios
}

// lost is the share of its nodes' second that a job lost at a forwarder that is as many times as slow.
func (j *jobSums) lost(ratios [collector.Classes]float64) float64 {
	return min(1, collector.LostSeconds(j.took, ratios, j.stuck)/max(leastNodes, j.nodes))
}

// addImpact lists the jobs that wait for an accused node, with the share of their nodes' time that they lose: the
// operations' time beyond what the peers take, and that of operations without an answer.
func (d *Detectors) addImpact(now time.Time, v *anomaly.Verdict) {
	if v.Level < anomaly.Doubt || len(v.Impact) > 0 {
		return
	}
	for job, l := range takeLosses(d, now, v.Node) {
		if l.share >= leastShare && !slices.Contains(v.Culprits, job) { // a culprit waits for itself
			v.Impact = append(v.Impact, anomaly.Impact{Job: job, Share: l.share, CostSeconds: l.share * l.before})
		}
	}
	slices.SortFunc(v.Impact, func(a, b anomaly.Impact) int {
		return cmp.Or(-cmp.Compare(a.Share, b.Share), cmp.Compare(a.Job, b.Job))
	})
}

// slowClients finds compute nodes that are slow by themselves: whose operations take far longer than those of the other
// clients of the same forwarder, at requests of about the same size, and go on to. Their times are left out of what
// judges the forwarder, from which they wait for nothing.
type slowClients struct {
	of    map[topology.NodeID]*[3]habitOfClient
	heard map[topology.ForwarderID][]clientSecond
}

// habitOfClient is by how much longer a class takes a node than its neighbours, log, smoothed over its seconds.
type habitOfClient struct {
	Longer  float64
	Seconds int
}

// clientSecond is what a class of operations took one client of a forwarder.
type clientSecond struct {
	node  topology.NodeID
	class int
	size  int     // of an operation, in steps of two times
	log   float64 // of its seconds
}

const (
	// aloneFrom is by how much longer than its neighbours, log: 2.5 times.
	aloneFrom = 0.9
	// clientMemory seconds of work must show it, and forget it.
	clientMemory = 10
	// fewClientOps a second say nothing.
	fewClientOps = 2
)

func newSlowClients() slowClients {
	return slowClients{map[topology.NodeID]*[3]habitOfClient{}, map[topology.ForwarderID][]clientSecond{}}
}

func (s *slowClients) begin() {
	for f := range s.heard {
		s.heard[f] = s.heard[f][:0]
	}
}

// take notes a node's second and reports the classes that are slow on it alone, by the seconds before.
func (s *slowClients) take(fwd topology.ForwarderID, f *collector.Frame) (alone [3]bool) {
	known := s.of[f.Node]
	for i, m := range classOf {
		if ops, t, ok := spent(f.Samples, m.ops, m.client); ok && ops >= fewClientOps && t > 0 {
			size := int(math.Round(math.Log2(max(1, valueOr(f, m.bytes, 0)/ops))))
			s.heard[fwd] = append(s.heard[fwd], clientSecond{f.Node, i, size, math.Log(t / ops)})
		}
		if known != nil {
			alone[i] = known[i].Seconds >= clientMemory && known[i].Longer > aloneFrom
		}
	}
	return alone
}

// compare compares the clients of each forwarder among themselves. A node whose neighbours do nothing alike keeps what
// is known of it.
func (s *slowClients) compare() {
	for _, all := range s.heard {
		slices.SortFunc(all, func(a, b clientSecond) int {
			return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.size, b.size), cmp.Compare(a.log, b.log))
		})
		for from, to := 0, 0; from < len(all); from = to {
			for to = from; to < len(all) && all[to].class == all[from].class && all[to].size == all[from].size; to++ {
			}
			s.compareAlike(all[from:to])
		}
	}
}

// compareAlike compares each of some clients with the median of the others, of two with the faster; they are sorted.
func (s *slowClients) compareAlike(all []clientSecond) {
	for i := range all {
		if len(all) < 2 {
			return
		}
		c, m := &all[i], (len(all)-2)/2
		if m >= i {
			m++
		}
		h := &anomaly.Entry(s.of, c.node)[c.class]
		h.Seconds = min(h.Seconds+1, clientMemory)
		h.Longer += (c.log - all[m].log - h.Longer) / float64(h.Seconds)
	}
}
