package desk

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// accuse records what the detectors say of fwd0.
func accuse(t *testing.T, d *Desk, states ...anomaly.State) {
	t.Helper()
	f := anomaly.Finding{ID: "F-0001", Node: "fwd0", Kind: anomaly.FailSlow, Since: time.Now()}
	for _, s := range states {
		from := f.State
		f.State, f.Changed = s, time.Now()
		f.Steps = append(f.Steps, anomaly.Step{State: s, At: f.Changed})
		if err := d.RecordFindings(t.Context(), []anomaly.Change{{Finding: f, From: from, At: time.Now(),
			Why: "as the test says"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoWayBackOntoAnAccusedForwarder: whoever asks for it, nodes stay where they are until the forwarder has been well
// for the site's time, and then go back by themselves.
func TestNoWayBackOntoAnAccusedForwarder(t *testing.T) {
	const soon = "the job's end before its nodes are seen there"
	back := map[string]func(*Desk) func(*testing.T, string) error{
		"a person": func(d *Desk) func(*testing.T, string) error {
			return func(t *testing.T, id string) error {
				_, err := d.RollBack(t.Context(), olga, id, remap.Answer{})
				return err
			}
		},
		"the job's end": func(d *Desk) func(*testing.T, string) error {
			return func(t *testing.T, id string) error {
				_, err := d.Restore(t.Context(), remap.PolicyPerson("dfra"), id, remap.Answer{Reason: "job has ended"})
				return err
			}
		},
	}
	back[soon] = back["the job's end"]
	for name, ask := range back {
		t.Run(name, func(t *testing.T) {
			m := newTestMachine(8, 4)
			inDesk(t, m, nil, func(t *testing.T, d *Desk, path string) {
				accuse(t, d, anomaly.Suspect, anomaly.Confirmed)
				p := propose(t, d, olga, remap.Request{Job: "88231", Moves: remap.MoveAll(nodes(0, 1), "fwd3"),
					Reason: why, Dedicated: true})
				state := remap.Verified
				if name == soon {
					state, m.gate = remap.Applied, make(chan struct{})
				}
				approve(t, d, sam, p.ID)
				if name == soon {
					m.see(false)
					close(m.gate)
				}
				time.Sleep(5 * time.Second)
				wantState(t, d, p.ID, state)
				if err := ask(d)(t, p.ID); err != nil {
					t.Fatal(err)
				}
				if name == soon { // longer than others may take to be seen
					time.Sleep(2 * d.cfg.Settings.VerifyWithin)
					wantState(t, d, p.ID, remap.Applied)
				}
				m.see(true)
				time.Sleep(time.Hour)
				held := wantState(t, d, p.ID, remap.Verified)
				if held.Back == nil || held.Why() != "fwd0 is confirmed: slow for its load (F-0001); the nodes stay "+
					"where they are and go back when it has been well for 5m" {
					t.Fatalf("what waits says %+v", held.Back)
				}
				if len(d.Owners()) > 0 {
					t.Errorf("dedicated still: %v", d.Owners())
				}
				wantErr(t, ask(d)(t, p.ID), remap.ErrState, "F-0001")
				accuse(t, d, anomaly.Suspect, anomaly.Confirmed, anomaly.Returned)
				time.Sleep(4 * time.Minute)
				wantState(t, d, p.ID, remap.Verified)
				time.Sleep(2 * time.Minute)
				done := wantState(t, d, p.ID, held.Back.Goal)
				if done.Back != nil || m.at["cn0"] != "fwd0" {
					t.Errorf("back home: %+v, cn0 is on %s", done.Back, m.at["cn0"])
				}
			})
		})
	}
}

// TestALeaseDoesNotEndOnAnAccusedForwarder: it is renewed, hour by hour, until nothing accuses the forwarder.
func TestALeaseDoesNotEndOnAnAccusedForwarder(t *testing.T) {
	inDesk(t, newTestMachine(8, 4), nil, func(t *testing.T, d *Desk, _ string) {
		accuse(t, d, anomaly.Suspect, anomaly.Confirmed)
		if _, err := d.Exclude(t.Context(), olga, "fwd0", time.Minute, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Minute)
		if d.Excluded()["fwd0"] == "" {
			t.Fatal("in allocation again, and confirmed")
		}
		accuse(t, d, anomaly.Suspect, anomaly.Confirmed, anomaly.Returned)
		time.Sleep(time.Hour)
		if left := d.Excluded(); len(left) > 0 {
			t.Errorf("excluded still: %v", left)
		}
	})
}

// TestAPolicysPlanThatNobodyCouldApproveIsNotMade, and two for the same nodes are one.
func TestAPolicysPlanThatNobodyCouldApproveIsNotMade(t *testing.T) {
	inDesk(t, newTestMachine(8, 4), nil, func(t *testing.T, d *Desk, _ string) {
		policy := remap.PolicyPerson("dfra")
		r := remap.Request{Job: "88231", Moves: remap.MoveAll(nodes(0, 1), "fwd0"), Reason: why}
		_, err := d.Propose(t.Context(), policy, r)
		wantErr(t, err, remap.ErrState, "nothing to do: every node is there already")
		if plans, _ := d.Plans(t.Context(), 0); len(plans) > 0 {
			t.Fatalf("on the desk: %+v", plans)
		}
		propose(t, d, olga, r) // a person reads on the plan why it cannot be approved
		r.Moves = remap.MoveAll(nodes(0, 1), "fwd3")
		first := propose(t, d, policy, r)
		r.Moves = remap.MoveAll(nodes(1, 0), "fwd3")
		if again := propose(t, d, policy, r); again.ID != first.ID {
			t.Errorf("the same moves are %s and %s", first.ID, again.ID)
		}
		r.Moves = remap.MoveAll(nodes(0), "fwd2")
		newer := propose(t, d, policy, r)
		if p := wantState(t, d, first.ID, remap.Withdrawn); p.Ended.Reason !=
			"superseded by "+newer.ID+", which moves some of the same nodes" {
			t.Errorf("%+v", p.Ended)
		}
	})
}

// see has the two nodes be seen where they are, or not.
func (m *testMachine) see(seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range nodes(0, 1) {
		m.blind[n] = !seen
	}
}
