package desk

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/remap"
	"fairway/remap/journal"
)

var policy = remap.Person{Name: "scale-out", Role: remap.Operator, Via: remap.ViaPolicy}

func ask(i int, app string) remap.Request {
	return remap.Request{App: app, User: "wei", Moves: remap.MoveAll(nodes(i), "fwd3"), Reason: "wants more bandwidth"}
}

func TestObserveAppliesNothing(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, func(s *Settings) { s.Mode = remap.ModeObserve }, func(t *testing.T, d *Desk, _ string) {
		if _, err := d.Allow(t.Context(), olga, "ROMS", "", time.Hour, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		p := propose(t, d, policy, ask(0, "ROMS"))
		v, err := d.Preview(t.Context(), sam, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrState, "observe")
		time.Sleep(time.Minute)
		wantState(t, d, p.ID, remap.Proposed)
		if m.orders != 0 {
			t.Errorf("%d orders", m.orders)
		}
	})
}

func TestAutoApprovesPoliciesWithinTheGuardRails(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, func(s *Settings) { s.Mode, s.PlansPerMinute = remap.ModeAuto, 2 },
		func(t *testing.T, d *Desk, _ string) {
			byHand := propose(t, d, olga, ask(5, "ROMS"))
			m.set(func() { m.late = 5 * time.Second })
			stale := propose(t, d, policy, ask(4, "ROMS"))
			m.set(func() { m.late = 0 })
			a, b, c := propose(t, d, policy, ask(0, "ROMS")), propose(t, d, policy, ask(1, "")),
				propose(t, d, policy, ask(2, ""))
			time.Sleep(2 * time.Second)
			wantState(t, d, a.ID, remap.Verified)
			wantState(t, d, b.ID, remap.Verified)
			wantState(t, d, c.ID, remap.Proposed) // the third within a minute
			wantState(t, d, stale.ID, remap.Proposed)
			wantState(t, d, byHand.ID, remap.Proposed)
			time.Sleep(time.Minute)
			p := propose(t, d, policy, ask(3, ""))
			if len(p.Approvals) != 1 || p.Approvals[0].By != "auto" || p.Approvals[0].Via != remap.ViaRule {
				t.Errorf("approvals %+v", p.Approvals)
			}
		})
}

// together is a driver whose first previews wait for each other, so that their plans are decided at once.
type together struct {
	*testMachine
	all sync.WaitGroup
	n   atomic.Int32
}

func (d *together) Preview(context.Context, remap.Plan) ([]string, error) {
	if d.n.Add(1) <= 3 {
		d.all.Done()
		d.all.Wait()
	}
	return nil, nil
}

// TestRateHoldsForPlansDecidedAtOnce proposes three plans in the same moment; one a minute may be ruled.
func TestRateHoldsForPlansDecidedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &together{testMachine: newTestMachine(8, 4)}
		m.all.Add(3)
		set := DefaultSettings()
		set.Mode, set.PlansPerMinute = remap.ModeAuto, 1
		d, _, err := Open(Config{Settings: set, Path: filepath.Join(t.TempDir(), "journal"), Driver: m,
			Situation: m.situation})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var wait sync.WaitGroup
		for i := range 3 {
			wait.Go(func() { propose(t, d, policy, ask(i, "")) })
		}
		wait.Wait()
		plans, err := d.Plans(t.Context(), 0)
		if n := len(slices.DeleteFunc(plans,
			func(p remap.Plan) bool { return p.State == remap.Proposed })); err != nil || n != 1 {
			t.Errorf("%d plans were approved by rule within a minute, %v; one may be", n, err)
		}
	})
}

func TestStandingApprovals(t *testing.T) {
	m := newTestMachine(8, 4)
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := restart(t, k, m, nil)
		s, err := d.Allow(ctx, olga, "ROMS", "wei", time.Hour, remap.Answer{Key: "k", Reason: why})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := d.Allow(ctx, olga, "ROMS", "wei", time.Hour,
			remap.Answer{Key: "k", Reason: why}); err != nil ||
			again.ID != s.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		for _, err := range []error{
			errOf2(d.Allow(ctx, olga, "", "wei", time.Hour, remap.Answer{Reason: why})),
			errOf2(d.Allow(ctx, olga, "ROMS", "wei", time.Second, remap.Answer{Reason: why})),
			errOf2(d.Allow(ctx, olga, "ROMS", "wei", time.Hour, remap.Answer{})),
		} {
			wantErr(t, err, remap.ErrInvalid)
		}
		d.Close()
		d = restart(t, k, m, nil)
		covered, other := propose(t, d, policy, ask(0, "ROMS")), propose(t, d, policy, ask(1, "WRF"))
		byHand := propose(t, d, sam, ask(2, "ROMS"))
		time.Sleep(2 * time.Second)
		p := wantState(t, d, covered.ID, remap.Verified)
		if p.Approvals[0].By != "olga" || p.Approvals[0].Via != remap.ViaRule {
			t.Errorf("approvals %+v", p.Approvals)
		}
		wantState(t, d, other.ID, remap.Proposed)
		wantState(t, d, byHand.ID, remap.Proposed)
		time.Sleep(time.Hour)
		if p := propose(t, d, policy, ask(3, "ROMS")); p.State != remap.Proposed {
			t.Errorf("an hour later the plan is %s", p.State)
		}
		s, err = d.Allow(ctx, olga, "ROMS", "", time.Hour, remap.Answer{Key: "all", Reason: why})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time the same request
			if err := d.Revoke(ctx, sam, s.ID, remap.Answer{Key: "r"}); err != nil {
				t.Fatal(err)
			}
		}
		wantErr(t, d.Revoke(ctx, sam, s.ID, remap.Answer{}), remap.ErrNotFound, s.ID)
		wantErr(t, errOf2(d.Allow(ctx, olga, "ROMS", "", time.Hour, remap.Answer{Key: "all", Reason: why})),
			remap.ErrState, s.ID)
		if p := propose(t, d, policy, ask(4, "ROMS")); p.State != remap.Proposed {
			t.Errorf("after the revocation the plan is %s", p.State)
		}
		if all, err := d.Standing(ctx); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
		d.Close()
	})
}

func errOf2(_ remap.Standing, err error) error { return err }

// A standing approval holds while its giver is an operator. Where only the next sign-in shows it, it holds; the audit
// says that nobody looked.
func TestAStandingApprovalHoldsWhileItsGiverHasTheRole(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		role, known := remap.Operator, true
		d.cfg.RoleOf = func(name, via string) (remap.Role, bool) {
			if name != "olga" || via != "unix" {
				t.Errorf("asked for %q by %q", name, via)
			}
			return role, known
		}
		if _, err := d.Allow(t.Context(), olga, "ROMS", "", time.Hour, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		lapsed := func() string {
			all, err := d.Standing(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			return all[0].Lapsed
		}
		if p := propose(t, d, policy, ask(0, "ROMS")); len(p.Approvals) != 1 || lapsed() != "" {
			t.Errorf("of an operator: %+v, lapsed %q", p.Approvals, lapsed())
		}
		for _, c := range []struct {
			role remap.Role
			says string
		}{{remap.Viewer, "olga, who gave it, is a viewer now"}, {"", "olga, who gave it, has no role any more"}} {
			role = c.role
			if p := propose(t, d, policy, ask(1, "ROMS")); p.State != remap.Proposed || len(p.Approvals) != 0 ||
				lapsed() != c.says {
				t.Errorf("of a %q: plan %s, %+v, lapsed %q", c.role, p.State, p.Approvals, lapsed())
			}
		}
		known = false
		p := propose(t, d, policy, ask(2, "ROMS"))
		if len(p.Approvals) != 1 || lapsed() != "" {
			t.Fatalf("of somebody whose role is not known: %+v, lapsed %q", p.Approvals, lapsed())
		}
		reason := ""
		for r, err := range d.History(journal.Wanted{Subject: p.ID}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind == journal.StepApprove {
				reason = r.Reason
			}
		}
		if !strings.Contains(reason, "known at the next sign-in only") {
			t.Errorf("the audit says %q", reason)
		}
	})
}

// TestAPolicyThatDidHarmIsStopped: after a plan that made its job slower the next one for the program waits for a
// person, and after one of the person's that did no harm the rule holds again. Other programs are not touched.
func TestAPolicyThatDidHarmIsStopped(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, func(s *Settings) { s.Mode, s.PlansPerMinute, s.TwoPersons = remap.ModeAuto, 100, false },
		func(t *testing.T, d *Desk, _ string) {
			run := func(i int, app string, seconds float64, approve bool) remap.PlanState {
				r := ask(i, app)
				r.Ledger = &remap.Ledger{Policy: "dfra", Predicted: &remap.IOFigures{VolumeBytes: 1e9, IOSeconds: 10}}
				p := propose(t, d, policy, r)
				state := p.State
				if approve {
					v, err := d.Preview(t.Context(), olga, p.ID)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.ContainsFunc(v.Checks, func(c remap.Check) bool {
						return c.Name == "harm" && c.Level == remap.Amber && strings.Contains(c.Text, "6.00x")
					}) {
						t.Errorf("no check says which harm was done: %+v", v.Checks)
					}
					if _, err := d.Approve(t.Context(), olga, p.ID,
						remap.Answer{Hash: v.Hash, Reason: why}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				if err := d.Measure(t.Context(), p.ID,
					remap.IOFigures{VolumeBytes: 2e9, IOSeconds: 2 * seconds}); err != nil {
					t.Fatal(err)
				}
				return state
			}
			for i, s := range []struct {
				app     string
				seconds float64
				waits   bool
				approve bool
			}{{"ROMS", 10, false, false}, {"ROMS", 60, false, false}, {"ROMS", 5, true, false},
				{"WRF", 10, false, false},
				{"ROMS", 11, true, true}, {"ROMS", 10, false, false}} {
				if state := run(i, s.app, s.seconds, s.approve); (state == remap.Proposed) != s.waits {
					t.Errorf("run %d of %s is %s", i, s.app, state)
				}
			}
		})
}

// Names of plans do not sort as text from the millionth on; the newest judged one is still the newest.
func TestTheNewestJudgedPlanOfAMillion(t *testing.T) {
	table := newPlanTable()
	plan := func(n int) *remap.Plan {
		return &remap.Plan{ID: planID(n), App: "ROMS", Proposer: "dfra", State: remap.Verified}
	}
	for _, n := range []int{999_998, 999_999, 1_000_000, 999_997} { // in the order in which they were measured
		e := newEntry(plan(n))
		table.of[e.ID] = e
		table.judge(e)
	}
	if last := table.lastJudged(plan(1_000_001)); last == nil || last.ID != "P-1000000" {
		t.Errorf("the newest judged plan is %+v", last)
	}
}
