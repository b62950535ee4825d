package desk

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// TestAPlanWhoseNodesAnotherMovedIsSuperseded: the one of which a node stays is still of use.
func TestAPlanWhoseNodesAnotherMovedIsSuperseded(t *testing.T) {
	inDesk(t, newTestMachine(8, 4), nil, func(t *testing.T, d *Desk, _ string) {
		ask := func(ns ...int) remap.Plan {
			return propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(ns...), "fwd3"), Reason: why})
		}
		none, rest, moves := ask(1), ask(1, 2), ask(0, 1)
		approve(t, d, sam, moves.ID)
		time.Sleep(5 * time.Second)
		wantState(t, d, moves.ID, remap.Verified)
		wantState(t, d, rest.ID, remap.Proposed)
		p := wantState(t, d, none.ID, remap.Withdrawn)
		if e := p.Ended; e == nil || e.By != "desk" || e.Reason != "superseded by P-000003, which moved its nodes" {
			t.Errorf("who withdrew it and why: %+v", e)
		}
	})
}

// TestAPlanAgainstAFindingEndsWithIt keeps what has other reasons: another forwarder, an earlier day, a job's start, or
// a second finding on the same node.
func TestAPlanAgainstAFindingEndsWithIt(t *testing.T) {
	inDesk(t, newTestMachine(8, 4), nil, func(t *testing.T, d *Desk, _ string) {
		change := func(id string, from, to anomaly.State, since time.Time) anomaly.Change {
			return anomaly.Change{From: from, At: time.Now(), Why: "no doubt for 2 min", Finding: anomaly.Finding{
				ID: id, Node: "fwd0", Kind: anomaly.FailSlow, State: to, Since: since, Changed: time.Now()}}
		}
		record := func(cs ...anomaly.Change) {
			if err := d.RecordFindings(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(node int, l *remap.Ledger) string {
			r := remap.Request{Moves: remap.MoveAll(nodes(node), "fwd3"), Reason: why, Ledger: l}
			if l != nil {
				r.Job = "88231"
			}
			return propose(t, d, olga, r).ID
		}
		earlier := ask(0, nil)
		time.Sleep(time.Second)
		since := time.Now()
		time.Sleep(time.Second)
		against, other, job := ask(1, nil), ask(2, nil), ask(1, &remap.Ledger{})
		record(change("F-0001", "", anomaly.Confirmed, since), change("F-0002", "", anomaly.Suspect, since))
		record(change("F-0001", anomaly.Confirmed, anomaly.Returned, since))
		wantState(t, d, against, remap.Proposed) // F-0002 is left
		record(change("F-0002", anomaly.Suspect, anomaly.Returned, since))
		for _, id := range []string{earlier, other, job} {
			wantState(t, d, id, remap.Proposed)
		}
		p := wantState(t, d, against, remap.Withdrawn)
		if e := p.Ended; e == nil || e.By != "findings" || e.Reason != "F-0002 has ended (no doubt for 2 min)" {
			t.Errorf("who withdrew it and why: %+v", e)
		}
	})
}
