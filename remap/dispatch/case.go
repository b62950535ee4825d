package dispatch

import (
	"cmp"
	"fmt"
	"slices"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// Past is a run with a profile as policies read it.
func Past(r *history.Run) *dfra.Run {
	f := r.Profile
	past := &dfra.Run{App: r.App, User: r.User, Project: r.Project, Nodes: dfra.NodeCount(r.Nodes),
		End:         float64(r.End.Unix()),
		VolumeBytes: f.VolumeBytes(), IONodes: float64(f.IONodes), Mode: f.Mode, BW: f.PeakBytesPerSec,
		IOPS: f.PeakOpsPerSec}
	if f.MetaQueue == nil {
		past.MetaUnknown = true
	} else {
		past.MetaQueue, past.MetaWithin = *f.MetaQueue, f.MetaQueueWithin
	}
	return past
}

// caseOf is everything the policy's decision depends on.
func (d *Dispatcher) caseOf(s *remap.Situation, j *job, p *history.Prediction) dfra.Case {
	r := &j.run
	c := dfra.Case{Config: d.levels.Load().fill(d.cfg.Limits), Depth: p.Depth, Blind: p.Blind, Job: dfra.Job{App: r.App,
		User: r.User, Project: r.Project, Nodes: dfra.NodeCount(r.Nodes), DefaultForwarders: j.on}}
	if j.past != nil {
		c.History = []dfra.Run{*j.past}
	}
	claims := d.cfg.Desk.Claims()
	d.mu.RLock()
	defer d.mu.RUnlock()
	used := map[topology.ForwarderID]bool{}
	for _, o := range d.jobs {
		if o.run.Job == r.Job {
			continue
		}
		for _, f := range o.on {
			used[f] = true
		}
		n := dfra.Neighbour{Job: o.run.Job, Forwarders: o.on, History: o.past}
		if !o.since.IsZero() && s.At.Sub(o.since) >= d.cfg.LiveAfter {
			n.Live = new(o.live)
		}
		c.Neighbours = append(c.Neighbours, n)
	}
	slices.SortFunc(c.Neighbours, func(a, b dfra.Neighbour) int { return cmp.Compare(a.Job, b.Job) })
	c.Rivals = d.rivals(s, r.Job)
	for _, f := range d.awaited(s, r.Job) {
		used[f] = true
	}
	c.Forwarders = pool(s, r.Job, j.on, used, claims, d.cfg.Desk.Promised())
	return c
}

// decide asks the policy. Where the site does not lend them, a forwarder that nodes without a job reach by default is
// granted to nobody: the next job there would find it dedicated, and join one in use. It may still stand in
// for an anomalous one, for that makes nobody leave it.
func decide(cfg *Config, s *remap.Situation, c dfra.Case) dfra.Decision {
	got := cfg.Policy(c)
	if cfg.Lend || got.Action == dfra.Default {
		return got
	}
	used := reached(s)
	if !slices.ContainsFunc(got.Forwarders, used) {
		return got
	}
	all := c.Forwarders.Idle
	c.Forwarders.Idle = slices.DeleteFunc(slices.Clone(all), used)
	got = cfg.Policy(c)
	got.Reasons = append(got.Reasons, dfra.Reason{Rule: "lend", Value: float64(len(all) - len(c.Forwarders.Idle)),
		Text: "idle forwarders that nodes without a job reach by default; they are kept for the jobs that start there"})
	if got.Action == dfra.Default && !got.Remap {
		c.Forwarders.Idle = all
		kept := dfra.KeepDefault(c)
		got.Forwarders, got.Count, got.Remap = kept.Forwarders, kept.Count, kept.Remap
	}
	return got
}

// reached are the forwarders that nodes reach by default: by the site's mapping, or, of nodes that have none in it, as
// they are seen.
func reached(s *remap.Situation) func(topology.ForwarderID) bool {
	seen := map[topology.ForwarderID]bool{}
	for n, f := range s.Observed {
		if s.Default[n] == "" {
			seen[f] = true
		}
	}
	for _, n := range s.SpreadNodes() {
		for _, f := range s.Home(n) {
			seen[f] = true
		}
	}
	return func(f topology.ForwarderID) bool { return s.Index.InService(f) || seen[f] }
}

// pool is the state of the forwarding layer for one job: idle are the healthy forwarders without
// load that no other job uses or has claimed and no plan sends nodes to, those that nobody uses by default first, those
// of one back end not together. Anomalous are, of the job's own, those that may not carry it: excluded, confirmed slow,
// without data, dedicated to another job, or in front of a back end that is confirmed slow.
func pool(s *remap.Situation, id topology.JobID, own []topology.ForwarderID, used map[topology.ForwarderID]bool,
	claims map[topology.ForwarderID]topology.JobID, promised map[topology.ForwarderID]string) (p dfra.Pool) {
	var shared []topology.ForwarderID
	byDefault := reached(s)
	for _, f := range s.Index.Forwarders() {
		owner, claimed := claims[f]
		finding, sick := s.SickBehind(f)
		switch state := s.State(f); {
		case !slices.Contains(own, f):
			if state != remap.ForwarderIdle || used[f] || claimed || sick {
				continue
			}
			switch plan := promised[f]; {
			case plan != "":
				if p.Promised == nil {
					p.Promised = map[topology.ForwarderID]string{}
				}
				p.Promised[f] = plan
			case byDefault(f):
				shared = append(shared, f)
			default:
				p.Idle = append(p.Idle, f)
			}
		case state == remap.ForwarderExcluded || state == remap.ForwarderStale || claimed && owner != id:
			p.Anomalous = append(p.Anomalous, f)
		case sick:
			p.Anomalous = append(p.Anomalous, f)
			if p.Why == nil {
				p.Why = map[topology.ForwarderID]string{}
			}
			p.Why[f] = fmt.Sprintf("waits for its back end %s, which is slow (%s)", finding.Node, finding.ID)
		case !s.MayCarry(f):
			p.Anomalous = append(p.Anomalous, f)
		}
	}
	p.Idle = append(inTurns(s, p.Idle), inTurns(s, shared)...)
	return p
}

// inTurns orders forwarders so that their back ends take turns: several in front of one back end carry no more than it
// does. Those with several back ends, or none of their own, stay in front.
func inTurns(s *remap.Situation, all []topology.ForwarderID) []topology.ForwarderID {
	turns, turn := map[topology.NodeID]int{}, map[topology.ForwarderID]int{}
	for _, f := range all {
		if server := s.Load[f].BackEnd; server != "" {
			turn[f] = turns[server]
			turns[server]++
		}
	}
	slices.SortStableFunc(all, func(a, b topology.ForwarderID) int { return cmp.Compare(turn[a], turn[b]) })
	return all
}

// assign turns a decision into moves: a forwarder that was replaced sends its nodes to the
// one in its place; granted forwarders share the nodes in even blocks. Nodes that spread their traffic over a
// forwarder that was replaced go, each to one, to those that the job has now: nobody else can have them avoid it.
//
// A default forwarder that is dedicated to another job and could not be replaced by an idle one sends its nodes to
// the healthy forwarder with the fewest clients: two jobs never share a dedicated one.
func assign(s *remap.Situation, nodes []topology.NodeID, d *dfra.Decision,
	claims map[topology.ForwarderID]topology.JobID, id topology.JobID) (moves []remap.Move) {
	if d.Action != dfra.Default {
		for i, n := range nodes {
			moves = append(moves, remap.Move{Node: n, To: d.Forwarders[i*len(d.Forwarders)/len(nodes)]})
		}
		return moves
	}
	instead := map[topology.ForwarderID]topology.ForwarderID{}
	for i, f := range s.Forwarders(nodes) {
		to := d.Forwarders[i]
		if owner, owned := claims[to]; owned && owner != id {
			if quiet, ok := quietest(s, claims); ok {
				to = quiet
				d.Forwarders[i], d.Remap = to, true
			}
		}
		instead[f] = to
	}
	for i, n := range nodes {
		from := s.On(n)
		if slices.ContainsFunc(from, func(f topology.ForwarderID) bool { return instead[f] != f }) {
			moves = append(moves, remap.Move{Node: n, To: instead[from[i%len(from)]]})
		}
	}
	return moves
}

// quietest is the healthy forwarder with the fewest clients that nobody has claimed.
func quietest(s *remap.Situation, claims map[topology.ForwarderID]topology.JobID) (best topology.ForwarderID, ok bool) {
	for _, f := range s.Index.Forwarders() {
		if _, claimed := claims[f]; claimed {
			continue
		}
		if st := s.State(f); st != remap.ForwarderIdle && st != remap.ForwarderOK {
			continue
		}
		if _, sick := s.SickBehind(f); sick {
			continue
		}
		if load := s.Load[f]; !load.Known() {
			continue // what it moves is not known: it may be full
		}
		if !ok || s.Load[f].Connections < s.Load[best].Connections {
			best, ok = f, true
		}
	}
	return best, ok
}

// ledger is what is expected of the plan.
func (d *Dispatcher) ledger(j *job, p *history.Prediction, decision *dfra.Decision) *remap.Ledger {
	l := &remap.Ledger{Policy: d.cfg.Name, Action: string(decision.Action), Runs: p.Depth,
		Own:  remap.Hits{Checked: p.Own.Predicted, Right: p.Own.Within},
		Site: remap.Hits{Checked: p.Site.Predicted, Right: p.Site.Within}}
	if j.past == nil {
		return l
	}
	f := figures(&p.Run)
	l.Predicted = &f
	for _, t := range []struct {
		forwarders int
		to         **float64
	}{{len(j.on), &l.DefaultIOSeconds}, {decision.Count, &l.PlannedIOSeconds}} {
		if seconds, ok := d.cfg.Limits.IOSeconds(f.VolumeBytes, float64(f.IONodes), t.forwarders); ok {
			*t.to = &seconds
		}
	}
	return l
}

func figures(r *history.Run) remap.IOFigures {
	p := r.Profile
	return remap.IOFigures{VolumeBytes: p.VolumeBytes(), IONodes: p.IONodes, PeakBytesPerSec: p.PeakBytesPerSec,
		PeakOpsPerSec: p.PeakOpsPerSec,
		MetaQueue:     p.MetaQueue, IOSeconds: p.IOSeconds, Seconds: r.Seconds()}
}
