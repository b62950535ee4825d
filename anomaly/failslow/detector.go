package failslow

import (
	"iter"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// Detector watches a layer of forwarders. It has no clock and does no I/O: Second is called once for
// every second, in order, with what arrived in it. Its methods must not be called concurrently.
type Detector struct {
	comparison
	canaries canaryLayer
	verdicts []anomaly.Verdict
}

// comparison says what nothing but a node explains.
type comparison struct {
	roster
	reference
	set   Settings
	bar   compare.Bar
	limit float64 // log wealth at which a node is accused
}

// roster is who there is, and who works with whom.
type roster struct {
	now   int64 // the newest second, Unix
	began int64
	nodes compare.Subjects[node, *node]
	rows  []*node             // of this second, by row
	jobs  map[*node][][]*node // the forwarders of each of a node's jobs, itself among them
	visit int64               // see peers
}

// reference is what the layer shows that no node is blamed for.
type reference struct {
	model     model
	peak      peak
	common    [2]float64            // this second's factor of the whole layer, log
	quiet     [2]float64            // the same without what jobs stream
	lately    [2]float64            // the common factor, mean over the last seconds
	backend   float64               // log of the worst pool's slowness against its usual time
	pools     float64               // the same of the mean over the pools
	witnessed [2]bool               // the background of enough nodes shows how slow the back end is now
	residuals [2][regimes][]float64 // of this second
	// seconds of a class of a node, and those without an expectation
	served, unknown uint64
}

// New makes a detector that knows nothing yet.
func New(set Settings) *Detector {
	limit := compare.Threshold(set.FalseAlarmEvery, blockSeconds*time.Second, testCount)
	return &Detector{comparison: comparison{set: set, reference: reference{peak: peak{fixed: set.PeakBytesPerSec}},
		limit: limit, bar: compare.Bar{Kind: anomaly.FailSlow, Alarm: limit, Doubt: doubtFrom}}}
}

// Jobs sets which forwarders serve which job from now on. It may never be called.
func (r *roster) Jobs(jobs []Job) {
	r.jobs = map[*node][][]*node{}
	for _, j := range jobs {
		all := make([]*node, len(j.Nodes))
		for i, id := range j.Nodes {
			all[i] = r.node(id)
		}
		for _, n := range all {
			r.jobs[n] = append(r.jobs[n], all)
		}
	}
}

// peers are the other forwarders of a node's jobs, each once.
func (r *roster) peers(n *node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		r.visit++
		n.visited = r.visit
		for _, all := range r.jobs[n] {
			for _, p := range all {
				if p.visited == r.visit {
					continue
				}
				if p.visited = r.visit; !yield(p) {
					return
				}
			}
		}
	}
}

// Backend sets how many times their usual time the slowest storage pool and the mean pool take now, from
// whoever watches the back end; 1 is normal. It may never be called.
func (r *reference) Backend(worst, mean float64) {
	r.backend, r.pools = math.Log(max(1, worst)), math.Log(max(1, mean))
}

// Served counts the seconds with reads or writes so far, a class of a node each, and those of them for which nobody had
// shown what such requests need: the detector could not judge them.
func (r *reference) Served() (served, unknown uint64) { return r.served, r.unknown }

// Common returns the factor by which the whole layer is slower in the newest second than the model
// expects, of reads and writes, as the background of four nodes or more shows it.
func (r *reference) Common() (read, write float64) {
	return math.Exp(r.quiet[Read]), math.Exp(r.quiet[Write])
}

// Second takes what arrived in one second and returns one verdict for each node seen in it, and for
// each other node in doubt or alarm. The slice is used again by the next call.
func (d *Detector) Second(now time.Time, obs []Observation) []anomaly.Verdict {
	gap := now.Unix() - d.now
	d.now = now.Unix()
	if d.began == 0 {
		d.began, gap = d.now, 1
	}
	d.verdicts, d.rows = d.verdicts[:0], d.rows[:0]
	for c := range d.residuals {
		for r := range d.residuals[c] {
			d.residuals[c][r] = d.residuals[c][r][:0]
		}
	}
	for i := range obs {
		n := d.node(obs[i].Node)
		d.rows = append(d.rows, n)
		d.read(n, &obs[i], float64(max(gap, 1)))
		n.row = i
	}
	d.findCommon()
	for i, n := range d.rows {
		if n.row != i { // of rows that arrived together the newest counts
			continue
		}
		if n.Seen == d.now {
			d.learn(n)
			d.collect(n, &obs[i])
		}
		d.judge(n)
		n.judged = d.now
	}
	for _, n := range d.nodes.All() {
		if n.judged != d.now {
			d.judge(n)
		}
	}
	return d.verdicts
}

// Forget ends what is held against a node that was seen to be well otherwise; what it is used to stays.
func (r *roster) Forget(id topology.NodeID) { r.nodes.Forget(id) }

func (r *roster) node(id topology.NodeID) *node {
	n := r.nodes.Get(id)
	if n.Tests == nil {
		n.Tests, n.ID, n.Index = make([]compare.Test, testCount), id, r.nodes.Count()-1
	}
	return n
}

// need is how many nodes must have taught a cell.
func (r *roster) need() int { return min(teachers, max(1, r.nodes.Count())) }

// read turns a row into residuals against the fleet.
func (d *comparison) read(n *node, o *Observation, gap float64) {
	if o.Spans > 0 {
		gap = o.Spans
	}
	for c := range o.Class {
		if o.Class[c].Ops > absurdOps {
			return
		}
	}
	if n.Seen != 0 && float64(d.now-n.Seen) > silentFor && gap <= silentFor {
		n.Back = d.now
	}
	n.Seen = d.now
	n.now = second{util: rate(o, d.peak.value()) / gap}
	n.Load = n.now.util
	d.noteLoad(n, o)
	if o.QueueLen > calmBacklog || max(o.Class[Read].Wait, o.Class[Write].Wait) > waits {
		n.Waited = d.now
	}
	if gap == 1 {
		d.peak.see(n.Index, o.Class[Read].Bytes+o.Class[Write].Bytes)
	}
	for c := range 2 {
		k := &o.Class[c]
		if !(k.Ops >= fewOps) || !known(k.Exec) || !(k.Bytes > 0) {
			continue
		}
		s := &n.now
		n.Bare[c] = n.Bare[c] || len(d.jobs[n]) == 0
		s.seen[c], s.ops[c], s.size[c], s.log[c] = true, k.Ops, k.Bytes/k.Ops, math.Log(k.Exec)
		if s.size[c] > smallRequest || !d.model.Sizes[c].usual(s.size[c], s.ops[c]) {
			s.regime[c] = large
		} else {
			s.quiet[c] = n.noteQuiet(c, k.Ops) && float64(d.now-d.began) > coldFor && d.model.Sizes[c].background(k.Ops)
		}
		s.expected[c], s.known[c] = d.model.expect(Class(c), s.size[c], s.util, d.need())
		if !s.known[c] {
			s.expected[c], s.known[c] = d.model.expect(Class(c), s.size[c], s.util, 1)
			s.guess[c] = s.known[c]
		}
		d.served++
		if !s.known[c] {
			d.unknown++
		} else {
			s.residual[c] = s.log[c] - s.expected[c] - n.own(c, s.regime[c])
			if !n.Alarm && s.ops[c] >= commonOps && !s.guess[c] {
				group := s.regime[c]
				if group == small && !s.quiet[c] && float64(d.now-d.began) > coldFor {
					group = large // some job's, with its pools in them
				}
				d.residuals[c][group] = append(d.residuals[c][group], s.residual[c])
			}
		}
	}
}

// own is the node's offset, drawn to nothing while it is young.
func (n *node) own(c, regime int) float64 {
	o := &n.Habit.Offset[c][regime]
	return o.Mean * o.N / (o.N + 60)
}

// findCommon takes the median residual of small requests as the factor of the whole layer. Where fewer than four
// nodes showed such requests, those that stream speak too, of two the one that is less slow: what two nodes share
// is nobody's own. So few never make a node look slower. One alone is its own reference.
func (r *reference) findCommon() {
	for c := range r.residuals {
		all := r.residuals[c][small]
		r.witnessed[c] = float64(len(all)) >= max(witnesses, 1)
		if r.witnessed[c] {
			r.common[c] = nth(all, len(all)/2)
			// What some do faster than their like ever did makes nobody slower: three quarters of them must.
			if r.common[c] < -plainlyFast {
				r.common[c] = max(r.common[c], min(0, nth(all, len(all)*3/4)))
			}
			r.quiet[c] = r.common[c]
		} else {
			r.quiet[c] *= 0.8
			all = append(all, r.residuals[c][large]...)
			r.residuals[c][small] = all // its room is used again
			if len(all) <= 1 {
				r.common[c] *= 0.8
			} else {
				r.common[c] = max(0, nth(all, (len(all)-1)/2))
			}
		}
		r.lately[c] += (r.common[c] - r.lately[c]) / 10
	}
}

// nth returns the k-th smallest value of a slice, which it sorts.
func nth(v []float64, k int) float64 {
	slices.Sort(v)
	return v[k]
}

// learn lets a healthy second teach the model, the noise and the node's offset. Whether it does never
// depends on the second's own latencies.
func (d *comparison) learn(n *node) {
	if n.doubted() {
		return
	}
	s := &n.now
	for c := range 2 {
		calm := math.Abs(d.common[c]) < calmCommon && d.pools < calmPools
		if !s.seen[c] || !calm {
			continue
		}
		// Not without the common factor: a median taken off again and again would carry the model away.
		d.model.teach(Class(c), s.size[c], s.util, s.log[c], n.Index)
		if s.known[c] {
			r := s.residual[c] - d.common[c]
			if s.regime[c] == small {
				d.model.teachNoise(Class(c), s.ops[c], r)
			}
			if Class(c) != Read || float64(d.now-n.Back) > coldFor {
				teachOffset(&n.Habit.Offset[c][s.regime[c]], r+n.own(c, s.regime[c]))
			}
		}
	}
}

// peak learns what a forwarder can move: the second largest rate of its nodes, so that one strange
// row cannot set it.
type peak struct {
	fixed, First, Second float64
	Who                  int
}

func (p *peak) see(who int, bytes float64) {
	switch {
	case !(bytes > p.Second) || bytes > absurdRate:
	case bytes > p.First && who == p.Who:
		p.First = bytes
	case bytes > p.First:
		p.Second, p.First, p.Who = p.First, bytes, who
	case who != p.Who:
		p.Second = bytes
	}
}

func (p *peak) value() float64 {
	if p.fixed > 0 {
		return p.fixed
	}
	return p.Second
}

// PeakBytesPerSec is what a forwarder can move, set or learnt; 0 while nothing is known.
func (r *reference) PeakBytesPerSec() float64 { return r.peak.value() }
