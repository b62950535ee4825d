package watch

import (
	"math"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// trendSeconds is how much of the layer's past is kept, waitSeconds how much of each forwarder's.
	trendSeconds = 15 * 60
	waitSeconds  = 5 * 60
	// TrendStep is the step of what Trend returns, seconds.
	TrendStep = 5
	// lately is over how many seconds the numbers beside a trend are meant: I/O comes in bursts.
	lately = 10
)

// past is the newest of some values in steps of TrendStep seconds. Its fields are saved.
type past struct {
	Newest int64   // step: Unix seconds / TrendStep
	Steps  [][]sum // a ring; a row has a sum a value
}

// sum is of the seconds of a step in which a value was known.
type sum struct{ Sum, N float32 }

func newPast(seconds int) *past { return &past{Steps: make([][]sum, seconds/TrendStep)} }

func (p *past) row(step int64) *[]sum { return &p.Steps[step%int64(len(p.Steps))] }

// add takes a second's values; NaN: not known. After a clock that was set back the past begins anew.
func (p *past) add(second int64, values ...float64) {
	step := second / TrendStep
	if step < p.Newest {
		clear(p.Steps)
		p.Newest = step
	}
	for s := max(p.Newest+1, step-int64(len(p.Steps))+1); s <= step; s++ {
		clear(*p.row(s))
	}
	p.Newest = step
	row := p.row(step)
	if *row == nil {
		*row = make([]sum, len(values))
	}
	for i, v := range values {
		if !math.IsNaN(v) {
			(*row)[i].Sum, (*row)[i].N = (*row)[i].Sum+float32(v), (*row)[i].N+1
		}
	}
}

// mean is that of a value in the known seconds of the steps from..to; NaN of none.
func (p *past) mean(value int, from, to int64) float64 {
	sum, n := p.sum(value, from, to)
	return sum / n
}

// sum is that of a value in the steps from..to, and in how many seconds it was known.
func (p *past) sum(value int, from, to int64) (sum, n float64) {
	for s := max(from, p.Newest-int64(len(p.Steps))+1, 0); s <= min(to, p.Newest); s++ {
		if row := *p.row(s); row != nil {
			sum, n = sum+float64(row[value].Sum), n+float64(row[value].N)
		}
	}
	return sum, n
}

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
	newest int64 // Unix second
	layer  *past // as Second
	waits  map[topology.ForwarderID]*waitPast
	took   [tookSteps]float64 // operations of this second by how long they took
	jobs   map[topology.JobID]*jobTrend
}

// waitPast is a forwarder's: how long its clients waited, and how slow it was.
type waitPast struct {
	Past  *past
	known Wait // the newest known Slow
	at    int64
}

// The steps of the distribution of how long operations take: 10 us and 8 % more a step reach 100 s.
const (
	tookSteps = 210
	tookLeast = 1e-5
	tookStep  = 0.077 // log
)

func newTrend() trend {
	return trend{layer: newPast(trendSeconds), waits: map[topology.ForwarderID]*waitPast{},
		jobs: map[topology.JobID]*jobTrend{}}
}

// part is the time below which a share of the second's operations were.
func (t *trend) part(share float64) float64 {
	all := 0.0
	for _, n := range t.took {
		all += n
	}
	below := 0.0
	for i, n := range t.took {
		if below += n; n > 0 && below >= share*all {
			return tookLeast * math.Exp((float64(i)+0.5)*tookStep)
		}
	}
	return math.NaN()
}

// takeTrend adds the newest second to the past; called after the detectors have judged it.
func (d *Detectors) takeTrend(now time.Time) {
	t := &d.trend
	t.newest = max(t.newest, now.Unix())
	nan := math.NaN()
	sec := Second{nan, nan, nan, nan, nan, t.part(0.5), t.part(0.95)}
	clear(t.took[:])
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
		t.wait(id, d.wait(id))
	}
	for i := range d.routers.rows {
		r := &d.routers.rows[i]
		add(&sec.Routed, r.Bytes)
		add(&sec.Waiting, r.NoBuffer)
		for _, n := range r.Waiting {
			add(&sec.Waiting, n)
		}
		took := r.Inside / r.Messages
		if math.IsInf(took, 0) { // messages are inside and none left
			took = nan
		}
		t.wait(topology.ForwarderID(r.Node), Wait{Took: took, Slow: d.routers.group.Ratio(r.Node), Routed: true})
	}
	t.layer.add(t.newest, sec.Read, sec.Write, sec.Routed, sec.Meta, sec.Waiting, sec.P50, sec.P95)
}

// wait adds a forwarder's newest second.
func (t *trend) wait(id topology.ForwarderID, one Wait) {
	w := t.waits[id]
	if w == nil {
		w = &waitPast{Past: newPast(waitSeconds)}
		t.waits[id] = w
	}
	w.Past.add(t.newest, one.Took, one.Slow)
	if w.known.Routed = one.Routed; !math.IsNaN(one.Slow) {
		w.known, w.at = one, t.newest
	}
}

// wait is how long the clients of a forwarder waited in the newest second, and how slow it was for its load.
func (d *Detectors) wait(id topology.ForwarderID) Wait {
	w := Wait{Took: math.NaN(), Slow: math.NaN()}
	sums := d.clients.of[id]
	if sums == nil {
		return w
	}
	w.Took = sums.meanWait()
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

// Trend is the layer's past in steps, the oldest first, and when the newest ended; now is the mean of the last ones.
func (d *Detectors) Trend() (steps []Second, now Second, end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.trend
	if t.newest == 0 { // nothing is known before the first second, which is not 0
		return nil, t.mean(1, 0), time.Time{}
	}
	last := t.newest / TrendStep // steps do not move with the seconds
	for s := last - trendSeconds/TrendStep + 1; s < last; s++ {
		steps = append(steps, t.mean(s, s))
	}
	return steps, t.mean(last-lately/TrendStep+1, last), time.Unix(last*TrendStep, 0)
}

// mean is that of the known seconds of the steps from..to.
func (t *trend) mean(from, to int64) Second {
	m := func(i int) float64 { return t.layer.mean(i, from, to) }
	return Second{m(0), m(1), m(2), m(3), m(4), m(5), m(6)}
}

// Waits are each forwarder's last minutes in steps, the oldest first.
func (d *Detectors) Waits() map[topology.ForwarderID][]Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.trend.newest / TrendStep
	out := make(map[topology.ForwarderID][]Wait, len(d.trend.waits))
	for id, w := range d.trend.waits {
		for s := last - waitSeconds/TrendStep + 1; s < last; s++ {
			out[id] = append(out[id], Wait{Took: w.Past.mean(0, s, s), Slow: w.Past.mean(1, s, s)})
		}
	}
	return out
}

// Now is each forwarder's mean of the last seconds, and how slow it was in the newest of them.
func (d *Detectors) Now() map[topology.ForwarderID]Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.trend.newest / TrendStep
	out := make(map[topology.ForwarderID]Wait, len(d.trend.waits))
	for id, w := range d.trend.waits {
		now := w.known
		if now.Took = w.Past.mean(0, last-lately/TrendStep+1, last); w.at <= d.trend.newest-lately {
			now.Slow = math.NaN()
		}
		out[id] = now
	}
	return out
}

// counted notes how long the operations of a compute node's second took.
func (t *trend) counted(f *collector.Frame) {
	for _, m := range classOf {
		if ops, took, ok := spent(f.Samples, m.ops, m.client); ok && took > 0 {
			i := int(math.Log(took/ops/tookLeast) / tookStep)
			t.took[max(0, min(tookSteps-1, i))] += ops
		}
	}
}
