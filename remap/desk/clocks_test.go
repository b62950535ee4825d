package desk

import (
	"testing"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// TestWhatIsLaterSaysTheJournal: the second plan was approved at a daemon whose clock is a minute behind that of the
// one that led before. It still is the later one, and is taken back first.
func TestWhatIsLaterSaysTheJournal(t *testing.T) {
	ahead := time.Unix(1e9, 0).UTC()
	behind := ahead.Add(-time.Minute)
	table := newPlanTable()
	for i, at := range []time.Time{ahead, behind} {
		p := &remap.Plan{ID: planID(i + 1), State: remap.Proposed, Created: at,
			Moves: []remap.Move{{Node: "cn001", From: "fwd001", To: "fwd002"}}}
		for _, r := range []*journal.Record{
			{At: at, Kind: journal.StepPropose, Plan: p.ID, Proposed: p},
			{At: at, Kind: journal.StepApprove, Plan: p.ID, State: remap.Approved, Approval: &remap.Approval{By: "olga",
				At: at}},
		} {
			table.take(r)
		}
	}
	if plan, node := table.movedOn(table.of[planID(1)]); plan != planID(2) || node != "cn001" {
		t.Errorf("the first plan waits for %q because of %q", plan, node)
	}
	if plan, _ := table.movedOn(table.of[planID(2)]); plan != "" {
		t.Errorf("the second plan waits for %q", plan)
	}
}
