package watch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/compare"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
)

// Rules of forwarders that answer nothing.
const (
	// hangAge is the age of a request, seconds, that no queue explains while others are answered.
	hangAge = 4.0
	// hangNodes is how many of a forwarder's compute nodes must wait so long: one may be its own trouble.
	hangNodes = 2
	// hangSince is for how long it hangs at most, in words: what a request waited before then adds nothing.
	hangSince = time.Hour
	// answeredElsewhere is how many other forwarders must have answered in the second: else it is what is behind all.
	answeredElsewhere = 2
)

// waits are what the compute nodes of one forwarder wait for, of those that list their outstanding requests, and what
// it answers all of them: two nodes' word is not enough against a forwarder that others get answers from.
type waits struct {
	nodes, stuck int     // that wait for something, and for something older than hangAge
	oldest       float64 // seconds
	ended        float64 // operations in the second, of all its compute nodes
}

func (w *waits) take(f *collector.Frame, elsewhere bool) {
	for _, m := range classOf {
		w.ended += max(0, valueOr(f, m.ops, 0))
	}
	age, known := f.Value(collector.RequestAge)
	if !known || elsewhere {
		return
	}
	if age > 0 {
		w.nodes++
	}
	if age >= hangAge {
		w.stuck++
	}
	w.oldest = max(w.oldest, age)
}

// asked says through which forwarder a node asked what is not answered yet.
type asked map[topology.NodeID]*request

// request is a node's oldest one: when it began, and through which forwarder. Uses is the forwarder that the node uses,
// Seen the newest second in which it was seen there; Before is the one that it used until then, Left the last second in
// which it was seen there. Times are Unix seconds. It is saved.
type request struct {
	Began        float64
	By           topology.ForwarderID
	Uses, Before topology.ForwarderID
	Seen, Left   float64
}

const (
	// askedFrom is the age of a request, seconds, from which its forwarder is remembered.
	askedFrom = 1.0
	// askedWithin is how much the beginnings of one request differ that two seconds say, seconds.
	askedWithin = 1.5
)

// elsewhere reports whether a node's oldest request was asked of another forwarder than the one it uses now: a node
// that is moved off one that hangs may wait on for what it had asked of it, and that accuses nobody else. What it asked
// after the last second in which it was seen there counts for the new one: in the second of the move, or while the
// daemon was down, its first requests may have begun.
func (a asked) elsewhere(f *collector.Frame, by topology.ForwarderID) bool {
	age, known := f.Value(collector.RequestAge)
	if !known {
		return false
	}
	r, at := anomaly.Entry(a, f.Node), float64(f.TimeMillis)/1000
	if r.Uses != by {
		r.Before, r.Uses, r.Left = r.Uses, by, r.Seen
	}
	r.Seen = at
	if began := at - age; age >= askedFrom && math.Abs(began-r.Began) >= askedWithin {
		r.Began, r.By = began, by
		if began <= r.Left && r.Before != "" {
			r.By = r.Before
		}
	}
	return age >= askedFrom && r.By != by
}

// forget drops the nodes that have reported nothing for as long as anything may hang.
func (a asked) forget(now time.Time) {
	maps.DeleteFunc(a, func(_ topology.NodeID, r *request) bool {
		return float64(now.Unix())-r.Seen > hangSince.Seconds()
	})
}

// deadSilence is for how long neither its clients nor the daemon hear anything of a node that is dead, s.
const deadSilence = 20

// bury makes those dead of which nothing answers, neither their service nor their agent.
func (s *silence) bury(now time.Time, hung []anomaly.Verdict) []anomaly.Verdict {
	for i := range hung {
		v := &hung[i]
		if a, known := s.agents[v.Node]; known && now.Unix()-a.at >= deadSilence && v.Score >= deadSilence {
			v.Condition = anomaly.Dead
			v.Sentence += "; its agent does not answer either"
		}
	}
	return hung
}

// mute reports whether a node's agent, which reported before, has been silent for as long as a request waits that no
// queue explains.
func (s *silence) mute(now time.Time, n topology.NodeID) bool {
	a, known := s.agents[n]
	return known && float64(now.Unix()-a.at) >= hangAge
}

// hangs accuses forwarders that answer none of their compute nodes while others answer theirs. No statistics are
// needed: the age of a request is a fact. Against one whose agent says nothing either, one node's word and one other
// forwarder that answers are enough.
func (c *clients) hangs(now time.Time, mute func(time.Time, topology.NodeID) bool) (out []anomaly.Verdict) {
	answered := 0
	for _, sums := range c.of {
		if w := &sums.waits; w.ended > 0 && w.stuck == 0 {
			answered++
		}
	}
	for f, sums := range c.of {
		w := &sums.waits
		nodes, elsewhere := hangNodes, answeredElsewhere
		if mute(now, f.Node()) {
			nodes, elsewhere = 1, 1
		}
		if answered < elsewhere || w.stuck < nodes || 2*w.stuck < w.nodes || w.ended > 0 {
			continue
		}
		out = append(out, anomaly.Verdict{Node: f.Node(), Kind: anomaly.FailSlow, Level: anomaly.Alarm,
			Since:      now.Add(-time.Duration(min(w.oldest, hangSince.Seconds()) * float64(time.Second))).UTC(),
			Confidence: 0.95, Score: w.oldest, Model: "hang-1", Condition: anomaly.Hung,
			Evidence: map[string]float64{"request_age": w.oldest, "nodes_waiting": float64(w.stuck)},
			Sentence: fmt.Sprintf("%s answers nothing: %s %.0f s and longer for it, while %s", f,
				anomaly.CountedAs(w.stuck, "compute node waits", "compute nodes wait"), hangAge,
				anomaly.CountedAs(answered, "other forwarder answers", "other forwarders answer"))})
	}
	slices.SortFunc(out, func(a, b anomaly.Verdict) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// fullFrom is the share of its known peak, in one direction, at which a forwarder moves what it can: what its clients
// then wait for is each other. The peak of a link in a configuration file counts headers that nobody counts as bytes.
const fullFrom = 0.85

// full are the forwarders that were at their peak in the second before.
type full map[topology.NodeID]bool

// mark says of each row whether its forwarder is at its peak, or was a second ago: what was sent then is still on its
// way. Then nothing that its clients wait for counts against it, whichever direction is full and whatever they wait
// for: each operation crosses both, a read's request behind the bytes of writes and a write's answer behind those of
// reads. The forwarder's own service times are judged as ever. A forwarder that became slow no longer reaches its peak.
func (f full) mark(rows []failslow.Observation, peaks map[topology.NodeID]float64) {
	before := maps.Clone(f)
	clear(f)
	for i := range rows {
		o := &rows[i]
		o.Peak = peaks[o.Node]
		now := o.Peak > 0 && max(o.Class[failslow.Read].Bytes, o.Class[failslow.Write].Bytes) >= fullFrom*o.Peak
		if o.Full = now || before[o.Node]; now {
			f[o.Node] = true
		}
	}
}

const (
	// longWait is the age of a waiter of GPFS, seconds, from which a finding mentions it: those of a busy
	// node are shorter.
	longWait = 1.0
	// gpfsSource is the source whose note is what the longest waiter waits for.
	gpfsSource = "gpfs"
)

// waiters are the long waiters of GPFS on the forwarders, in the newest second. They accuse nobody: a node whose disks
// are slow has them, and so has one that is about to flush. They are what a finding says of the cause.
type waiters map[topology.NodeID]waiter

type waiter struct {
	age, disk float64 // seconds; disk of the longest that waits for one
	reason    string
}

func (w waiters) take(f *collector.Frame) {
	age := valueOr(f, collector.WaiterAge, 0)
	if age < longWait {
		return
	}
	of := waiter{age: age, disk: valueOr(f, collector.DiskWaiterAge, 0)}
	for i := range f.Sources {
		if f.Sources[i].Name == gpfsSource {
			of.reason = f.Sources[i].Note
		}
	}
	w[f.Node] = of
}

// explain adds to the causes of slow forwarders what these wait for.
func (w waiters) explain(verdicts []anomaly.Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		of, ok := w[v.Node]
		if !ok || v.Kind != anomaly.FailSlow || v.Level < anomaly.Doubt {
			continue
		}
		waits := fmt.Sprintf("its longest waiter in GPFS waits %.0f s", of.age)
		if of.reason != "" {
			waits += fmt.Sprintf(": '%s'", of.reason)
		}
		if of.disk == of.age {
			waits += ", which is for the disks behind it"
		}
		if v.Cause != "" && !strings.HasPrefix(v.Cause, notKnown) {
			waits = v.Cause + "; " + waits
		}
		v.Cause = waits
		v.Add(collector.WaiterAge.String(), of.age)
	}
}

// noteWaits gives each forwarder's verdict what its clients waited in this second, and a verdict without evidence to
// those that have none. It adds to what accuses a forwarder how long its clients' requests took, beside the median of
// the other forwarders'. Where no job is known it is the one thing that shows who suffers. What its own clock shows is
// less than clients wait where requests lie in its sockets: theirs counts, where the same jobs ask elsewhere, too.
// Where these wait for others just as long, nothing decides that it is slow: behind a back end that just became slow,
// who got its clients back a moment ago is held against others' seconds of before.
func (c *clients) noteWaits(clocked map[topology.NodeID]bool, verdicts []anomaly.Verdict) []anomaly.Verdict {
	waits := c.waited()
	for i := range verdicts {
		if v := &verdicts[i]; v.Kind == anomaly.FailSlow {
			v.Waits = waits[v.Node]
			delete(waits, v.Node)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(waits)) {
		verdicts = append(verdicts, anomaly.Verdict{Node: n, Kind: anomaly.FailSlow,
			Slowness: anomaly.Slowness{Waits: waits[n]}})
	}
	of := c.of
	took := map[topology.NodeID]float64{}
	for f, sums := range of {
		if t := sums.meanWait(); t >= 0 {
			took[f.Node()] = t
		}
	}
	all, compared := slices.Sorted(maps.Values(took)), map[topology.NodeID]*mateTimes{}
	for i := range verdicts {
		v := &verdicts[i]
		own, known := took[v.Node]
		if !known || v.Level < anomaly.Doubt || !v.Kind.Accuses() {
			continue
		}
		v.Add(anomaly.ClientsWait, own)
		if v.Kind == anomaly.FailSlow && !v.Fact() {
			second := besideMates(of, topology.ForwarderID(v.Node))
			if compared[v.Node] == nil {
				compared[v.Node] = c.beside[v.Node].next(&second)
			}
			lately := compared[v.Node]
			ratio, sure := lately.ratio(v.Class, leastMates), lately.ratio(v.Class, enoughMates) > 0
			if clocked[v.Node] { // what its clients see of one second is what its clock is compared with
				if r := cmp.Or(second.ratio(v.Class, leastMates), ratio); r >= anomaly.AmongPeers {
					v.Ratio = r
				}
			} else if sure || ratio >= anomaly.AmongPeers {
				v.Ratio = ratio // also where it is less than by the layer's medians
				lately.say(v)
			}
			if sure && ratio < anomaly.AmongPeers {
				v.Level = anomaly.Doubt
			}
		}
		if len(all) > 1 {
			v.Add(anomaly.PeersWait, compare.MedianOfOthers(all, own))
		}
	}
	c.beside = compared
	return verdicts
}

// waited is what the clients of each forwarder waited in this second, and as many nodes of their jobs elsewhere.
func (c *clients) waited() map[topology.NodeID]*anomaly.Waits {
	all, forwarders := map[topology.JobID]*jobSums{}, slices.Sorted(maps.Keys(c.of))
	for _, f := range forwarders {
		for name, job := range c.of[f].jobs {
			anomaly.Entry(all, name).count(job, 1)
		}
	}
	out := map[topology.NodeID]*anomaly.Waits{}
	for f, sums := range c.of {
		w := &anomaly.Waits{UnderWay: sums.underWay, Open: sums.open}
		for class := range w.All {
			w.All[class] = anomaly.Waited{Ops: sums.ops[class], Took: sums.took[class]}
		}
		for _, name := range slices.Sorted(maps.Keys(sums.jobs)) {
			job, mates := sums.jobs[name], *all[name]
			if mates.count(job, -1); mates.nodes < leastNodes {
				continue
			}
			for class, ops := range mates.ops {
				w.Beside[class].Add(anomaly.Waited{Ops: job.ops[class], Took: job.ended[class]}, 1)
				w.Mates[class].Add(anomaly.Waited{Ops: ops, Took: mates.ended[class]}, job.nodes/mates.nodes)
			}
		}
		if w.UnderWay > 0 || sums.ops != [3]float64{} {
			out[f.Node()] = w
		}
	}
	return out
}

// count adds the requests that ended of a job's nodes, so many times.
func (j *jobSums) count(o *jobSums, times float64) {
	j.nodes += times * o.nodes
	for c := range j.ops {
		j.ops[c], j.ended[c] = j.ops[c]+times*o.ops[c], j.ended[c]+times*o.ended[c]
	}
}

// mateTimes are mateTime by failslow.Class.
type mateTimes [3]mateTime

// mateTime is what requests took a forwarder's jobs, and what as many took the same jobs' nodes at other forwarders,
// seconds. Ops are of those asked as many as both have.
type mateTime struct{ took, usual, asked, ops float64 }

func (m mateTime) plus(o mateTime, weight float64) mateTime {
	return mateTime{m.took + weight*o.took, m.usual + weight*o.usual, m.asked + weight*o.asked, m.ops + weight*o.ops}
}

const (
	// leastMates is how many requests of a second make a ratio, enoughMates how many of the last seconds, by their
	// weight, show that nobody waits longer than elsewhere.
	leastMates, enoughMates = 5, 30
	// mateWeight is what a second weighs in the next one: three quarters of the weight lie in the last five seconds.
	mateWeight = 0.75
)

// besideMates compares the nodes of a forwarder's jobs with their mates elsewhere. All sums have one order, so that a
// replay adds up to the same digit.
func besideMates(of map[topology.ForwarderID]*clientSums, id topology.ForwarderID) (out mateTimes) {
	forwarders := slices.Sorted(maps.Keys(of))
	for _, name := range slices.Sorted(maps.Keys(of[id].jobs)) {
		job := of[id].jobs[name]
		var mates jobSums
		for _, other := range forwarders {
			if mate := of[other].jobs[name]; mate != nil && other != id {
				for c := range mates.ops {
					mates.ops[c], mates.ended[c] = mates.ops[c]+mate.ops[c], mates.ended[c]+mate.ended[c]
				}
			}
		}
		for c := range mates.ops {
			if mates.ops[c] > 0 && job.ops[c] > 0 {
				out[c] = out[c].plus(mateTime{job.ended[c], job.ops[c] * mates.ended[c] / mates.ops[c], job.ops[c],
					min(job.ops[c], mates.ops[c])}, 1)
			}
		}
	}
	return out
}

// say puts what requests of the class took that is named or waited longest for, and its mates', in the place of what
// was compared with a layer's medians.
func (m *mateTimes) say(v *anomaly.Verdict) {
	worst, most := m.class(v.Class), m.ratio(v.Class, leastMates)
	if most < anomaly.AmongPeers || v.Model != clientslow.Model || !strings.Contains(v.Sentence, " ms, peers ") ||
		strings.Contains(v.Sentence, " takes ") { // a loss of packets or a slow stat of its agent says more
		return
	}
	took, peers := m[worst].took/m[worst].asked, m[worst].usual/m[worst].asked
	others := v.Sentence[strings.IndexByte(v.Sentence+";", ';'):]
	v.Add("took_seconds", took)
	v.Add("peers_seconds", peers)
	v.Sentence = clientslow.Sentence(v.Node, worst, most, took, peers) + others
}

// next adds a second to the last ones, of which there may be none.
func (m *mateTimes) next(second *mateTimes) *mateTimes {
	out := *second
	if m != nil {
		for c := range out {
			out[c] = out[c].plus(m[c], mateWeight)
		}
	}
	return &out
}

// class is the one of a name, of no name the one that was waited longest for.
func (m *mateTimes) class(name string) (longest failslow.Class) {
	for c := failslow.Read; c <= failslow.Meta; c++ {
		if c.String() == name {
			return c
		}
		if m[c].took > m[longest].took {
			longest = c
		}
	}
	return longest
}

// ratio is how many times as long requests of a class took as the mates', as a ratio of sums; 0: fewer than so many
// were alike.
func (m *mateTimes) ratio(class string, least float64) float64 {
	one := m[m.class(class)]
	if !(one.usual > 0) || one.ops < least {
		return 0
	}
	return one.took / one.usual
}
