package backtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// sim is one replay.
type sim struct {
	m      Machine
	limits dfra.Config
	policy Policy
	jobs   []*job
	events []event

	nodes  freeNodes
	names  []topology.ForwarderID
	index  map[topology.ForwarderID]int
	fwds   []forwarder
	latest map[history.Key]*known
	looks  int

	usage
	failed  map[string]int // decisions by the test that failed first
	checked int            // predictions that could be checked, and those that were right
	right   int
}

// usage counts the forwarders in use.
type usage struct {
	used     int // forwarders with a job now
	peak     int
	usedTime float64 // forwarder-seconds
	last     time.Time
}

// forwarder is one forwarder during the replay.
type forwarder struct {
	users []*job
	alone bool // dedicated
	slow  bool
	// load is the sum of its users' parts of its time: what a user asks of it, over its runtime and
	// bandwidth. total is load over time up to last.
	load, total float64
	last        time.Time
}

// known is what the history has of one key.
type known struct {
	run   *job
	depth int
}

func newSim(m Machine, limits dfra.Config, p Policy) *sim {
	limits.FwdPeakBW, limits.CNPeakBW = m.FwdBW, m.CNBW
	s := &sim{m: m, limits: limits, policy: p, nodes: freeNodes{{0, m.Compute}}, index: map[topology.ForwarderID]int{},
		fwds: make([]forwarder, m.Forwarders), latest: map[history.Key]*known{}, failed: map[string]int{}}
	for i := range s.fwds {
		name := topology.ForwarderID(fmt.Sprintf("fwd%03d", i))
		s.names = append(s.names, name)
		s.index[name] = i
	}
	for i := range m.Slow {
		s.fwds[i*m.mapped()/m.Slow].slow = true
	}
	return s
}

// play goes through the events.
func (s *sim) play() {
	s.last = s.events[0].at
	for i := range s.events {
		e := &s.events[i]
		s.usedTime += float64(s.used) * e.at.Sub(s.last).Seconds()
		s.last = e.at
		if e.start {
			s.start(e.job, s.events[i+1:])
		} else if e.job.placed {
			s.end(e.job)
		}
	}
}

func (s *sim) start(j *job, later []event) {
	if k := s.latest[j.run.Key()]; k != nil {
		j.seen, j.depth = k.run.past, k.depth
	}
	if j.blocks, j.placed = s.nodes.take(j.run.Nodes); !j.placed {
		return
	}
	s.mapByDefault(j)
	if s.policy.Decide != nil {
		s.decide(j, later)
	}
	for i := range j.on {
		sh := &j.on[i]
		f := &s.fwds[sh.fwd]
		f.pass(s.last)
		sh.then = f.total
		f.load += s.asks(j, sh)
		f.alone = f.alone || j.alone
		if f.users = append(f.users, j); len(f.users) == 1 {
			s.used++
		}
	}
	s.peak = max(s.peak, s.used)
}

// end frees what the job had, works out its expected I/O time and teaches the history.
func (s *sim) end(j *job) {
	for i := range j.on {
		sh := &j.on[i]
		f := &s.fwds[sh.fwd]
		f.pass(s.last)
		asks := s.asks(j, sh)
		others := max(0, (f.total-sh.then)/j.lasts()-asks)
		j.seconds = max(j.seconds, s.passes(j, sh, others))
		f.load -= asks
		f.alone = f.alone && !j.alone
		f.users = slices.DeleteFunc(f.users, func(o *job) bool { return o == j })
		if len(f.users) == 0 {
			s.used--
			f.load = 0 // no rounding errors are kept
		}
	}
	if j.past != nil {
		if n := j.past.IONodes * s.m.CNBW; n > 0 {
			j.seconds = max(j.seconds, j.past.VolumeBytes/n)
		}
		s.learn(j)
	}
	s.nodes.give(j.blocks)
}

func (s *sim) learn(j *job) {
	k := s.latest[j.run.Key()]
	if k == nil {
		k = &known{}
		s.latest[j.run.Key()] = k
	} else {
		s.checked++
		if history.Hit(k.run.run.Profile, j.run.Profile) {
			s.right++
		}
	}
	k.run = j
	k.depth++
}

func (j *job) lasts() float64 { return j.end.Sub(j.run.Start).Seconds() }

// pass brings the load over time up to now.
func (f *forwarder) pass(now time.Time) {
	f.total += f.load * now.Sub(f.last).Seconds()
	f.last = now
}

// bandwidth of a forwarder, bytes/s.
func (s *sim) bandwidth(f int) float64 {
	if s.fwds[f].slow {
		return s.m.FwdBW * s.m.SlowShare
	}
	return s.m.FwdBW
}

// asks is the part of a forwarder's time that a job takes over its runtime, 0..1.
func (s *sim) asks(j *job, sh *share) float64 {
	if j.past == nil {
		return 0
	}
	return min(1, j.past.VolumeBytes*sh.part/(s.bandwidth(sh.fwd)*j.lasts()))
}

// passes is the expected time for the job's part of a forwarder: its bandwidth is shared with the
// others, each for the part of the time in which it does I/O.
func (s *sim) passes(j *job, sh *share, others float64) float64 {
	if j.past == nil {
		return 0
	}
	return j.past.VolumeBytes * sh.part * (1 + others) / s.bandwidth(sh.fwd)
}

// mapByDefault puts a job's nodes on the forwarders of the fixed mapping.
func (s *sim) mapByDefault(j *job) {
	ratio := cmp.Or(s.policy.RoundRobin, s.m.DefaultRatio)
	for _, b := range j.blocks {
		for from, end := b.from, b.from+b.n; from < end; {
			group := from / ratio
			to := min(end, (group+1)*ratio)
			j.use(group%s.m.Forwarders, float64(to-from)/float64(j.run.Nodes))
			from = to
		}
	}
}

// decide asks the policy, and moves the job's nodes as the daemon would.
func (s *sim) decide(j *job, later []event) {
	c := s.caseOf(j)
	if s.policy.Arbitrates {
		for i := range later {
			o := later[i].job
			if later[i].at.Sub(s.last) > dispatch.TogetherFor || len(c.Rivals) == dispatch.TogetherMost {
				break
			}
			if k := s.latest[o.run.Key()]; later[i].start && k != nil {
				// Its nodes are not known yet: as many forwarders as they need at least.
				r := dfra.Rival{Job: s.jobOf(o), History: []dfra.Run{*k.run.past}}
				c.Rivals = append(c.Rivals, r)
			}
		}
	}
	d := s.policy.Decide(c)
	if d.FirstFailed != nil {
		s.failed[*d.FirstFailed]++
	}
	j.action = d.Action
	if d.Action != dfra.Default {
		j.granted, j.alone = true, true
		j.on = j.on[:0]
		for _, f := range d.Forwarders {
			j.on = append(j.on, share{fwd: s.index[f], part: 1 / float64(len(d.Forwarders))})
		}
		return
	}
	was := j.on
	j.on = nil
	for i, f := range d.Forwarders {
		to := s.index[f]
		if s.fwds[to].alone {
			to = s.quietest()
		}
		j.granted = j.granted || to != was[i].fwd
		j.use(to, was[i].part)
	}
}

// use gives a part of the job's nodes to a forwarder.
func (j *job) use(fwd int, part float64) {
	if i := slices.IndexFunc(j.on, func(x share) bool { return x.fwd == fwd }); i >= 0 {
		j.on[i].part += part
		return
	}
	j.on = append(j.on, share{fwd: fwd, part: part})
}

func (s *sim) jobOf(j *job) dfra.Job {
	return dfra.Job{App: j.run.App, User: j.run.User, Project: j.run.Project, Nodes: dfra.NodeCount(j.run.Nodes)}
}

// caseOf is what the policy may know when the job starts.
func (s *sim) caseOf(j *job) dfra.Case {
	c := dfra.Case{Config: s.limits, Job: s.jobOf(j), Depth: j.depth}
	if j.seen != nil {
		c.History = []dfra.Run{*j.seen}
	}
	s.looks++
	for _, sh := range j.on {
		f := &s.fwds[sh.fwd]
		c.Job.DefaultForwarders = append(c.Job.DefaultForwarders, s.names[sh.fwd])
		if f.slow || f.alone {
			c.Forwarders.Anomalous = append(c.Forwarders.Anomalous, s.names[sh.fwd])
		}
		for _, o := range f.users {
			if o.mark == s.looks || o.seen == nil {
				continue
			}
			o.mark = s.looks
			c.Neighbours = append(c.Neighbours, dfra.Neighbour{Job: o.run.Job, Forwarders: s.names[sh.fwd : sh.fwd+1],
				History: o.seen})
		}
	}
	// Spare ones first: nobody comes to them by default.
	for _, r := range [2][2]int{{s.m.mapped(), s.m.Forwarders}, {0, s.m.mapped()}} {
		for f := r[0]; f < r[1]; f++ {
			if len(s.fwds[f].users) == 0 && !s.fwds[f].slow &&
				!slices.ContainsFunc(j.on, func(x share) bool { return x.fwd == f }) {
				c.Forwarders.Idle = append(c.Forwarders.Idle, s.names[f])
			}
		}
	}
	return c
}

// quietest is the forwarder that asks least of the jobs on it among those nobody has alone.
func (s *sim) quietest() int {
	best, least := 0, math.Inf(1)
	for i := range s.fwds {
		if f := &s.fwds[i]; !f.alone && !f.slow && f.load < least {
			best, least = i, f.load
		}
	}
	return best
}

// block is a range of compute nodes.
type block struct{ from, n int }

// freeNodes are the free compute nodes as ranges in order.
type freeNodes []block

// take finds n nodes, the first that come.
func (f *freeNodes) take(n int) (got []block, ok bool) {
	free := *f
	have, i := 0, 0
	for ; i < len(free) && have < n; i++ {
		have += free[i].n
	}
	if have < n {
		return nil, false
	}
	got = slices.Clone(free[:i])
	if over := have - n; over > 0 {
		last := &got[i-1]
		last.n -= over
		i--
		free[i] = block{last.from + last.n, over}
	}
	*f = slices.Delete(free, 0, i)
	return got, true
}

// give returns nodes and joins them with their neighbours.
func (f *freeNodes) give(back []block) {
	for _, b := range back {
		free := *f
		i, _ := slices.BinarySearchFunc(free, b, func(x, y block) int { return x.from - y.from })
		if i > 0 && free[i-1].from+free[i-1].n == b.from {
			i--
			free[i].n += b.n
		} else {
			free = slices.Insert(free, i, b)
		}
		if i+1 < len(free) && free[i].from+free[i].n == free[i+1].from {
			free[i].n += free[i+1].n
			free = slices.Delete(free, i+1, i+2)
		}
		*f = free
	}
}
