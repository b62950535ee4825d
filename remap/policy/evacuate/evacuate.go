// Package evacuate moves running jobs off forwarders that are slow, hung or dead, and back when those are well. It asks
// people, or acts where a rule of the site says so. What the jobs at the targets would lose is computed first and
// bounded.
package evacuate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Name is the policy's, in plans and their audit.
const Name = "evacuate"

// Case is everything a decision depends on.
type Case struct {
	Situation *remap.Situation
	Rules     []Rule
	// Acted counts by rule the plans that it approved in the last 24 hours.
	Acted map[string]int
	// Taken are forwarders that plans have dedicated or send nodes to.
	Taken map[topology.ForwarderID]bool
	// Waiting are the plans that wait for the nodes.
	Waiting map[topology.NodeID]*remap.Plan
	// Refused says who wants a job to stay behind a forwarder for as long as a finding lasts; empty: nobody.
	Refused func(f *anomaly.Finding, job topology.JobID) string
	// Demand is what a job's nodes move together when nothing holds them up, bytes/s; nil where that is not known.
	Demand func(*remap.Job) *float64
	// CanLimit says why a node keeps no limits, empty: it does; nil: none does. Limited are the limits in force or on
	// their way.
	CanLimit func(topology.NodeID) string
	Limited  map[remap.Subject]bool
	// Carried is the most that a forwarder of the site was seen to carry, bytes/s, where its peak is not set.
	Carried float64
}

// Proposal is a plan for one job.
type Proposal struct {
	Finding   string
	Forwarder topology.ForwarderID
	Job       *remap.Job
	Moves     []remap.Move
	// Force cuts off a forwarder that answers nothing: what waits for its answer would wait for ever.
	Force  bool
	Rule   string
	Act    bool
	Reason string
}

// Line is one decision of the policy, also that nothing is done.
type Line struct {
	At        time.Time            `json:"at"`
	Finding   string               `json:"finding"`
	Forwarder topology.ForwarderID `json:"forwarder"`
	Job       topology.JobID       `json:"job"`
	Rule      string               `json:"rule,omitempty"`
	Plan      string               `json:"plan,omitempty"`
	Text      string               `json:"text"`
}

// Decide says which plans are to be made now, and of the other jobs that wait why none is.
func Decide(c *Case) (plans []Proposal, held []Line) {
	s := c.Situation
	added, with := map[topology.ForwarderID]float64{}, map[topology.NodeID]topology.JobID{}
	for i := range s.Findings {
		f := &s.Findings[i]
		id := topology.ForwarderID(f.Node)
		since := confirmedSince(f)
		if !since.IsZero() && f.Kind.OfJob() {
			if p := c.limit(f); p != nil {
				plans = append(plans, *p)
			}
		}
		if since.IsZero() || !slices.Contains(evacuated, f.Condition) || !s.IsForwarder(id) {
			continue
		}
		for k := range s.Jobs {
			j := &s.Jobs[k]
			nodes, known := c.waiting(f, j)
			if len(nodes) == 0 {
				continue
			}
			line := Line{At: s.At, Finding: f.ID, Forwarder: id, Job: j.ID}
			if k := slices.IndexFunc(nodes, func(n topology.NodeID) bool { return with[n] != "" }); k >= 0 {
				line.Text = fmt.Sprintf("%s moves with job %s, which is on it, or on its address, too", nodes[k],
					with[nodes[k]])
				held = append(held, line)
				continue
			}
			p, why := c.decide(f, j, nodes, known, s.At.Sub(since), added)
			if line.Text = why; why != "" {
				held = append(held, line)
				continue
			}
			for _, m := range p.Moves {
				with[m.Node] = j.ID
			}
			plans = append(plans, *p)
		}
	}
	return plans, held
}

// usualLimit is what a job that others wait for keeps of a forwarder: with the usual window one request at a time.
const usualLimit = 0.05

// limit makes the plan that limits the job of a finding where others wait for it; nil where none helps.
func (c *Case) limit(f *anomaly.Finding) *Proposal {
	k := slices.IndexFunc(c.Situation.Jobs, func(j remap.Job) bool {
		return len(f.Jobs) > 0 && j.ID == f.Jobs[0]
	})
	waits := slices.IndexFunc(f.Impact, func(i anomaly.Impact) bool { return i.Share > 0 })
	if k < 0 || waits < 0 || c.CanLimit == nil || c.Refused(f, f.Jobs[0]) != "" {
		return nil
	}
	j := &c.Situation.Jobs[k]
	p := &Proposal{Finding: f.ID, Forwarder: topology.ForwarderID(f.Node), Job: j}
	for _, n := range append([]topology.NodeID{f.Node}, f.Nodes...) {
		s := remap.Subject{Node: n, Job: j.ID}
		if !c.Limited[s] && c.CanLimit(n) == "" {
			p.Moves = append(p.Moves, remap.Move{Node: n, Limit: usualLimit})
			c.Limited[s] = true
		}
	}
	if len(p.Moves) == 0 {
		return nil
	}
	p.Reason = remap.ShortenReason(fmt.Sprintf("%s: %s (%s) and job %s waits for it: job %s gets at most %.0f %% "+
		"while others ask for some", f.Node, remap.KindWords(f.Kind), f.ID, f.Impact[waits].Job, j.ID, 100*usualLimit))
	return p
}

// confirmedSince is when a finding was confirmed this time; zero of one that is not.
func confirmedSince(f *anomaly.Finding) time.Time {
	if f.State != anomaly.Confirmed && f.State != anomaly.Excluded {
		return time.Time{}
	}
	for _, s := range slices.Backward(f.Steps) {
		if s.State == anomaly.Confirmed {
			return s.At
		}
	}
	return f.Changed
}

// knownAfter is how long a job has run when its nodes have reported what they move, if they count that at all.
const knownAfter = time.Minute

// waiting returns the nodes of a job that are on the forwarder of a finding, if they wait for it: of a slow one, those
// of the jobs that lose time; of one that answers nothing, all. Where nobody's loss is known and the job's nodes count
// no I/O (LWFS), they may wait: known is false.
func (c *Case) waiting(f *anomaly.Finding, j *remap.Job) (nodes []topology.NodeID, known bool) {
	s := c.Situation
	known = f.Condition != anomaly.Slow || slices.ContainsFunc(f.Impact, func(i anomaly.Impact) bool {
		return i.Job == j.ID && i.Share > 0
	})
	if !known && (len(f.Impact) > 0 || s.At.Sub(j.Start) < knownAfter || c.Demand(j) != nil) {
		return nil, false
	}
	for _, n := range j.Nodes {
		if on := s.On(n); len(on) == 1 && on[0] == topology.ForwarderID(f.Node) && len(s.SpreadOf(n)) == 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes, known
}

// sharing are the further nodes that reach their forwarder by a floating address of one of these (GPFS): an address
// moves with all of its clients.
func sharing(s *remap.Situation, nodes []topology.NodeID) (more []topology.NodeID) {
	addresses := map[string]bool{}
	for _, n := range nodes {
		if a := s.Routes[n].Address; a != "" {
			addresses[a] = true
		}
	}
	if len(addresses) == 0 {
		return nil
	}
	for n := range s.Routes {
		if addresses[s.Routes[n].Address] && !slices.Contains(nodes, n) {
			more = append(more, n)
		}
	}
	slices.Sort(more)
	return more
}

// decide makes the plan for one job, or says why it gets no plan.
func (c *Case) decide(f *anomaly.Finding, j *remap.Job, nodes []topology.NodeID, known bool, confirmed time.Duration,
	added map[topology.ForwarderID]float64) (p *Proposal, why string) {
	if who := c.Refused(f, j.ID); who != "" {
		return nil, who
	}
	p = &Proposal{Finding: f.ID, Forwarder: topology.ForwarderID(f.Node), Job: j, Force: f.Condition != anomaly.Slow}
	rule := find(c.Rules, f, j, c.Situation.At)
	says := ""
	if rule != nil {
		p.Rule = rule.Name
		switch n := c.Acted[rule.Name]; {
		case rule.Action != Act:
			says = "; rule " + rule.Name + " asks"
		case !known:
			says = "; rule " + rule.Name + " asks, for its nodes count no I/O"
		case n >= rule.atMost():
			says = fmt.Sprintf("; rule %s has acted %s in 24 hours and asks", rule.Name, anomaly.Counted(n, "time"))
		case f.Condition == anomaly.Hung && len(rule.Conditions) == 0:
			says = "; rule " + rule.Name + " does not name hung and asks: fence it first, for the requests that it " +
				"holds may land when it wakes"
		case confirmed < rule.For:
			says = fmt.Sprintf("; rule %s acts when this has been confirmed for %s", rule.Name, rule.For)
		default:
			p.Act = true
			says = fmt.Sprintf("; rule %s acts, %d of at most %d in 24 hours", rule.Name, n+1, rule.atMost())
		}
	}
	part := c.part(j, len(nodes))
	nodes = append(nodes, sharing(c.Situation, nodes)...)
	for _, n := range nodes {
		own := p.Act && c.Waiting[n] != nil && c.Waiting[n].Proposer == remap.PolicyPerson(Name).Name &&
			c.Waiting[n].Job == j.ID
		if w := c.Waiting[n]; w != nil && !own {
			return nil, w.ID + " waits and moves these nodes"
		}
	}
	targets, lost, counted := c.choose(p.Forwarder, part, len(nodes), rule.loss(), added)
	switch {
	case len(targets) == 0:
		return nil, lost
	case p.Act && !counted:
		p.Act, says = false, "; rule "+rule.Name+" asks, for what that costs others is not known"
	}
	byAddress := map[string]topology.ForwarderID{}
	for i, n := range nodes {
		to := targets[i*len(targets)/len(nodes)]
		if a := c.Situation.Routes[n].Address; a != "" {
			to = cmp.Or(byAddress[a], to)
			byAddress[a] = to
		}
		p.Moves = append(p.Moves, remap.Move{Node: n, To: to})
	}
	for _, t := range targets {
		if part != nil {
			added[t] += *part / float64(len(targets))
		}
		c.Taken[t] = c.Taken[t] || part == nil
	}
	waits := "waits"
	if !known {
		waits = "may wait"
	}
	p.Reason = remap.ShortenReason(fmt.Sprintf("%s is %s (%s) and job %s %s for it: %s to %s, %s%s", f.Node,
		conditionWords(f), f.ID, j.ID, waits, anomaly.Counted(len(nodes), "node"),
		remap.NameOrCount(targets, "forwarder"), lost, says))
	return p, ""
}

func conditionWords(f *anomaly.Finding) string {
	if r := ratioOf(f); f.Condition == anomaly.Slow && r > 0 {
		return anomaly.Times(r) + " slow"
	}
	return string(f.Condition)
}

// part is what so many of a job's nodes move when nothing holds them up; nil where that is not known.
func (c *Case) part(j *remap.Job, nodes int) *float64 {
	return scaled(c.Demand(j), float64(nodes)/float64(len(j.Nodes)))
}

func scaled(v *float64, by float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v * by)
}

// candidate is a forwarder that may take nodes.
type candidate struct {
	id       topology.ForwarderID
	used     float64 // what it carries now, or its jobs when they do I/O, bytes/s
	capacity float64 // bytes/s; 0: not known
	peak     bool    // the capacity is the one that the site has set; else it is at least that
	jobs     int     // with nodes on it
}

// loses is the part of their time that the candidate's jobs would lose with so much more, by processor sharing: nothing
// while all of it fits. known is false where load or capacity are not.
func (x *candidate) loses(more *float64) (share float64, known bool) {
	switch {
	case x.jobs == 0:
		return 0, true
	case more == nil || x.capacity == 0:
		return 0, false
	}
	share = max(0, (x.used+*more)/x.capacity-1)
	return share, share == 0 || x.peak
}

// choose returns the fewest targets at which no job loses more than the bound, and in words what theirs lose; or none,
// and why. known is false where it is not known what they lose.
func (c *Case) choose(from topology.ForwarderID, part *float64, nodes int, bound float64,
	added map[topology.ForwarderID]float64) (targets []topology.ForwarderID, words string, known bool) {
	all := c.candidates(from, added)
	if len(all) == 0 {
		return nil, "no healthy forwarder is free for its nodes", false
	}
	least := -1.0
	for k := 1; k <= min(len(all), nodes); k++ {
		worst, unknown := 0.0, false
		for i := range all[:k] {
			share, known := all[i].loses(scaled(part, 1/float64(k)))
			worst, unknown = max(worst, share), unknown || !known
		}
		if unknown {
			continue
		}
		if least < 0 || worst < least {
			least = worst
		}
		if worst <= bound {
			return ids(all[:k]), costWords(all[:k], worst), true
		}
	}
	if least < 0 {
		return ids(all[:1]), "what the jobs there would lose is not known", false
	}
	return nil, fmt.Sprintf("wherever its nodes went, jobs there would lose %.0f %% or more; %.0f %% is the bound",
		100*least, 100*bound), false
}

func ids(of []candidate) (out []topology.ForwarderID) {
	for i := range of {
		out = append(out, of[i].id)
	}
	return out
}

func costWords(at []candidate, worst float64) string {
	jobs := 0
	for i := range at {
		jobs += at[i].jobs
	}
	lose := anomaly.VerbOf(jobs, "loses", "lose")
	switch {
	case jobs == 0:
		return "where no other job is"
	case worst == 0:
		return fmt.Sprintf("where %s %s nothing", anomaly.Counted(jobs, "job"), lose)
	}
	return fmt.Sprintf("where %s %s %.1f %% at most", anomaly.Counted(jobs, "job"), lose, 100*worst)
}

// candidates are the forwarders that may take nodes, those with the most room first.
func (c *Case) candidates(from topology.ForwarderID, added map[topology.ForwarderID]float64) (out []candidate) {
	s := c.Situation
	of := map[topology.ForwarderID]*candidate{}
	for _, id := range s.Index.Forwarders() {
		load := s.Load[id]
		rate, known := load.Rate()
		_, sick := s.SickBehind(id)
		if state := s.State(id); id == from || sick || !known || c.Taken[id] ||
			state != remap.ForwarderIdle && state != remap.ForwarderOK {
			continue
		}
		of[id] = &candidate{id: id, used: rate, peak: load.PeakBytesPerSec > 0,
			capacity: cmp.Or(load.PeakBytesPerSec, c.Carried)}
	}
	wanted := map[topology.ForwarderID]float64{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		on := map[topology.ForwarderID]int{}
		for _, n := range j.Nodes {
			for _, f := range s.On(n) {
				on[f]++
			}
		}
		for f, nodes := range on {
			if x := of[f]; x != nil {
				x.jobs++
				if part := c.part(j, nodes); part != nil {
					wanted[f] += *part
				}
			}
		}
	}
	for _, x := range of {
		x.used = max(x.used, wanted[x.id]) + added[x.id]
		if added[x.id] > 0 {
			x.jobs++
		}
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.capacity-b.used, a.capacity-a.used), cmp.Compare(a.jobs, b.jobs),
			cmp.Compare(a.id, b.id))
	})
	return out
}
