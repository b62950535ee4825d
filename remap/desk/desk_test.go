package desk

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

var (
	olga = remap.Person{Name: "olga", Role: remap.Operator, Via: "unix"}
	sam  = remap.Person{Name: "sam", Role: remap.Operator, Via: "unix"}
	vera = remap.Person{Name: "vera", Role: remap.Viewer, Via: "unix"}
)

const why = "forwarder 0 is slow for job 88231"

// inDesk runs f in a bubble of fake time with a desk over m.
func inDesk(t *testing.T, m *testMachine, change func(*Settings), f func(t *testing.T, d *Desk, path string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	synctest.Test(t, func(t *testing.T) {
		d := openTestDesk(t, m, path, change)
		f(t, d, path)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Verify(path); err != nil {
			t.Error(err)
		}
	})
}

func openTestDesk(t *testing.T, m *testMachine, path string, change func(*Settings)) *Desk {
	t.Helper()
	set := DefaultSettings()
	if change != nil {
		change(&set)
	}
	d, _, err := Open(Config{Settings: set, Path: path, Driver: m, Situation: m.situation})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func propose(t *testing.T, d *Desk, by remap.Person, r remap.Request) remap.Plan {
	t.Helper()
	p, err := d.Propose(t.Context(), by, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func approve(t *testing.T, d *Desk, by remap.Person, id string) remap.Plan {
	t.Helper()
	v, err := d.Preview(t.Context(), by, id)
	if err != nil {
		t.Fatal(err)
	}
	v, err = d.Approve(t.Context(), by, id, remap.Answer{Hash: v.Hash, Reason: why})
	if err != nil {
		t.Fatal(err)
	}
	return v.Plan
}

func wantState(t *testing.T, d *Desk, id string, want remap.PlanState) remap.Plan {
	t.Helper()
	p, err := d.Plan(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if p.State != want {
		t.Fatalf("plan %s is %s (%s), want %s", id, p.State, p.Error, want)
	}
	return p
}

func wantErr(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want one that wraps %q", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("error %q does not say %q", err, w)
		}
	}
}

func TestAPlanFromProposalToVerifiedAndBack(t *testing.T) {
	m := newTestMachine(4, 2)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd1"), Reason: why})
		if p.ID != "P-000001" || p.State != remap.Proposed || p.Moves[0].From != "fwd0" {
			t.Fatalf("proposal is %+v", p)
		}
		approve(t, d, sam, p.ID)
		time.Sleep(2 * time.Second)
		p = wantState(t, d, p.ID, remap.Verified)
		if m.where("cn0") != "fwd1" || m.where("cn1") != "fwd1" {
			t.Fatalf("nodes are on %s and %s", m.where("cn0"), m.where("cn1"))
		}
		if n, ok, failed, verified := p.Progress(); n != 2 || ok != 2 || failed != 0 || verified != 2 {
			t.Fatalf("progress %d of %d, failed %d, verified %d", ok, n, failed, verified)
		}
		if _, err := d.RollBack(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		wantState(t, d, p.ID, remap.RolledBack)
		for n, f := range m.start {
			if m.where(n) != f {
				t.Errorf("%s is on %s after the roll back, was on %s", n, m.where(n), f)
			}
		}
	})
}

func TestVerifiedOnlyWhenObserved(t *testing.T) {
	m := newTestMachine(4, 2)
	m.blind["cn1"] = false
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd1"), Reason: why})
		v, _ := d.Preview(t.Context(), sam, p.ID)
		if _, err := d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why}); err != nil {
			t.Fatal(err)
		}
		m.set(func() { m.blind["cn1"] = true })
		time.Sleep(5 * time.Second)
		p = wantState(t, d, p.ID, remap.Applied)
		if !p.Results[0].Verified || p.Results[1].Verified {
			t.Fatalf("results %+v: only cn0 was seen", p.Results)
		}
		if d.Promises()["cn1"] != "fwd1" || d.Promised()["fwd1"] != p.ID {
			t.Errorf("promised are %v, %v: cn1 was not seen on fwd1 yet", d.Promises(), d.Promised())
		}
		time.Sleep(time.Minute)
		p = wantState(t, d, p.ID, remap.Partial)
		if !strings.Contains(p.Error, "not observed") || !strings.Contains(p.Error, "cn1") {
			t.Errorf("error %q does not name the unseen node", p.Error)
		}
	})
}

func TestProposalsExpire(t *testing.T) {
	inDesk(t, newTestMachine(4, 2), nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Reason: why})
		time.Sleep(14*time.Minute + 59*time.Second)
		wantState(t, d, p.ID, remap.Proposed)
		time.Sleep(2 * time.Second)
		p = wantState(t, d, p.ID, remap.Expired)
		if e := p.Ended; e == nil || e.By != "desk" || e.Reason != "nobody approved it in time" {
			t.Errorf("who withdrew it and why: %+v", e)
		}
		_, err := d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: "x", Reason: why})
		wantErr(t, err, remap.ErrState, "expired", p.ID)
	})
}

func TestRefusals(t *testing.T) {
	m := newTestMachine(8, 4)
	m.exclude["fwd3"] = "slow disk"
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		ctx := t.Context()
		request := func(by remap.Person, r remap.Request) error { _, err := d.Propose(ctx, by, r); return err }
		wantErr(t, request(vera, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1")}), remap.ErrNotAllowed, "vera",
			"operator")
		wantErr(t, request(olga, remap.Request{}), remap.ErrInvalid, "no compute node")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(99), "fwd1")}), remap.ErrInvalid, "cn99")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd9")}), remap.ErrInvalid, "fwd9")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0), "cn1")}), remap.ErrInvalid, "cn1",
			"forwarding")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0, 0), "fwd1")}), remap.ErrInvalid, "cn0",
			"twice")
		wantErr(t, request(olga, remap.Request{Moves: []remap.Move{{Node: "cn0", From: "fwd2", To: "fwd1"}}}),
			remap.ErrInvalid, "fwd0",
			"fwd2")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Dedicated: true}),
			remap.ErrInvalid, "job")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Reason: "bell \a rings"}),
			remap.ErrInvalid,
			"control")
		wantErr(t, request(olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"),
			Reason: strings.Repeat("x", 2001)}),
			remap.ErrInvalid, "2001")

		_, err := d.Preview(ctx, olga, "P-999999")
		wantErr(t, err, remap.ErrNotFound, "P-999999")
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Reason: why})
		v, _ := d.Preview(ctx, olga, p.ID)
		if v.MayApprove != "you proposed it" {
			t.Errorf("may approve says %q to the proposer", v.MayApprove)
		}
		_, err = d.Approve(ctx, olga, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrNotAllowed, "olga", "proposed")
		_, err = d.Approve(ctx, sam, p.ID, remap.Answer{Hash: v.Hash, Reason: "too short"})
		wantErr(t, err, remap.ErrInvalid, "too short", "10")
		_, err = d.Approve(ctx, sam, p.ID, remap.Answer{Hash: "another", Reason: why})
		wantErr(t, err, remap.ErrChanged, p.ID)
		_, err = d.RollBack(ctx, sam, p.ID, remap.Answer{Reason: why})
		wantErr(t, err, remap.ErrState, "proposed")

		p = propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		v, _ = d.Preview(ctx, sam, p.ID)
		_, err = d.Approve(ctx, sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrState, "fwd3", "slow disk")
		if m.orders != 0 {
			t.Errorf("%d orders were sent by refused plans", m.orders)
		}
	})
}

func TestIdempotencyKeys(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, path string) {
		ask := remap.Request{Key: "k1", Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why}
		p := propose(t, d, olga, ask)
		if again := propose(t, d, olga, ask); again.ID != p.ID {
			t.Fatalf("the same request made %s and %s", p.ID, again.ID)
		}
		ask.Moves = remap.MoveAll(nodes(1), "fwd3")
		_, err := d.Propose(t.Context(), olga, ask)
		wantErr(t, err, remap.ErrConflict, "k1", p.ID)
		v, _ := d.Preview(t.Context(), sam, p.ID)
		yes := remap.Answer{Key: "k2", Hash: v.Hash, Reason: why}
		for range 3 {
			if _, err := d.Approve(t.Context(), sam, p.ID, yes); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		p = wantState(t, d, p.ID, remap.Verified)
		if len(p.Approvals) != 1 || m.changes["cn0"] != 1 {
			t.Errorf("%d approvals, %d changes of one repeated answer", len(p.Approvals), m.changes["cn0"])
		}
		yes.Reason = "quite another reason"
		_, err = d.Approve(t.Context(), sam, p.ID, yes)
		wantErr(t, err, remap.ErrConflict, "k2")
	})
}

func TestPartialIsCompletedOrRolledBack(t *testing.T) {
	for _, back := range []bool{false, true} {
		m := newTestMachine(8, 4)
		m.fails["cn1"] = 1
		inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
			p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd3"), Reason: why})
			approve(t, d, sam, p.ID)
			time.Sleep(2 * time.Second)
			p = wantState(t, d, p.ID, remap.Partial)
			if !strings.Contains(p.Error, "1 of 2 not moved: cn1 (the node does not answer)") {
				t.Errorf("error %q", p.Error)
			}
			if !p.Results[0].Verified {
				t.Error("what was moved was not verified")
			}
			act, want := d.Complete, remap.Verified
			if back {
				act, want = d.RollBack, remap.RolledBack
			}
			if _, err := act(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			wantState(t, d, p.ID, want)
			if on := m.where("cn1"); (on == "fwd0") != back {
				t.Errorf("cn1 is on %s", on)
			}
			if n := m.changes["cn0"]; !back && n != 1 {
				t.Errorf("completing moved a node again that was moved: %d changes", n)
			}
		})
	}
}

// A partial plan is not gone on with while another one is moving a node of it.
func TestCompleteWaitsForOtherPlans(t *testing.T) {
	m := newTestMachine(8, 4)
	m.fails[node(0)] = 1000
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		a := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd3"), Reason: why})
		approve(t, d, sam, a.ID)
		time.Sleep(time.Second)
		wantState(t, d, a.ID, remap.Partial)
		gate := make(chan struct{})
		m.set(func() { m.fails[node(0)], m.gate = 0, gate })
		b := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd2"), Reason: why})
		approve(t, d, sam, b.ID)
		_, err := d.Complete(t.Context(), sam, a.ID, remap.Answer{Reason: why})
		wantErr(t, err, remap.ErrState, "cn0 is being moved by "+b.ID)
		close(gate)
		time.Sleep(time.Second)
		wantState(t, d, b.ID, remap.Verified)
	})
}

func TestRollBackDuringApply(t *testing.T) {
	m := newTestMachine(64, 2)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		m.gate = make(chan struct{}, 64) // of this bubble
		var all []topology.NodeID
		for i := range 32 {
			all = append(all, node(i))
		}
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(all, "fwd1"), Reason: why})
		approve(t, d, sam, p.ID)
		for range 10 {
			m.gate <- struct{}{}
		}
		time.Sleep(time.Second)
		p = wantState(t, d, p.ID, remap.Applying)
		if _, ok, _, _ := p.Progress(); ok != 10 {
			t.Fatalf("progress %d, want 10 of 32", ok)
		}
		if _, err := d.RollBack(t.Context(), sam, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		close(m.gate)
		time.Sleep(2 * time.Second)
		p = wantState(t, d, p.ID, remap.RolledBack)
		if len(p.Undo) != 32 {
			t.Errorf("%d undo results, want one for each of 32 moves", len(p.Undo))
		}
		for n, f := range m.start {
			if m.where(n) != f {
				t.Errorf("%s is on %s, was on %s", n, m.where(n), f)
			}
		}
	})
}

func TestStopLeavesAPartialPlan(t *testing.T) {
	m := newTestMachine(64, 2)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		m.gate = make(chan struct{}, 64) // of this bubble
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1, 2, 3), "fwd1"), Reason: why})
		approve(t, d, sam, p.ID)
		m.gate <- struct{}{}
		time.Sleep(time.Second)
		if _, err := d.Stop(t.Context(), sam, p.ID, remap.Answer{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p = wantState(t, d, p.ID, remap.Partial)
		if !strings.Contains(p.Error, "3 of 4 not moved: cn1 cn2 cn3") {
			t.Errorf("error %q", p.Error)
		}
	})
}

func TestOlderPlanIsNotRolledBackOverANewerOne(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		var ids []string
		for _, to := range []topology.ForwarderID{"fwd1", "fwd2"} {
			p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), to), Reason: why})
			approve(t, d, sam, p.ID)
			time.Sleep(2 * time.Second)
			wantState(t, d, p.ID, remap.Verified)
			ids = append(ids, p.ID)
		}
		_, err := d.RollBack(t.Context(), olga, ids[0], remap.Answer{Reason: why})
		wantErr(t, err, remap.ErrState, "cn0", ids[1])
		for _, id := range []string{ids[1], ids[0]} {
			if _, err := d.RollBack(t.Context(), olga, id, remap.Answer{Reason: why}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if m.where("cn0") != "fwd0" {
			t.Errorf("cn0 is on %s", m.where("cn0"))
		}
	})
}

func TestSlowWatcherIsDroppedAndCounted(t *testing.T) {
	inDesk(t, newTestMachine(8, 4), nil, func(t *testing.T, d *Desk, _ string) {
		slow, stopSlow := d.Watch(1)
		fast, stop := d.Watch(16)
		defer stop()
		defer stopSlow()
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		approve(t, d, sam, p.ID)
		time.Sleep(2 * time.Second)
		if len(slow) != 1 || len(fast) < 5 {
			t.Errorf("slow watcher has %d notices, fast one %d", len(slow), len(fast))
		}
		if got := d.DroppedChanges(); got != uint64(len(fast)-1) {
			t.Errorf("%d dropped, want %d", got, len(fast)-1)
		}
	})
}

func TestClosedDeskSaysSo(t *testing.T) {
	d := openTestDesk(t, newTestMachine(2, 2), filepath.Join(t.TempDir(), "journal"), nil)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := d.Plans(context.Background(), 0)
	wantErr(t, err, remap.ErrClosed)
}

func TestAfterARestartThePlanWaitsForItsAgents(t *testing.T) {
	m := newTestMachine(8, 4)
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		m.gate = make(chan struct{}) // of this bubble
		d := restart(t, k, m, nil)
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		approve(t, d, sam, p.ID)
		time.Sleep(time.Second)
		d.Close()
		m.blind["cn0"] = true
		close(m.gate)
		d = restart(t, k, m, nil)
		defer d.Close()
		time.Sleep(10 * time.Second)
		wantState(t, d, p.ID, remap.Applying)
		if m.orders != 0 {
			t.Errorf("%d orders before the node reported", m.orders)
		}
		m.set(func() { m.blind["cn0"] = false })
		time.Sleep(2 * time.Second)
		wantState(t, d, p.ID, remap.Verified)
	})
}
