package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// drawn is a fault of the first of six forwarders, and who asks them.
type drawn struct {
	kind  string  // what is slow
	times float64 // as slow, in its own unit
	nodes int     // of compute nodes behind each forwarder
	burst int     // requests in a row, then none until the period is over; 0: all the time
	alone bool    // the jobs behind it ask nobody else
	clock bool    // forwarders time their service
	took  float64 // by a healthy request, seconds
	seed  uint64
}

func (d drawn) String() string {
	return fmt.Sprintf("%s %.1f, %d nodes, bursts of %d, alone %v, clock %v, %.1f ms", d.kind, d.times, d.nodes,
		d.burst, d.alone, d.clock, 1e3*d.took)
}

const (
	forwardersThere = 6
	threadsThere    = 16
	faultAt         = 100 // s
	period          = 4 * time.Second
	blockBytes      = 128 << 10
)

// forwarding is a forwarder of the model: requests that wait, threads, and what is slow.
type forwarding struct {
	*model.Engine
	*rand.Rand
	drawn
	ill     bool
	busy    int
	queue   []func()
	line    model.Line
	used    time.Duration // processor time taken, as if it was there all the time
	ops     [3]float64
	exec    [3]float64 // seconds in service
	waiting [3]float64
}

// share is the part of each tenth of a second in which a starved forwarder has a processor.
func (s *forwarding) share() time.Duration {
	return time.Duration(float64(100*time.Millisecond) / s.times)
}

// takes is when a request that begins now is done.
func (s *forwarding) takes(class int) time.Duration {
	need := time.Duration(s.took * math.Exp(0.3*s.NormFloat64()) * float64(time.Second))
	if class == collector.ClassMeta {
		need /= 2
	}
	slow := time.Duration(s.times * float64(need))
	switch data := class != collector.ClassMeta; {
	case !s.ill:
	case s.kind == "rate" && data:
		return s.line.Serve(s.Now(), slow)
	case s.kind == "delay" && data:
		need += time.Duration((s.times - 1) * s.took * float64(time.Second))
	case s.kind == "disk" && data:
		if need = slow / 2; s.IntN(20) == 0 {
			need = 11 * slow
		}
	case s.kind == "processor":
		const tenth = 100 * time.Millisecond
		had := s.Now()/tenth*s.share() + min(s.Now()%tenth, s.share())
		s.used = max(s.used, had) + need
		return s.used/s.share()*tenth + s.used%s.share()
	}
	return s.Now() + need
}

func (s *forwarding) ask(class int, done func()) {
	asked := s.Now()
	serve := func() {
		s.busy++
		begun := s.Now()
		s.At(s.takes(class), func() {
			s.ops[class]++
			s.exec[class] += (s.Now() - begun).Seconds()
			s.waiting[class] += (begun - asked).Seconds()
			if s.busy--; len(s.queue) > 0 {
				next := s.queue[0]
				s.queue = s.queue[1:]
				next()
			}
			done()
		})
	}
	if s.busy < threadsThere {
		serve()
	} else {
		s.queue = append(s.queue, serve)
	}
}

// asking is a compute node of the model, which has one request under way at most.
type asking struct {
	id        topology.NodeID
	at        topology.ForwarderID
	job       topology.JobID
	by        *forwarding
	since     time.Duration // of the request under way; negative: none is
	counted   time.Duration // until when it is in underWay
	underWay  float64       // seconds
	ops, took [3]float64    // of this second
	all       [3][2][2]float64
	left      int // of the burst
}

// live asks one request after another.
func (a *asking) live() {
	e := a.by
	class := []int{collector.ClassRead, collector.ClassWrite, collector.ClassWrite, collector.ClassMeta}[e.IntN(4)]
	a.since, a.counted = e.Now(), e.Now()
	e.ask(class, func() {
		took := (e.Now() - a.since).Seconds()
		a.count(e.Now())
		a.since = -1
		a.ops[class]++
		a.took[class] += took
		after := 0
		if e.Now() >= faultAt*time.Second {
			after = 1
		}
		a.all[class][after][0]++
		a.all[class][after][1] += took
		rest := time.Duration(e.ExpFloat64() * float64(20*time.Millisecond))
		if a.left--; a.left == 0 {
			a.left = e.burst
			rest = period - e.Now()%period
		}
		e.After(rest, a.live)
	})
}

func (a *asking) count(now time.Duration) {
	if a.since >= 0 {
		a.underWay += (now - a.counted).Seconds()
		a.counted = now
	}
}

func (a *asking) frame(at int64, now time.Duration) collector.Frame {
	a.count(now)
	age := 0.0
	if a.since >= 0 {
		age = (now - a.since).Seconds()
	}
	all := samples(collector.InFlight, a.underWay, collector.RequestAge, age, collector.ReadBytes,
		blockBytes*a.ops[0], collector.WriteBytes, blockBytes*a.ops[1])
	for c, m := range classOf {
		all = append(all, samples(m.ops, a.ops[c])...)
		if a.ops[c] > 0 {
			all = append(all, samples(m.client, a.took[c]/a.ops[c])...)
		}
	}
	a.ops, a.took, a.underWay = [3]float64{}, [3]float64{}, 0
	return collector.Frame{Node: a.id, Role: topology.Compute, TimeMillis: at, Samples: all,
		Jobs: []collector.JobSamples{{Job: a.job, Samples: all}}}
}

func (s *forwarding) frame(id topology.ForwarderID, at int64) collector.Frame {
	all := samples(collector.ReadBytes, blockBytes*s.ops[0], collector.WriteBytes, blockBytes*s.ops[1],
		collector.QueueLen, float64(len(s.queue)), collector.InFlight, float64(len(s.queue)+s.busy))
	for c, m := range classOf {
		all = append(all, samples(m.ops, s.ops[c])...)
		if s.clock && s.ops[c] > 0 {
			all = append(all, samples(m.exec, s.exec[c]/s.ops[c], m.wait, s.waiting[c]/s.ops[c])...)
		}
	}
	s.ops, s.exec, s.waiting = [3]float64{}, [3]float64{}, [3]float64{}
	return collector.Frame{Node: id.Node(), Role: topology.Forwarder, TimeMillis: at, Samples: all}
}

// truth is how many times as long as at other forwarders, or before, the requests of the clients of the first took that
// ended until now, of the class that they waited longest for.
func (d drawn) truth(nodes []*asking) float64 {
	var own, others [3][2][2]float64
	for _, a := range nodes {
		to := &others
		if a.at == "f0" {
			to = &own
		}
		for c := range a.all {
			for after := range a.all[c] {
				to[c][after][0] += a.all[c][after][0]
				to[c][after][1] += a.all[c][after][1]
			}
		}
	}
	c := 0
	for i := range own {
		if own[i][1][1] > own[c][1][1] {
			c = i
		}
	}
	usual := others[c][1]
	if d.alone {
		usual = own[c][0]
	}
	return own[c][1][1] / own[c][1][0] / (usual[1] / usual[0])
}

// reported is what was shown of a drawn fault, and what was true, when it was confirmed and a while later.
type reported struct {
	found   bool
	after   int // seconds
	shown   [2]anomaly.Finding
	truth   [2]float64
	changes int
}

// play has a fault happen.
func (d drawn) play() (out reported) {
	engine, random := &model.Engine{}, rand.New(rand.NewPCG(d.seed, 30))
	board, start := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	detectors, m := NewDetectors(board, failslow.DefaultSettings()), &Machine{Mapping: topology.Mapping{}}
	track := anomaly.NewTracker(anomaly.DefaultSettings(), nil)
	var nodes []*asking
	forwarders := map[topology.ForwarderID]*forwarding{}
	jobs := map[topology.JobID][]topology.NodeID{}
	for f := range forwardersThere {
		id := topology.ForwarderID(fmt.Sprint("f", f))
		forwarders[id] = &forwarding{Engine: engine, Rand: random, drawn: d}
		for n := range d.nodes {
			a := &asking{id: topology.NodeID(fmt.Sprintf("cn%d.%d", f, n)), at: id, by: forwarders[id], since: -1,
				job: topology.JobID(fmt.Sprint(1 + n%2)), left: d.burst}
			if d.alone && f == 0 {
				a.job = "9"
			}
			m.Mapping[a.id] = id
			jobs[a.job] = append(jobs[a.job], a.id)
			nodes = append(nodes, a)
			engine.After(time.Duration(random.IntN(1000))*time.Millisecond, a.live)
		}
	}
	for id, of := range jobs {
		m.Jobs = append(m.Jobs, Job{ID: id, Nodes: of})
	}
	confirmed := 0
	for s := 1; s < faultAt+240; s++ {
		forwarders["f0"].ill = s > faultAt
		now, at := start.Add(time.Duration(s)*time.Second), start.Add(time.Duration(s-1)*time.Second).UnixMilli()
		engine.Run(time.Duration(s) * time.Second)
		var frames []collector.Frame
		for _, a := range nodes {
			frames = append(frames, a.frame(at, engine.Now()))
		}
		for id, f := range forwarders {
			frames = append(frames, f.frame(id, at))
		}
		board.Take(frames, now)
		track.Step(now, detectors.Verdicts(now, m), anomaly.Pool{Forwarders: forwardersThere, Healthy: forwardersThere})
		for _, f := range track.Findings(start) {
			if f.Node != "f0" || f.State != anomaly.Confirmed {
				continue
			}
			if !out.found {
				out.found, confirmed, out.after = true, s, s-faultAt
				out.shown[0], out.truth[0] = f, d.truth(nodes)
			}
			if f.Factor != out.shown[1].Factor {
				out.changes++
			}
			out.shown[1], out.truth[1] = f, d.truth(nodes)
		}
		if out.found && s >= confirmed+60 {
			break
		}
	}
	return out
}

// off is by how much a headline is wrong: 0.3 is 30 %. One that says at least is not, where it is true.
func off(f *anomaly.Finding, truth float64) float64 {
	if f.FactorAtLeast {
		return max(0, f.Factor/truth-1)
	}
	return math.Exp(math.Abs(math.Log(f.Factor/truth))) - 1
}

// TestAHeadlineIsTheClients draws faults of forwarders and holds what their findings say, at once and a minute later,
// against what the requests of their clients took: all but one of twenty within 30 %.
func TestAHeadlineIsTheClients(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 30))
	right, shown := 0, 0
	for i := range 40 {
		d := drawn{kind: []string{"rate", "delay", "processor", "disk"}[i%4], times: math.Exp(math.Log(1.5) +
			r.Float64()*math.Log(60/1.5)), nodes: []int{1, 2, 6}[r.IntN(3)], burst: []int{0, 0, 60}[r.IntN(3)],
			alone: r.IntN(6) == 0, clock: r.IntN(4) == 0, took: 0.5e-3 * math.Exp(2*r.Float64()), seed: uint64(i)}
		got := d.play()
		if !got.found {
			t.Logf("%s: not found", d)
			continue
		}
		for k := range got.shown {
			f := &got.shown[k]
			wrong := off(f, got.truth[k])
			if shown++; wrong <= 0.3 {
				right++
			}
			t.Logf("%s: %s %s at %d s, its clients %.1fx: off by %.0f %%", d, f.Headline(), f.Class, got.after+60*k,
				got.truth[k], 100*wrong)
		}
		if got.changes > 3 { // the first among them
			t.Errorf("%s: its headline changed %d times", d, got.changes-1)
		}
	}
	if t.Logf("%d of %d headlines within 30 %%", right, shown); 20*right < 19*shown || shown < 50 {
		t.Errorf("%d of %d headlines are within 30 %% of what clients see", right, shown)
	}
}
