package desk

import (
	"strings"
	"testing"
	"time"

	"fairway/remap"
)

func TestApprovalMustStartInTime(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, func(s *Settings) { s.MaxApplying = 1 }, func(t *testing.T, d *Desk, _ string) {
		m.gate = make(chan struct{}) // of this bubble
		first := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		second := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(1), "fwd3"), Reason: why})
		approve(t, d, sam, first.ID)
		approve(t, d, sam, second.ID)
		time.Sleep(time.Minute)
		wantState(t, d, first.ID, remap.Applying)
		wantState(t, d, second.ID, remap.Approved)
		time.Sleep(2 * time.Minute)
		p := wantState(t, d, second.ID, remap.Expired)
		if p.Ended == nil || !strings.Contains(p.Ended.Reason, "could not start") {
			t.Errorf("ended %+v", p.Ended)
		}
		close(m.gate)
		time.Sleep(2 * time.Second)
		wantState(t, d, first.ID, remap.Verified)
		if m.where("cn1") != "fwd0" {
			t.Error("an expired plan moved a node")
		}
	})
}

func TestApprovalIsForWhatWasShown(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		v, _ := d.Preview(t.Context(), sam, p.ID)
		m.set(func() { m.at["cn0"] = "fwd2" })
		_, err := d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrChanged, "cn0 was on fwd0 and is on fwd2")
		m.set(func() { m.at["cn0"] = "fwd0"; m.late = time.Minute })
		_, err = d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrState, "data of fwd3 is") // what is known now forbids it
		m.set(func() { m.late = 5 * time.Second })
		for _, by := range []remap.Person{sam, {Name: "tim", Role: remap.Admin}} { // in doubt a second person is needed
			wantState(t, d, p.ID, remap.Proposed)
			if _, err := d.Approve(t.Context(), by, p.ID, remap.Answer{Hash: v.Hash, Reason: why}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		wantState(t, d, p.ID, remap.Verified)
	})
}

func TestTwoPeopleForADoubtfulPlan(t *testing.T) {
	m := newTestMachine(8, 4)
	m.late = 5 * time.Second
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd3"), Reason: why})
		if p = approve(t, d, sam, p.ID); p.State != remap.Proposed || len(p.Approvals) != 1 {
			t.Fatalf("after one of two approvals the plan is %s", p.State)
		}
		v, _ := d.Preview(t.Context(), sam, p.ID)
		_, err := d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: v.Hash, Reason: why})
		wantErr(t, err, remap.ErrState, "somebody else")
		approve(t, d, remap.Person{Name: "tim", Role: remap.Admin}, p.ID)
		time.Sleep(2 * time.Second)
		wantState(t, d, p.ID, remap.Verified)
	})
}

// TestADoubtIsSeenByWhoApprovesLast: a target of which nothing is known any more is a doubt that nobody has seen who
// looked at the plan before. However many have to approve, the last one reads it.
func TestADoubtIsSeenByWhoApprovesLast(t *testing.T) {
	tim := remap.Person{Name: "tim", Role: remap.Admin}
	for name, c := range map[string]struct {
		change func(*Settings)
		people []remap.Person
	}{
		"one person":            {func(s *Settings) { s.TwoPersons = false }, []remap.Person{sam}},
		"two, of whom one gave": {func(s *Settings) { s.BigPlan = 1 }, []remap.Person{tim, sam}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTestMachine(8, 4)
			inDesk(t, m, c.change, func(t *testing.T, d *Desk, _ string) {
				p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd3"), Reason: why})
				seen, err := d.Preview(t.Context(), sam, p.ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, by := range c.people[:len(c.people)-1] {
					approve(t, d, by, p.ID)
				}
				m.set(func() { m.unknown = "fwd3" })
				_, err = d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: seen.Hash, Reason: why})
				wantErr(t, err, remap.ErrChanged, "what fwd3 moves is not known")
				doubted, err := d.Preview(t.Context(), sam, p.ID)
				if err != nil {
					t.Fatal(err)
				}
				m.set(func() { m.unknown = "" }) // a doubt that is gone stops nobody
				for _, hash := range []string{"", "-" + strings.Split(doubted.Hash, "-")[1]} {
					_, err = d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: hash, Reason: why})
					wantErr(t, err, remap.ErrChanged, "another preview")
				}
				v, err := d.Approve(t.Context(), sam, p.ID, remap.Answer{Hash: doubted.Hash, Reason: why})
				if err != nil || v.Plan.State == remap.Proposed {
					t.Fatalf("the plan is %s: %v", v.Plan.State, err)
				}
			})
		})
	}
}
