package desk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// planTable is the state of every plan.
type planTable struct {
	of    map[string]*entry
	order []string // by age
	first int      // counts those before order: they are in segments of the journal
	open  []string // those of order that can still change: what looks at every plan looks at these
	count map[remap.PlanState]int
	given int // approvals
	// judged are the newest plans of each kind that moved a job and whose effect is known.
	judged map[planKind]string
	packer
}

// planKind is what a proposer's plans for the runs of a program have in common.
type planKind struct{ proposer, app, user string }

func kindOf(p *remap.Plan) planKind { return planKind{p.Proposer, p.App, p.User} }

// judge notes that it is known what a plan brought.
func (t *planTable) judge(e *entry) {
	if k := kindOf(&e.Plan); e.State.Moved() && e.App != "" && before(e.ID) >= before(t.judged[k]) {
		t.judged[k] = e.ID
	}
}

// lastJudged is the newest judged plan of a plan's kind; nil without one.
func (t *planTable) lastJudged(p *remap.Plan) *remap.Plan {
	if e := t.of[t.judged[kindOf(p)]]; e != nil && e.ID != p.ID {
		return &e.Plan
	}
	return nil
}

func newPlanTable() planTable {
	return planTable{of: map[string]*entry{}, count: map[remap.PlanState]int{}, judged: map[planKind]string{},
		packer: newPacker()}
}

func planID(n int) string { return fmt.Sprintf("P-%06d", n) }

// nextID names the next plan.
func (t *planTable) nextID() string { return planID(t.first + len(t.order) + 1) }

// before counts the plans made before one, by its number; it is 0 without a plan. Names of different length do not sort
// as text.
func before(id string) int {
	n := 1
	if _, err := fmt.Sscanf(id, "P-%d", &n); err != nil || n < 1 {
		return 0
	}
	return n - 1
}

// check says why a record does not follow from the state and a draft of the batch before it.
func (t *planTable) check(r *journal.Record, d *draft) error {
	if r.Kind == journal.StepPropose {
		n := t.first + len(t.order) + d.proposed
		if len(t.order)+d.proposed == 0 {
			n = before(r.Plan)
		}
		if r.Proposed == nil || r.Proposed.ID != r.Plan || r.Plan != planID(n+1) {
			return fmt.Errorf("proposal %q does not follow plan %d", r.Plan, n)
		}
		return nil
	}
	state, ok := d.states[r.Plan]
	if !ok {
		e, err := t.get(r.Plan)
		if err != nil {
			return err
		}
		state = e.State
	}
	if r.State != "" && !remap.MayGo(state, r.State) {
		return fmt.Errorf("plan %s cannot go from %s to %s", r.Plan, state, r.State)
	}
	return nil
}

// take makes a checked record part of the state.
func (t *planTable) take(r *journal.Record) {
	if r.Kind == journal.StepPropose {
		e := newEntry(r.Proposed)
		t.of[r.Plan] = e
		if len(t.order) == 0 {
			t.first = before(r.Plan)
		}
		t.order = append(t.order, r.Plan)
		t.open = append(t.open, r.Plan)
		t.count[e.State]++
		return
	}
	e := t.of[r.Plan]
	was := e.State
	e.step(r)
	if r.Approval != nil {
		t.given++
		e.approved = t.given
	}
	if r.Kind == journal.StepMeasure || r.Kind == journal.StepEffect {
		t.judge(e)
	}
	t.count[was]--
	t.count[e.State]++
	if e.State.Final() && !was.Final() {
		t.open = slices.DeleteFunc(t.open, func(id string) bool { return id == e.ID })
		t.pack(e)
	}
}

// bulk is the part of a plan that grows with its nodes.
type bulk struct {
	Moves         []remap.Move
	Results, Undo []remap.Result
	Frozen        remap.Frozen
}

// packer's methods that are used here keep no state and may be called concurrently.
type packer struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

func newPacker() packer {
	in, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	out, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	return packer{in, out}
}

// pack compresses the bulk of a plan that has ended.
func (p packer) pack(e *entry) {
	text, err := json.Marshal(bulk{e.Moves, e.Results, e.Undo, e.Frozen})
	if err != nil {
		panic("BUG: what was in the journal cannot be encoded: " + err.Error())
	}
	e.Short = remap.Title(&e.Plan)
	e.packed = bytes.Clone(p.in.EncodeAll(text, nil)) // the encoder's own is as long as the text
	e.Moves, e.Results, e.Undo, e.Frozen, e.results, e.undo = nil, nil, nil, remap.Frozen{}, nil, nil
}

// whole returns a plan of its own with everything in it.
func (p packer) whole(e *entry) remap.Plan {
	c := remap.ClonePlan(&e.Plan)
	if e.packed == nil {
		return c
	}
	var b bulk
	text, err := p.out.DecodeAll(e.packed, nil)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		panic("BUG: a packed plan cannot be read: " + err.Error())
	}
	c.Moves, c.Results, c.Undo, c.Frozen = b.Moves, b.Results, b.Undo, b.Frozen
	return c
}

// get returns the plan or ErrNotFound.
func (t *planTable) get(id string) (*entry, error) {
	e, ok := t.of[id]
	if !ok {
		return nil, fmt.Errorf("plan %q: %w", id, remap.ErrNotFound)
	}
	return e, nil
}

// entry is one plan with look-ups into its slices. Of one that has ended the bulk is packed: a plan of
// 512 nodes is some 200 kB, and they are kept for ever.
type entry struct {
	remap.Plan
	results, undo map[topology.NodeID]int
	packed        []byte
	approved      int // which of the journal's approvals was its last; 0: none
}

func newEntry(p *remap.Plan) *entry {
	return &entry{Plan: remap.ClonePlan(p), results: map[topology.NodeID]int{}, undo: map[topology.NodeID]int{}}
}

// brief returns the plan without what grows with its nodes, as lists show it.
func (e *entry) brief() remap.Plan {
	p := e.Plan
	p.Results, p.Undo = nil, nil
	return p
}

// step changes one plan.
func (e *entry) step(r *journal.Record) {
	if r.State != "" {
		e.State, e.Changed, e.Error = r.State, r.At, r.Error
	}
	if r.Approval != nil {
		e.Approvals = append(e.Approvals, *r.Approval)
	}
	if r.Frozen != nil {
		e.Frozen = *r.Frozen
	}
	if r.Moves != nil {
		e.Moves = r.Moves
	}
	if r.Expires != nil {
		e.Expires = *r.Expires
	}
	switch r.Kind {
	case journal.StepReject, journal.StepWithdraw, journal.StepExpire, journal.StepRollBack:
		e.Ended = &remap.Ended{By: cmp.Or(r.Actor, "desk"), At: r.At, Reason: r.Reason}
	case journal.StepComplete:
		e.Ended, e.Effect = nil, nil
	}
	switch r.Kind {
	case journal.StepHold:
		e.Back = &remap.Back{Goal: r.Goal, By: cmp.Or(r.Actor, "desk"), At: r.At, Why: r.Error}
		return
	case journal.StepMeasure:
		e.measured(r)
		return
	case journal.StepEffect:
		e.Effect = r.Effect
		return
	case journal.StepRollBack:
		e.Goal, e.Undo, e.undo, e.Back = r.Goal, nil, map[topology.NodeID]int{}, nil
	case journal.StepComplete:
		// After a roll back, however partial, what was moved once may be back: move all again. So may be what was
		// never seen there.
		back := e.Goal != ""
		e.Results = slices.DeleteFunc(e.Results, func(x remap.Result) bool { return back || !x.Verified })
		e.results, e.Goal, e.Back = index(e.Results), "", nil
	case journal.StepUndone:
		e.Undo = merge(e.Undo, e.undo, r.Results)
	default:
		e.Results = merge(e.Results, e.results, r.Results)
	}
	seen, at := e.underWay()
	for _, n := range r.Observed {
		if i, ok := at[n]; ok {
			seen[i].Verified = true
		}
	}
}

// merge adds results; the newer result of a node replaces the older.
func merge(have []remap.Result, at map[topology.NodeID]int, news []remap.Result) []remap.Result {
	for _, r := range news {
		if i, ok := at[r.Node]; ok {
			have[i] = r
			continue
		}
		at[r.Node] = len(have)
		have = append(have, r)
	}
	return have
}

func index(results []remap.Result) map[topology.NodeID]int {
	at := make(map[topology.NodeID]int, len(results))
	for i, r := range results {
		at[r.Node] = i
	}
	return at
}

// measured puts m into the ledger; ledgers that were handed out stay as they are.
func (e *entry) measured(r *journal.Record) {
	if e.Ledger == nil {
		return
	}
	l := *e.Ledger
	l.Measured, l.MeasuredAt = r.Measured, r.At
	e.Ledger = &l
}

// movedOn finds a plan that was approved later and holds a node of e. What is later says the journal, and not a clock:
// the daemons that lead one after the other have their own.
func (t *planTable) movedOn(e *entry) (plan string, node topology.NodeID) {
	mine := subjectsOf(&e.Plan)
	for o := range t.unfinished {
		if o.ID == e.ID || !o.State.Holds() || o.approved <= e.approved {
			continue
		}
		for i := range o.Moves {
			if mine[o.Subject(&o.Moves[i])] {
				return o.ID, o.Moves[i].Node
			}
		}
	}
	return "", ""
}

// subjectsOf are what a plan changes.
func subjectsOf(p *remap.Plan) map[remap.Subject]bool {
	out := make(map[remap.Subject]bool, len(p.Moves))
	for i := range p.Moves {
		out[p.Subject(&p.Moves[i])] = true
	}
	return out
}

// checkOthers refuses to move a node that another plan is moving.
func checkOthers(p remap.Plan, others []remap.Plan) []remap.Check {
	mine := subjectsOf(&p)
	for _, o := range others {
		if o.ID == p.ID || !o.State.Moving() {
			continue
		}
		for i := range o.Moves {
			m, doing := &o.Moves[i], "moved"
			if m.Limit > 0 {
				doing = "limited for this job"
			}
			if mine[o.Subject(m)] {
				return oneCheck("others", remap.Red,
					fmt.Sprintf("%s is being %s by %s (%s)", m.Node, doing, o.ID, o.State))
			}
		}
	}
	return oneCheck("others", remap.Green, "no other plan is moving these nodes")
}

// checkPromised warns of an earlier waiting plan that sends nodes to the same forwarder, where one of the two wants it
// alone. Whichever is approved first, the other cannot be.
func (t *planTable) checkPromised(p *remap.Plan) []remap.Check {
	targets := remap.Targets(p.Moves)
	for e := range t.unfinished {
		if e.ID == p.ID {
			break
		}
		if e.State != remap.Proposed || !e.Dedicated && !p.Dedicated || e.Job != "" && e.Job == p.Job {
			continue
		}
		for _, m := range e.Moves {
			if slices.Contains(targets, m.To) {
				return oneCheck("promised", remap.Amber, fmt.Sprintf(
					"%s waits, too, and moves nodes to %s: one of the two plans wants it for its job alone, so only "+
						"one can be approved", e.ID, m.To))
			}
		}
	}
	return nil
}

// moving returns the plans that others may collide with.
func (t *planTable) moving() (plans []remap.Plan) {
	for e := range t.unfinished {
		if e.State.Moving() {
			plans = append(plans, remap.Plan{ID: e.ID, Job: e.Job, State: e.State, Moves: e.Moves})
		}
	}
	return plans
}

// unfinished visits the plans that can still change, the oldest first.
func (t *planTable) unfinished(visit func(*entry) bool) {
	for _, id := range t.open {
		if !visit(t.of[id]) {
			return
		}
	}
}

// newest visits all plans, the newest first.
func (t *planTable) newest(visit func(*entry) bool) {
	for _, id := range slices.Backward(t.order) {
		if !visit(t.of[id]) {
			return
		}
	}
}

// ruledSince counts the plans that were approved by rule since then.
func (t *planTable) ruledSince(then time.Time) (n int) {
	for e := range t.newest {
		if e.Created.Before(then) {
			return n // older ones were approved when they were proposed, if by rule
		}
		if e.ByRule() {
			n++
		}
	}
	return n
}
