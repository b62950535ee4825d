package remap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
)

// disk is a journal file in memory that dies: after `left` more bytes, or at sync number `syncs`.
// What was written before stays, as after kill -9.
type disk struct {
	data  []byte
	left  int // bytes; negative: it does not die
	syncs int // negative: it does not die
	dead  bool
}

var errKilled = errors.New("killed")

func (k *disk) Write(p []byte) (int, error) {
	if k.dead {
		return 0, errKilled
	}
	if k.left >= 0 && len(p) >= k.left {
		p, k.dead = p[:k.left], true
	}
	k.data = append(k.data, p...)
	if k.dead {
		return len(p), errKilled
	}
	if k.left >= 0 {
		k.left -= len(p)
	}
	return len(p), nil
}

func (k *disk) Sync() error {
	if k.syncs == 0 {
		k.dead = true
	}
	if k.dead {
		return errKilled
	}
	k.syncs--
	return nil
}

func (k *disk) Truncate(n int64) error {
	if k.dead {
		return errKilled
	}
	k.data = k.data[:n]
	return nil
}

func (k *disk) Close() error { return nil }

// restart opens a desk on what is left of the disk, as OpenDesk does with a file.
func restart(t *testing.T, k *disk, m *testMachine, change func(*Settings)) *Desk {
	t.Helper()
	b := newBook()
	c := chain{name: "journal"}
	if err := c.read(bytes.NewReader(k.data), b.take); err != nil {
		t.Fatalf("replay after a kill: %v", err)
	}
	k.data, k.dead = k.data[:c.size], false
	set := DefaultSettings()
	if change != nil {
		change(&set)
	}
	cfg := Config{Settings: set, Driver: m, Situation: m.situation}
	return startDesk(cfg, b, &Journal{file: k, seq: c.seq, prev: c.prev, size: c.size})
}

// story is a plan's whole life: partial, completed, verified, rolled back. It returns the last
// state that was answered, and stops at the first failure.
func story(t *testing.T, d *Desk, m *testMachine) (answered PlanState) {
	p, err := d.Propose(t.Context(), olga, Request{Key: "p", Moves: MoveAll(nodes(0, 1, 2), "fwd3"), Reason: why})
	if err != nil {
		return ""
	}
	answered = p.State
	m.set(func() { m.fails["cn1"] = 1 })
	for _, act := range []func() (Plan, error){
		func() (Plan, error) {
			v, err := d.Preview(t.Context(), sam, p.ID)
			if err != nil {
				return Plan{}, err
			}
			return d.Approve(t.Context(), sam, p.ID, Answer{Key: "a", Hash: v.Hash, Reason: why})
		},
		func() (Plan, error) { return d.Complete(t.Context(), sam, p.ID, Answer{Key: "c", Reason: why}) },
		func() (Plan, error) { return d.RollBack(t.Context(), sam, p.ID, Answer{Key: "r", Reason: why}) },
	} {
		q, err := act()
		if err != nil {
			return answered
		}
		answered = q.State
		time.Sleep(3 * time.Second)
		if q, err = d.Plan(t.Context(), p.ID); err == nil {
			answered = q.State
		}
	}
	return answered
}

// TestKillAtEveryStep kills the daemon at every record of a plan's life: before it, in the middle,
// with its last byte unwritten, and after it but before the fsync. Whatever is answered must hold
// after the restart, and no move may be made twice.
func TestKillAtEveryStep(t *testing.T) {
	whole := &disk{left: -1, syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(8, 4)
		d := restart(t, whole, m, nil)
		if got := story(t, d, m); got != RolledBack {
			t.Fatalf("the undisturbed story ends as %s", got)
		}
		d.Close()
	})
	records := bytes.Count(whole.data, []byte("\n"))
	if records < 12 {
		t.Fatalf("the story has only %d records", records)
	}
	at := 0
	for i, line := range bytes.SplitAfter(whole.data, []byte("\n")) {
		if len(line) == 0 {
			break
		}
		for _, cut := range []int{0, len(line) / 2, len(line) - 1} {
			name := fmt.Sprintf("record %d, %d of %d bytes written", i+1, cut, len(line))
			t.Run(name, func(t *testing.T) { killAt(t, &disk{left: at + cut, syncs: -1}) })
		}
		t.Run(fmt.Sprintf("record %d written, not synced", i+1),
			func(t *testing.T) { killAt(t, &disk{left: -1, syncs: i}) })
		at += len(line)
	}
}

func killAt(t *testing.T, k *disk) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(8, 4)
		d := restart(t, k, m, nil)
		answered := story(t, d, m)
		d.Close()
		k.left, k.syncs = -1, -1
		d = restart(t, k, m, nil)
		defer d.Close()
		time.Sleep(time.Hour)
		plans, err := d.Plans(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(plans) == 0 {
			if answered != "" {
				t.Fatalf("%s was answered, and the plan is lost", answered)
			}
			return
		}
		checkLegal(t, m, plans[0], answered)
	})
}

// checkLegal says what must hold of the story's plan an hour after a restart.
func checkLegal(t *testing.T, m *testMachine, p Plan, answered PlanState) {
	t.Helper()
	moved := 0
	for _, n := range nodes(0, 1, 2) {
		if m.where(n) == "fwd3" {
			moved++
		}
		if m.changes[n] > 2 {
			t.Errorf("%s was moved %d times: there and back is twice", n, m.changes[n])
		}
	}
	if p.State.moving() || p.State == Applied {
		t.Errorf("an hour after the restart the plan is still %s", p.State)
	}
	want := map[PlanState][]int{Expired: {0}, Proposed: {0}, Verified: {3}, RolledBack: {0}, Partial: {2, 3},
		Failed: {0}}[p.State]
	if !slices.Contains(want, moved) {
		t.Errorf("plan is %s (%s) with %d of 3 nodes moved", p.State, p.Error, moved)
	}
	if moved > 0 && len(p.Approvals) == 0 {
		t.Error("nodes were moved without an approval on record")
	}
	rank := []PlanState{"", Proposed, Expired, Approved, Applying, Partial, Applied, Verified, RollingBack, RolledBack}
	if slices.Index(rank, p.State) < slices.Index(rank, answered) {
		t.Errorf("%s was answered, after the restart the plan is %s", answered, p.State)
	}
}

// TestRandomLives drives random plans by random people with failing nodes and kills at random
// bytes, and checks what must always hold.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomLife(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func randomLife(t *testing.T, r *rand.Rand) {
	m := newTestMachine(12, 4)
	k := &disk{left: -1, syncs: -1}
	d := restart(t, k, m, nil)
	for range 60 {
		randomAct(t, r, d, m)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		checkNoNodeInTwoPlans(t, d)
		if r.IntN(8) == 0 {
			k.left = r.IntN(3000) // dies somewhere in the next steps
		}
		if k.dead {
			d.Close()
			k.left = -1
			d = restart(t, k, m, nil)
		}
	}
	k.left = -1
	d.Close()
	d = restart(t, k, m, nil)
	m.set(func() { clear(m.fails); clear(m.blind) })
	time.Sleep(time.Hour)
	checkReplay(t, d, k)
	checkOnRecord(t, k)
	takeAllBack(t, d)
	for n, f := range m.start {
		if m.where(n) != f {
			t.Errorf("%s is on %s after everything was rolled back, was on %s", n, m.where(n), f)
		}
	}
	d.Close()
}

func randomAct(t *testing.T, r *rand.Rand, d *Desk, m *testMachine) {
	people := []Person{olga, sam, vera, {Name: "root", Role: Admin}}
	by, ctx := pick(r, people...), t.Context()
	plans, err := d.Plans(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) == 0 || r.IntN(3) == 0 {
		var some []topology.NodeID
		for _, i := range r.Perm(12)[:1+r.IntN(4)] {
			some = append(some, node(i))
		}
		_, _ = d.Propose(ctx, by, Request{Moves: MoveAll(some, forwarder(r.IntN(4))), Reason: why})
		return
	}
	id := plans[r.IntN(min(len(plans), 4))].ID
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		if v, err := d.Preview(ctx, by, id); err == nil {
			_, _ = d.Approve(ctx, by, id, Answer{Hash: v.Hash, Reason: why})
		}
	case 4:
		_, _ = d.RollBack(ctx, by, id, Answer{Reason: why})
	case 5:
		_, _ = d.Complete(ctx, by, id, Answer{Reason: why})
	case 6:
		_, _ = d.Reject(ctx, by, id, Answer{Reason: why})
	case 7:
		_, _ = d.Stop(ctx, by, id, Answer{Reason: why})
	case 8:
		m.set(func() { m.fails[node(r.IntN(12))] = 1 + r.IntN(2) })
	case 9:
		m.set(func() { n := node(r.IntN(12)); m.blind[n] = !m.blind[n] })
	}
}

func checkNoNodeInTwoPlans(t *testing.T, d *Desk) {
	t.Helper()
	plans, err := d.Plans(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	in := map[topology.NodeID]string{}
	for _, p := range plans {
		if !p.State.moving() {
			continue
		}
		for _, mv := range p.Moves {
			if in[mv.Node] != "" {
				t.Errorf("%s is being moved by %s and %s", mv.Node, in[mv.Node], p.ID)
			}
			in[mv.Node] = p.ID
		}
	}
}

// checkReplay says that the journal alone gives the state that the desk has.
func checkReplay(t *testing.T, d *Desk, k *disk) {
	t.Helper()
	live, err := d.Plans(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := newBook()
	c := chain{name: "journal"}
	if err := c.read(bytes.NewReader(k.data), b.take); err != nil {
		t.Fatal(err)
	}
	for _, head := range live {
		p, err := d.Plan(t.Context(), head.ID)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(p)
		e, err := b.get(p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if z, _ := json.Marshal(b.whole(e)); !bytes.Equal(a, z) {
			t.Errorf("replayed plan differs\nlive   %s\nreplay %s", a, z)
		}
	}
	if len(b.order) != len(live) {
		t.Errorf("%d plans, %d replayed", len(live), len(b.order))
	}
}

// checkOnRecord says that every plan that was started has an approval before it by somebody other
// than its proposer.
func checkOnRecord(t *testing.T, k *disk) {
	t.Helper()
	proposer, approved, started := map[string]string{}, map[string]bool{}, 0
	c := chain{name: "journal"}
	err := c.read(bytes.NewReader(k.data), func(r *Record) error {
		switch r.Kind {
		case StepPropose:
			proposer[r.Plan] = r.Actor
		case StepApprove:
			approved[r.Plan] = r.Actor != "" && r.Actor != proposer[r.Plan] && r.Actor != "vera"
		case StepStart, StepResults:
			started++
			if !approved[r.Plan] {
				return fmt.Errorf("plan %s was begun without an approval", r.Plan)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func takeAllBack(t *testing.T, d *Desk) {
	t.Helper()
	for range 100 {
		plans, err := d.Plans(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(plans, func(a, b Plan) int { return b.approvedAt().Compare(a.approvedAt()) })
		i := slices.IndexFunc(plans, func(p Plan) bool { return p.State.holds() })
		if i < 0 {
			return
		}
		if _, err := d.RollBack(t.Context(), olga, plans[i].ID, Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	}
	t.Error("plans remain that cannot be rolled back")
}
