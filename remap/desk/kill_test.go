package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// onDisk is a new journal on a file.
func onDisk(f appendlog.Handle) *journal.Journal {
	j, _, _ := journal.OnFile(f, strings.NewReader(""), nil)
	return j
}

// restart opens a desk on what is left of the disk, as Open does with a file.
func restart(t *testing.T, k *journaltest.Disk, m *testMachine, change func(*Settings)) *Desk {
	t.Helper()
	b := newState()
	j, size, err := journal.OnFile(k, bytes.NewReader(k.Data), b.replay)
	if err != nil {
		t.Fatalf("replay after a kill: %v", err)
	}
	k.Data, k.Dead = k.Data[:size], false
	set := DefaultSettings()
	if change != nil {
		change(&set)
	}
	cfg := Config{Settings: set, Driver: m, Situation: m.situation}
	return start(cfg, b, j)
}

// story is a plan's whole life: partial, completed, verified, rolled back. It returns the last
// state that was answered, and stops at the first failure.
func story(t *testing.T, d *Desk, m *testMachine) (answered remap.PlanState) {
	p, err := d.Propose(t.Context(), olga, remap.Request{Key: "p", Moves: remap.MoveAll(nodes(0, 1, 2), "fwd3"),
		Reason: why})
	if err != nil {
		return ""
	}
	answered = p.State
	m.set(func() { m.fails["cn1"] = 1 })
	for _, act := range []func() (remap.Plan, error){
		func() (remap.Plan, error) {
			v, err := d.Preview(t.Context(), sam, p.ID)
			if err != nil {
				return remap.Plan{}, err
			}
			v, err = d.Approve(t.Context(), sam, p.ID, remap.Answer{Key: "a", Hash: v.Hash, Reason: why})
			return v.Plan, err
		},
		func() (remap.Plan, error) {
			return d.Complete(t.Context(), sam, p.ID, remap.Answer{Key: "c", Reason: why})
		},
		func() (remap.Plan, error) {
			return d.RollBack(t.Context(), sam, p.ID, remap.Answer{Key: "r", Reason: why})
		},
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

// TestKillAtEveryStep kills the daemon at every record of a plan's life: before it, within it,
// with its last byte unwritten, and after it but before the fsync. Whatever is answered must hold
// after the restart, and no move may be made twice.
func TestKillAtEveryStep(t *testing.T) {
	whole := &journaltest.Disk{Left: -1, Syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(8, 4)
		d := restart(t, whole, m, nil)
		if got := story(t, d, m); got != remap.RolledBack {
			t.Fatalf("the undisturbed story ends as %s", got)
		}
		d.Close()
	})
	records := bytes.Count(whole.Data, []byte("\n"))
	if records < 12 {
		t.Fatalf("the story has only %d records", records)
	}
	at := 0
	for i, line := range bytes.SplitAfter(whole.Data, []byte("\n")) {
		if len(line) == 0 {
			break
		}
		for _, cut := range []int{0, len(line) / 2, len(line) - 1} {
			name := fmt.Sprintf("record %d, %d of %d bytes written", i+1, cut, len(line))
			t.Run(name, func(t *testing.T) { killAt(t, &journaltest.Disk{Left: at + cut, Syncs: -1}) })
		}
		t.Run(fmt.Sprintf("record %d written, not synced", i+1),
			func(t *testing.T) { killAt(t, &journaltest.Disk{Left: -1, Syncs: i}) })
		at += len(line)
	}
}

func killAt(t *testing.T, k *journaltest.Disk) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(8, 4)
		d := restart(t, k, m, nil)
		answered := story(t, d, m)
		d.Close()
		k.Left, k.Syncs = -1, -1
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
func checkLegal(t *testing.T, m *testMachine, p remap.Plan, answered remap.PlanState) {
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
	if p.State.Moving() || p.State == remap.Applied {
		t.Errorf("an hour after the restart the plan is still %s", p.State)
	}
	want := map[remap.PlanState][]int{remap.Expired: {0}, remap.Proposed: {0}, remap.Verified: {3},
		remap.RolledBack: {0}, remap.Partial: {2, 3},
		remap.Failed: {0}}[p.State]
	if !slices.Contains(want, moved) {
		t.Errorf("plan is %s (%s) with %d of 3 nodes moved", p.State, p.Error, moved)
	}
	if moved > 0 && len(p.Approvals) == 0 {
		t.Error("nodes were moved without an approval on record")
	}
	rank := []remap.PlanState{"", remap.Proposed, remap.Expired, remap.Approved, remap.Applying, remap.Partial,
		remap.Applied, remap.Verified, remap.RollingBack, remap.RolledBack}
	if slices.Index(rank, p.State) < slices.Index(rank, answered) {
		t.Errorf("%s was answered, after the restart the plan is %s", answered, p.State)
	}
}

// TestCompleteMovesAgainWhatWasNotSeen: a node's mount was killed after its move and came back on its default: the
// driver reported it as moved, and nobody saw it there. Completing the plan moves it.
func TestCompleteMovesAgainWhatWasNotSeen(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd3"), Reason: why})
		approve(t, d, sam, p.ID)
		m.set(func() { m.blind["cn0"] = true })
		time.Sleep(time.Minute)
		p = wantState(t, d, p.ID, remap.Partial)
		if !strings.Contains(p.Error, "not observed within") {
			t.Errorf("it is partial for %q", p.Error)
		}
		m.set(func() { m.blind["cn0"], m.at["cn0"] = false, "fwd0" })
		if _, err := d.Complete(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		wantState(t, d, p.ID, remap.Verified)
		if m.where("cn0") != "fwd3" || m.changes["cn0"] != 2 || m.changes["cn1"] != 1 {
			t.Errorf("cn0 is on %s after %d changes, cn1 had %d", m.where("cn0"), m.changes["cn0"], m.changes["cn1"])
		}
	})
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
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	d := restart(t, k, m, nil)
	for range 60 {
		randomAct(t, r, d, m)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		checkNoNodeInTwoPlans(t, d)
		if r.IntN(8) == 0 {
			k.Left = r.IntN(3000) // dies somewhere in the next steps
		}
		if k.Dead {
			d.Close()
			k.Left = -1
			d = restart(t, k, m, nil)
		}
	}
	k.Left = -1
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
	people := []remap.Person{olga, sam, vera, {Name: "root", Role: remap.Admin}}
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
		_, _ = d.Propose(ctx, by, remap.Request{Moves: remap.MoveAll(some, forwarder(r.IntN(4))), Reason: why})
		return
	}
	id := plans[r.IntN(min(len(plans), 4))].ID
	synctest.Wait()
	v, err := d.Preview(ctx, by, id)
	if err != nil {
		t.Fatal(err)
	}
	a := remap.Answer{Hash: v.Hash, Reason: why}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		_, err = d.Approve(ctx, by, id, a)
		checkOptions(t, &v, remap.ActApprove, err)
	case 4:
		_, err = d.RollBack(ctx, by, id, a)
		checkOptions(t, &v, remap.ActRollBack, err)
	case 5:
		_, err = d.Complete(ctx, by, id, a)
		checkOptions(t, &v, remap.ActComplete, err)
	case 6:
		_, err = d.Reject(ctx, by, id, a)
		checkOptions(t, &v, remap.ActReject, err)
	case 7:
		_, err = d.Stop(ctx, by, id, a)
		checkOptions(t, &v, remap.ActStop, err)
	case 8:
		m.set(func() { m.fails[node(r.IntN(12))] = 1 + r.IntN(2) })
	case 9:
		m.set(func() { n := node(r.IntN(12)); m.blind[n] = !m.blind[n] })
	}
}

// checkOptions says that the desk refuses what the preview says one cannot do, and for that reason.
func checkOptions(t *testing.T, v *remap.Preview, a remap.Action, err error) {
	t.Helper()
	if v.Options.Permits(a) {
		return
	}
	if err == nil {
		t.Errorf("%s of %s, which is %s, was accepted; the preview says %q", a, v.Plan.ID, v.Plan.State,
			v.Options.WhyNot[a])
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
		if !p.State.Moving() {
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
func checkReplay(t *testing.T, d *Desk, k *journaltest.Disk) {
	t.Helper()
	live, err := d.Plans(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := newState()
	if _, _, err := journal.OnFile(k, bytes.NewReader(k.Data), b.replay); err != nil {
		t.Fatal(err)
	}
	for _, head := range live {
		p, err := d.Plan(t.Context(), head.ID)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(p)
		e, err := b.plans.get(p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if z, _ := json.Marshal(b.plans.whole(e)); !bytes.Equal(a, z) {
			t.Errorf("replayed plan differs\nlive   %s\nreplay %s", a, z)
		}
	}
	if len(b.plans.order) != len(live) {
		t.Errorf("%d plans, %d replayed", len(live), len(b.plans.order))
	}
}

// checkOnRecord says that every plan that was started has an approval before it by somebody other
// than its proposer.
func checkOnRecord(t *testing.T, k *journaltest.Disk) {
	t.Helper()
	proposer, approved, started := map[string]string{}, map[string]bool{}, 0
	_, _, err := journal.OnFile(k, bytes.NewReader(k.Data), func(r *journal.Record) error {
		switch r.Kind {
		case journal.StepPropose:
			proposer[r.Plan] = r.Actor
		case journal.StepApprove:
			approved[r.Plan] = r.Actor != "" && r.Actor != proposer[r.Plan] && r.Actor != "vera"
		case journal.StepStart, journal.StepResults:
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
		approved := func(p *remap.Plan) (at time.Time) {
			for _, a := range p.Approvals {
				at = a.At
			}
			return at
		}
		slices.SortStableFunc(plans, func(a, b remap.Plan) int { return approved(&b).Compare(approved(&a)) })
		i := slices.IndexFunc(plans, func(p remap.Plan) bool { return p.State.Holds() })
		if i < 0 {
			return
		}
		if _, err := d.RollBack(t.Context(), olga, plans[i].ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	}
	t.Error("plans remain that cannot be rolled back")
}
