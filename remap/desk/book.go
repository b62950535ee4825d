package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// book is the state of every plan: the sum of the journal's records. Only take changes it, at
// replay and live alike, so that a restart ends where the last record left off.
type book struct {
	plans map[string]*entry
	order []string // by age
	open  []string // those of order that can still change: what looks at every plan looks at these
	count map[remap.PlanState]int
	keys  map[string]keyUse
	packer

	exclusions exclusions
	standings  standings
	findings   findings
}

// entry is one plan with look-ups into its slices. Of one that has ended the bulk is packed: a plan of
// 512 nodes is some 200 kB, and they are kept for ever.
type entry struct {
	remap.Plan
	results, undo map[topology.NodeID]int
	packed        []byte
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

// pack puts the bulk of a plan that has ended away.
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

// keyUse is what an idempotency key was used for.
type keyUse struct {
	body, plan string
	at         time.Time
}

// keyLife is how long a used idempotency key is remembered.
const keyLife = 24 * time.Hour

func newBook() *book {
	return &book{packer: newPacker(), plans: map[string]*entry{}, count: map[remap.PlanState]int{},
		keys:       map[string]keyUse{},
		exclusions: exclusions{of: map[topology.ForwarderID]remap.Exclusion{}},
		findings:   findings{at: map[string]int{}}}
}

// nextID names the next plan.
func (b *book) nextID() string { return fmt.Sprintf("P-%06d", len(b.order)+1) }

// get returns the plan or ErrNotFound.
func (b *book) get(id string) (*entry, error) {
	e, ok := b.plans[id]
	if !ok {
		return nil, fmt.Errorf("plan %q: %w", id, remap.ErrNotFound)
	}
	return e, nil
}

// take makes one record true.
func (b *book) take(r *journal.Record) error {
	if r.Key != "" {
		b.keys[r.Actor+"\x00"+r.Key] = keyUse{body: r.Body, plan: r.Plan, at: r.At}
	}
	switch r.Kind {
	case journal.StepPropose:
		return b.add(r)
	case journal.StepExclude, journal.StepReturn:
		return b.exclusions.take(r)
	case journal.StepFinding:
		return b.findings.take(r)
	case journal.StepAllow, journal.StepRevoke:
		return b.standings.take(r)
	case journal.StepCanary, journal.StepCanaryDone:
		return nil // nothing follows from it but its place in the audit
	}
	e, err := b.get(r.Plan)
	if err != nil {
		return err
	}
	if r.State != "" && !remap.MayGo(e.State, r.State) {
		return fmt.Errorf("plan %s cannot go from %s to %s", r.Plan, e.State, r.State)
	}
	was := e.State
	e.step(r)
	b.count[was]--
	b.count[e.State]++
	if e.State.Final() && !was.Final() {
		b.open = slices.DeleteFunc(b.open, func(id string) bool { return id == e.ID })
		b.pack(e)
	}
	return nil
}

// unfinished shows the plans that can still change, the oldest first.
func (b *book) unfinished(visit func(*entry) bool) {
	for _, id := range b.open {
		if !visit(b.plans[id]) {
			return
		}
	}
}

func (b *book) add(r *journal.Record) error {
	if r.Proposed == nil || r.Proposed.ID != r.Plan || r.Plan != b.nextID() {
		return fmt.Errorf("proposal %q does not follow plan %d", r.Plan, len(b.order))
	}
	e := &entry{Plan: remap.ClonePlan(r.Proposed), results: map[topology.NodeID]int{}, undo: map[topology.NodeID]int{}}
	b.plans[r.Plan] = e
	b.order = append(b.order, r.Plan)
	b.open = append(b.open, r.Plan)
	b.count[e.State]++
	return nil
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
	case journal.StepReject, journal.StepRollBack:
		e.Ended = &remap.Ended{By: r.Actor, At: r.At, Reason: r.Reason}
	case journal.StepComplete:
		e.Ended = nil
	}
	switch r.Kind {
	case journal.StepMeasure:
		e.measured(r)
		return
	case journal.StepRollBack:
		e.Goal, e.Undo, e.undo = r.Goal, nil, map[topology.NodeID]int{}
	case journal.StepComplete:
		// After a roll back, however partial, what was moved once may be back: move all again.
		back := e.Goal != ""
		e.Results = slices.DeleteFunc(e.Results, func(x remap.Result) bool { return back || !x.OK })
		e.results, e.Goal = index(e.Results), ""
	case journal.StepUndone:
		e.Undo = merge(e.Undo, e.undo, r.Results)
	default:
		e.Results = merge(e.Results, e.results, r.Results)
	}
	seen, at := e.Results, e.results
	if e.Goal != "" {
		seen, at = e.Undo, e.undo
	}
	for _, n := range r.Observed {
		if i, ok := at[n]; ok {
			seen[i].Verified = true
		}
	}
}

// merge adds results; the newer word on a node replaces the older.
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

// open returns the moves that a run still has to make: those without a good result, or for a roll
// back those not yet taken back.
func (e *entry) open() []remap.Move {
	results, at := e.Results, e.results
	if e.Goal != "" {
		results, at = e.Undo, e.undo
	}
	var moves []remap.Move
	for _, m := range e.Moves {
		if i, ok := at[m.Node]; !ok || !results[i].OK {
			moves = append(moves, m)
		}
	}
	return moves
}

// unseen returns the moves that are done by the driver's word and not yet observed.
func (e *entry) unseen() []remap.Move {
	results, at := e.Results, e.results
	if e.Goal != "" {
		results, at = e.Undo, e.undo
	}
	var moves []remap.Move
	for _, m := range e.Moves {
		if i, ok := at[m.Node]; ok && results[i].OK && !results[i].Verified {
			moves = append(moves, m)
		}
	}
	return moves
}

// result returns the newest word on a node in the direction the plan is going.
func (e *entry) result(n topology.NodeID) (remap.Result, bool) {
	results, at := e.Results, e.results
	if e.Goal != "" {
		results, at = e.Undo, e.undo
	}
	i, ok := at[n]
	if !ok {
		return remap.Result{}, false
	}
	return results[i], true
}

// used looks an idempotency key up: the plan it acted on, or ErrConflict.
func (b *book) used(by remap.Person, key, body string) (plan string, ok bool, err error) {
	u, ok := b.keys[by.Name+"\x00"+key]
	if key == "" || !ok {
		return "", false, nil
	}
	if u.body != body {
		return "", false, fmt.Errorf("%w: key %q of %s belongs to plan %s", remap.ErrConflict, key, by.Name, u.plan)
	}
	return u.plan, true, nil
}

// forget drops idempotency keys older than their life.
func (b *book) forget(now time.Time) {
	for k, u := range b.keys {
		if now.Sub(u.at) > keyLife {
			delete(b.keys, k)
		}
	}
}
