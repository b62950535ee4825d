package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

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
