package watch

import (
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/layout"
	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// trendSeconds is how much of the layer's past is kept, waitSeconds how much of each forwarder's.
	trendSeconds = 15 * 60
	waitSeconds  = 5 * 60
	// TrendStep is the step of what Trend returns, seconds.
	TrendStep = 5
)

// Second is the layer in one second, or the mean of some. What was not reported is NaN.
type Second struct {
	Read, Write float64 // bytes/s through all forwarders
	Routed      float64 // bytes/s through routers, which know no direction
	Meta        float64 // metadata operations/s
	Waiting     float64 // requests that wait at forwarders
	P50, P95    float64 // of the time that an operation took its client, s
}

// Wait is how long the clients of a forwarder wait, or messages are in a router.
type Wait struct {
	Took float64 // mean of their operations, s; NaN without one
	// Slow is how many times as long as on its peers at the same load operations take, by the slowest class, lately: by
	// the forwarder's own clock where it reports one, else by its clients'. NaN where nothing can be compared.
	Slow  float64
	Class failslow.Class // the slowest
	// Routed says that Took is of messages through a router, which knows no clients' operations.
	Routed bool
}

// trend is the newest past of the layer. It is guarded by the detectors' mutex.
type trend struct {
	newest  int64 // Unix second
	seconds [trendSeconds]Second
	waits   map[topology.ForwarderID]*[waitSeconds]Wait
	took    [tookSteps]float64 // operations of this second by how long they took
	jobs    map[topology.JobID]*jobTrend
}

// The steps of the distribution of how long operations take: 10 us and 8 % more a step reach 100 s.
const (
	tookSteps = 210
	tookLeast = 1e-5
	tookStep  = 0.077 // log
)

func newTrend() trend {
	return trend{waits: map[topology.ForwarderID]*[waitSeconds]Wait{}, jobs: map[topology.JobID]*jobTrend{}}
}

// count takes operations of a client.
func (t *trend) count(ops, seconds float64) {
	if ops > 0 && seconds > 0 {
		i := int(math.Log(seconds/ops/tookLeast) / tookStep)
		t.took[max(0, min(tookSteps-1, i))] += ops
	}
}

// part is the time below which a share of the second's operations were.
func (t *trend) part(share float64) float64 {
	all := 0.0
	for _, n := range t.took {
		all += n
	}
	if all == 0 {
		return math.NaN()
	}
	below := 0.0
	for i, n := range t.took {
		if below += n; below >= share*all {
			return tookLeast * math.Exp((float64(i)+0.5)*tookStep)
		}
	}
	return math.NaN()
}

// advance empties the seconds between the newest one and that at now.
func (t *trend) advance(now int64) {
	nan := math.NaN()
	for s := max(t.newest+1, now-trendSeconds+1); s <= now; s++ {
		t.seconds[s%trendSeconds] = Second{nan, nan, nan, nan, nan, nan, nan}
		for _, w := range t.waits {
			w[s%waitSeconds] = Wait{Took: nan, Slow: nan}
		}
	}
	t.newest = max(t.newest, now)
}

// savedTrend is a trend that outlives a restart: the layer's seconds, and each forwarder's in steps of TrendStep.
type savedTrend struct {
	Newest  int64
	Seconds []Second // trendSeconds of them up to the newest one
	Waits   map[topology.ForwarderID]savedWaits
}

// savedWaits are the steps of a forwarder up to that of the newest second.
type savedWaits struct{ Took, Slow []float32 }

func (t *trend) save() savedTrend {
	s := savedTrend{Newest: t.newest, Waits: make(map[topology.ForwarderID]savedWaits, len(t.waits))}
	for i := t.newest - trendSeconds + 1; i <= t.newest; i++ {
		s.Seconds = append(s.Seconds, t.seconds[max(i, 0)%trendSeconds])
	}
	for id, w := range t.waits {
		var v savedWaits
		for from := t.newest - waitSeconds + 1; from <= t.newest; from += TrendStep {
			m := meanWait(w, from, from+TrendStep-1)
			v.Took, v.Slow = append(v.Took, float32(m.Took)), append(v.Slow, float32(m.Slow))
		}
		s.Waits[id] = v
	}
	return s
}

// load goes on from a saved trend; one that was not saved, or not as this one is, changes nothing.
func (t *trend) load(s savedTrend) {
	if s.Newest <= t.newest || len(s.Seconds) != trendSeconds {
		return
	}
	t.advance(s.Newest)
	for i, v := range s.Seconds {
		t.seconds[max(s.Newest-trendSeconds+1+int64(i), 0)%trendSeconds] = v
	}
	for id, v := range s.Waits {
		w := noWaits()
		t.waits[id] = w
		for i := range min(len(v.Took), len(v.Slow), waitSeconds/TrendStep) {
			from := s.Newest - waitSeconds + 1 + int64(i)*TrendStep
			for at := from; at < from+TrendStep; at++ {
				w[max(at, 0)%waitSeconds] = Wait{Took: float64(v.Took[i]), Slow: float64(v.Slow[i])}
			}
		}
	}
}

func noWaits() *[waitSeconds]Wait {
	w := new([waitSeconds]Wait)
	for k := range w {
		w[k] = Wait{Took: math.NaN(), Slow: math.NaN()}
	}
	return w
}

// takeTrend adds the newest second to the past; called after the detectors have judged it.
func (d *Detectors) takeTrend(now time.Time) {
	t := &d.trend
	at := now.Unix()
	t.advance(at)
	sec := &t.seconds[at%trendSeconds]
	add := func(to *float64, v float64) {
		if math.IsNaN(*to) {
			*to = 0
		}
		*to += v
	}
	for i := range d.second.rows {
		o := &d.second.rows[i]
		add(&sec.Read, o.Class[failslow.Read].Bytes)
		add(&sec.Write, o.Class[failslow.Write].Bytes)
		add(&sec.Meta, o.Class[failslow.Meta].Ops)
		if !math.IsNaN(o.QueueLen) {
			add(&sec.Waiting, o.QueueLen)
		}
		id := topology.ForwarderID(o.Node)
		w := t.waits[id]
		if w == nil {
			w = noWaits()
			t.waits[id] = w
		}
		w[at%waitSeconds] = d.wait(id)
	}
	for i := range d.routers.rows {
		r := &d.routers.rows[i]
		add(&sec.Routed, r.Bytes)
		add(&sec.Waiting, r.NoBuffer)
		for _, n := range r.Waiting {
			add(&sec.Waiting, n)
		}
	}
	t.transit(d.routers.rows, at)
	sec.P50, sec.P95 = t.part(0.5), t.part(0.95)
	clear(t.took[:])
}

// transit notes how long messages took through each router, and how many times as long lately as through its group's.
func (t *trend) transit(rows []layout.Router, at int64) {
	lasts := make([]float64, len(rows))
	for i := range rows {
		id := topology.ForwarderID(rows[i].Node)
		w := t.waits[id]
		if w == nil {
			w = noWaits()
			t.waits[id] = w
		}
		one := Wait{Took: rows[i].Inside / rows[i].Messages, Slow: math.NaN(), Routed: true}
		if math.IsInf(one.Took, 0) {
			one.Took = math.NaN() // messages are inside and none left
		}
		w[at%waitSeconds] = one
		lasts[i] = meanWait(w, at-lately+1, at).Took
	}
	var others []float64
	for i := range rows {
		others = others[:0]
		for k := range rows {
			if k != i && rows[k].Group == rows[i].Group && lasts[k] > 0 {
				others = append(others, lasts[k])
			}
		}
		if len(others) > 0 && lasts[i] > 0 {
			slices.Sort(others)
			t.waits[topology.ForwarderID(rows[i].Node)][at%waitSeconds].Slow = lasts[i] / others[len(others)/2]
		}
	}
}

// wait is how long the clients of a forwarder waited in the newest second, and how slow it was for its load.
func (d *Detectors) wait(id topology.ForwarderID) Wait {
	w := Wait{Took: math.NaN(), Slow: math.NaN()}
	sums := d.clients.of[id]
	if sums == nil {
		return w
	}
	ops, took := 0.0, 0.0
	for c := range sums.ops {
		ops += sums.ops[c]
		took += sums.took[c]
	}
	if ops > 0 {
		w.Took = took / ops
	} else if sums.waits.stuck > 0 {
		w.Took = sums.waits.oldest // at least so long
	}
	ratios := ratiosOf(d, id.Node())
	if l := &d.clients.links; l.doubted[id.Node()] {
		for c, r := range l.test.Ratio(id.Node()) {
			ratios[c] = max(ratios[c], r) // the sentence is of the way, of which its own clock knows nothing
		}
	}
	only := accused(d.second.verdicts, id.Node())
	for c, r := range ratios {
		if r > 0 && sums.ops[c] > 0 && !(w.Slow >= r) && (only == "" || only == failslow.Class(c).String()) {
			w.Slow, w.Class = r, failslow.Class(c)
		}
	}
	return w
}

// accused is the class of operations at which a forwarder is judged slow in the newest second; "" of none or several.
// How slow it is shown beside that sentence must not be of others.
func accused(verdicts []anomaly.Verdict, id topology.NodeID) string {
	for i := range verdicts {
		if v := &verdicts[i]; v.Node == id && v.Kind == anomaly.FailSlow && v.Level >= anomaly.Doubt {
			return v.Class
		}
	}
	return ""
}

// lately is over how many seconds the numbers beside a trend are meant: I/O comes in bursts.
const lately = 10

// Trend is the layer's past in steps, the oldest first, and when the newest step ended; now is the mean of the last
// ten seconds.
func (d *Detectors) Trend() (steps []Second, now Second, end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.trend
	if t.newest == 0 { // nothing is known before the first second, which is not 0
		return nil, t.mean(1, 0), time.Time{}
	}
	last := t.newest - t.newest%TrendStep // steps do not move with the seconds
	for s := last - trendSeconds + TrendStep; s <= last-TrendStep; s += TrendStep {
		steps = append(steps, t.mean(s+1, s+TrendStep))
	}
	return steps, t.mean(t.newest-lately+1, t.newest), time.Unix(last, 0)
}

// mean is that of the known seconds from..to.
func (t *trend) mean(from, to int64) Second {
	var sum, n [7]float64
	for s := max(from, 0); s <= to; s++ {
		v := &t.seconds[s%trendSeconds]
		for i, x := range [...]float64{v.Read, v.Write, v.Routed, v.Meta, v.Waiting, v.P50, v.P95} {
			if !math.IsNaN(x) {
				sum[i] += x
				n[i]++
			}
		}
	}
	m := func(i int) float64 { return sum[i] / n[i] } // NaN of none
	return Second{m(0), m(1), m(2), m(3), m(4), m(5), m(6)}
}

// Waits are each forwarder's last minutes in steps, the oldest first, with the mean of the last ten seconds at the end.
func (d *Detectors) Waits() map[topology.ForwarderID][]Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.trend
	last := t.newest - t.newest%TrendStep
	out := make(map[topology.ForwarderID][]Wait, len(t.waits))
	for id, w := range t.waits {
		steps := make([]Wait, 0, waitSeconds/TrendStep)
		for s := last - waitSeconds + TrendStep; s <= last-TrendStep; s += TrendStep {
			steps = append(steps, meanWait(w, s+1, s+TrendStep))
		}
		out[id] = append(steps, meanWait(w, t.newest-lately+1, t.newest))
	}
	return out
}

// Now is each forwarder's mean of the last ten seconds.
func (d *Detectors) Now() map[topology.ForwarderID]Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[topology.ForwarderID]Wait, len(d.trend.waits))
	for id, w := range d.trend.waits {
		out[id] = meanWait(w, d.trend.newest-lately+1, d.trend.newest)
	}
	return out
}

// meanWait is the mean of what took time, and the newest ratio, which is smoothed already.
func meanWait(w *[waitSeconds]Wait, from, to int64) Wait {
	m := Wait{Took: math.NaN(), Slow: math.NaN()}
	sum, n := 0.0, 0.0
	for s := max(from, 0); s <= to; s++ {
		v := &w[s%waitSeconds]
		if !math.IsNaN(v.Took) {
			sum += v.Took
			n++
		}
		if !math.IsNaN(v.Slow) {
			m.Slow, m.Class = v.Slow, v.Class
		}
		m.Routed = m.Routed || v.Routed
	}
	if n > 0 {
		m.Took = sum / n
	}
	return m
}

// counted notes how long the operations of a compute node's second took.
func (t *trend) counted(f *collector.Frame) {
	for _, m := range classOf {
		if ops, took, ok := spent(f.Samples, m.ops, m.client); ok {
			t.count(ops, took)
		}
	}
}
