package journal

import (
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Timeline is what a journal says of every instant up to its newest record: findings, exclusions,
// plans and the moves that were done. It grows by Take. Its methods may be called concurrently.
type Timeline struct {
	mu         sync.RWMutex                // guards the rest
	findings   map[string][]anomaly.Change // oldest first, without their evidence
	order      []string                    // of findings, as they were made
	exclusions []remap.Exclusion           // Since to Until as it was in the end
	excluded   map[topology.ForwarderID]int
	plans      []*planLife
	byID       map[string]*planLife
	moves      map[topology.NodeID][]moved
	count      int
	// cut is the time before which moves were given up because there were too many.
	cut time.Time
}

// planLife is a plan without its nodes.
type planLife struct {
	remap.Plan        // Moves and Results are empty
	name       string // Title, of the moves as they last were
	ways       map[topology.NodeID]remap.Move
	touch      []topology.ForwarderID
	to         []topology.ForwarderID
	states     []stateAt
}

type stateAt struct {
	at    time.Time
	state remap.PlanState
}

// moved is one node's change of forwarder that was done.
type moved struct {
	at       time.Time
	from, to topology.ForwarderID
}

// maxPastMoves bounds the moves that were done that a timeline keeps, some 100 MB. Those of plans in force the desk has
// in memory anyway.
const maxPastMoves = 1 << 20

// NewTimeline returns one that knows nothing yet.
func NewTimeline() *Timeline {
	return &Timeline{findings: map[string][]anomaly.Change{}, excluded: map[topology.ForwarderID]int{},
		byID: map[string]*planLife{}, moves: map[topology.NodeID][]moved{}}
}

// Take adds the next record.
func (t *Timeline) Take(r *Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch r.Kind {
	case StepFinding:
		t.takeFinding(r)
	case StepExclude, StepReturn:
		t.takeExclusion(r)
	case StepPropose:
		t.propose(r)
	default:
		if p := t.byID[r.Plan]; p != nil {
			t.step(p, r)
		}
	}
}

func (t *Timeline) takeFinding(r *Record) {
	if r.Finding == nil {
		return
	}
	c := *r.Finding
	c.Frozen = nil
	id := c.Finding.ID
	if t.findings[id] == nil {
		t.order = append(t.order, id)
	}
	t.findings[id] = append(t.findings[id], c)
}

// takeExclusion ends the one in force, if there is one, and begins the next: a renewal changes words
// and end, not the beginning.
func (t *Timeline) takeExclusion(r *Record) {
	if r.Exclusion == nil {
		return
	}
	f := r.Exclusion.Forwarder
	i, on := t.excluded[f]
	if on {
		t.exclusions[i].Until = r.At
		delete(t.excluded, f)
	}
	if r.Kind == StepExclude {
		e := *r.Exclusion
		if on {
			e.Since = r.At
		}
		t.excluded[f] = len(t.exclusions)
		t.exclusions = append(t.exclusions, e)
	}
}

func (t *Timeline) propose(r *Record) {
	if r.Proposed == nil {
		return
	}
	p := &planLife{Plan: *r.Proposed, states: []stateAt{{r.At, remap.Proposed}}}
	p.take(r.Proposed)
	t.plans = append(t.plans, p)
	t.byID[p.ID] = p
}

// take takes from a plan what is kept of its moves.
func (p *planLife) take(q *remap.Plan) {
	p.ways, p.touch, p.to = make(map[topology.NodeID]remap.Move, len(q.Moves)), nil, remap.Targets(q.Moves)
	for _, m := range q.Moves {
		if m.Limit > 0 {
			continue
		}
		p.ways[m.Node] = m
		p.touch = append(append(p.touch, m.Sources()...), m.To)
	}
	p.touch = topology.Distinct(p.touch)
	p.name = remap.Title(q)
	p.Moves, p.Results, p.Undo, p.Frozen = nil, nil, nil, remap.Frozen{}
}

func (t *Timeline) step(p *planLife, r *Record) {
	if r.Moves != nil {
		p.take(&remap.Plan{Job: p.Job, Moves: r.Moves, Dedicated: p.Dedicated})
	}
	if r.Expires != nil {
		p.Expires = *r.Expires
	}
	if r.Approval != nil {
		p.Approvals = append(p.Approvals, *r.Approval)
	}
	if r.Kind == StepEffect {
		p.Effect = r.Effect
	}
	if r.State != "" {
		p.states = append(p.states, stateAt{r.At, r.State})
	}
	for i := range r.Results {
		res := &r.Results[i]
		m, ok := p.ways[res.Node]
		if !ok || !res.OK {
			continue
		}
		d := moved{res.At, m.From, m.To}
		if r.Kind == StepUndone {
			d.from, d.to = m.To, m.From
		}
		t.keep(m.Node, d)
	}
	if r.State.Final() && r.State != "" {
		p.ways = nil
	}
}

// keep remembers a move; when there are too many, the older half of each node's goes.
func (t *Timeline) keep(n topology.NodeID, d moved) {
	t.moves[n] = append(t.moves[n], d)
	if t.count++; t.count <= maxPastMoves {
		return
	}
	t.count = 0
	for n, list := range t.moves {
		gone := (len(list) + 1) / 2
		if last := list[gone-1].at; last.After(t.cut) {
			t.cut = last
		}
		t.moves[n] = slices.Clone(list[gone:])
		t.count += len(t.moves[n])
	}
}

// Findings returns the findings at an instant as they then were: those open, and those closed within
// the hour before.
func (t *Timeline) Findings(at time.Time) []anomaly.Finding {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := []anomaly.Finding{}
	for _, id := range t.order {
		var last *anomaly.Change
		for i := range t.findings[id] {
			if c := &t.findings[id][i]; !c.At.After(at) {
				last = c
			}
		}
		if last != nil && (last.Finding.Open() || at.Sub(last.At) <= time.Hour) {
			out = append(out, last.Finding)
		}
	}
	return out
}

// Excluded returns the forwarders that were excluded at an instant and why.
func (t *Timeline) Excluded(at time.Time) map[topology.ForwarderID]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[topology.ForwarderID]string{}
	for _, e := range t.exclusions {
		if !at.Before(e.Since) && at.Before(e.Until) {
			out[e.Forwarder] = e.Reason
		}
	}
	return out
}

// PastPlan is a plan as it was at an instant, without its moves.
type PastPlan struct {
	remap.Plan
	Title string
	// Touches are the forwarders that nodes would leave or go to, Targets the latter.
	Touches, Targets []topology.ForwarderID
}

// Plans returns the plans that were waiting or in force at an instant, in the order of their making.
func (t *Timeline) Plans(at time.Time) (out []PastPlan) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.plans {
		var last stateAt
		for _, s := range p.states {
			if !s.at.After(at) {
				last = s
			}
		}
		if last.state == "" || last.state.Final() {
			continue
		}
		q := PastPlan{Plan: p.Plan, Title: p.name, Touches: p.touch, Targets: p.to}
		q.State, q.Changed = last.state, last.at
		q.Approvals = slices.DeleteFunc(slices.Clone(q.Approvals),
			func(a remap.Approval) bool { return a.At.After(at) })
		if q.Effect != nil && q.Effect.AfterTo.After(at) {
			q.Effect = nil
		}
		out = append(out, q)
	}
	return out
}

// Mapping returns which forwarder each compute node used at an instant, from a mapping of now and
// since when each node is observed there: what was moved since then is taken back. A node that
// neither was observed so long nor was moved by a plan is left where it is now, for other hands leave
// no record. ok is false where so old moves are no longer kept.
func (t *Timeline) Mapping(now topology.Mapping, since func(topology.NodeID) time.Time,
	at time.Time) (m topology.Mapping, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m = now.Clone()
	if m == nil {
		m = topology.Mapping{}
	}
	for n, list := range t.moves {
		if s := since(n); !s.IsZero() && !s.After(at) {
			continue // seen there all the time
		}
		i, _ := slices.BinarySearchFunc(list, at, func(d moved, at time.Time) int {
			if d.at.After(at) {
				return 1
			}
			return -1
		})
		switch {
		case i < len(list): // the first move after it says where it came from
			setOrDelete(m, n, list[i].from)
		case m[n] == "" && i > 0:
			setOrDelete(m, n, list[i-1].to)
		}
	}
	return m, !at.Before(t.cut)
}

func setOrDelete(m topology.Mapping, n topology.NodeID, f topology.ForwarderID) {
	if f == "" {
		delete(m, n)
		return
	}
	m[n] = f
}

// Marks returns what happened in [from, to), the oldest first.
func (t *Timeline) Marks(from, to time.Time) []remap.Mark {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := []remap.Mark{}
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	for id, changes := range t.findings {
		for i := range changes {
			if c := &changes[i]; !c.Noted.IsZero() && within(c.Noted) {
				out = append(out, remap.Mark{At: c.Noted, Kind: "note", ID: id, Node: string(c.Finding.Node),
					Text: c.By + ": " + c.Why})
			} else if c.Noted.IsZero() && within(c.At) {
				out = append(out, remap.Mark{At: c.At, Kind: "finding", ID: id, Node: string(c.Finding.Node),
					Text: string(c.Finding.State) + ": " + c.Why})
			}
		}
	}
	for _, p := range t.plans {
		for _, s := range p.states {
			if within(s.at) {
				out = append(out, remap.Mark{At: s.at, Kind: "plan", ID: p.ID, Text: string(s.state) + ": " + p.name,
					Forwarders: p.touch})
			}
		}
	}
	for _, e := range t.exclusions {
		if within(e.Since) {
			out = append(out, remap.Mark{At: e.Since, Kind: "exclusion", ID: string(e.Forwarder),
				Node: string(e.Forwarder),
				Text: "excluded: " + e.Reason})
		}
	}
	slices.SortStableFunc(out, func(a, b remap.Mark) int { return a.At.Compare(b.At) })
	return out
}
