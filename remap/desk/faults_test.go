package desk

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// A record that does not fit the state of the desk must not be on disk: no later start could replay it.
func TestWhatDoesNotFitIsNotWritten(t *testing.T) {
	fwd1 := &remap.Exclusion{Forwarder: "fwd1", Reason: why, Until: time.Now().Add(time.Hour)}
	for name, recs := range map[string][]*journal.Record{
		"a plan that is not there": {{Kind: journal.StepStart, Plan: "P-000009", State: remap.Applying}},
		"a step that is not legal": {{Kind: journal.StepFinish, Plan: "P-000001", State: remap.Verified}},
		"a proposal out of turn": {{Kind: journal.StepPropose, Plan: "P-000009",
			Proposed: &remap.Plan{ID: "P-000009"}}},
		"a return of nobody":         {{Kind: journal.StepReturn, Exclusion: fwd1}},
		"a revocation of nothing":    {{Kind: journal.StepRevoke, Standing: &remap.Standing{ID: "S-0001"}}},
		"a finding without its name": {{Kind: journal.StepFinding}},
		"the last of a batch": {{Kind: journal.StepExclude, Exclusion: fwd1},
			{Kind: journal.StepReturn, Exclusion: fwd1},
			{Kind: journal.StepReturn, Exclusion: fwd1}},
		"the second step of a batch": {{Kind: journal.StepReject, Plan: "P-000001", State: remap.Rejected},
			{Kind: journal.StepReject, Plan: "P-000001", State: remap.Rejected}},
	} {
		t.Run(name, func(t *testing.T) {
			m, path := newTestMachine(8, 4), filepath.Join(t.TempDir(), "journal")
			synctest.Test(t, func(t *testing.T) {
				d := openTestDesk(t, m, path, nil)
				propose(t, d, olga, ask(0, ""))
				var panicked any
				err := d.do(t.Context(), func() error {
					defer func() { panicked = recover() }()
					return d.record(recs...)
				})
				if err == nil || panicked != nil {
					t.Errorf("recording it: %v, panic %v", err, panicked)
				}
				if p := wantState(t, d, "P-000001", remap.Proposed); p.Error != "" || len(d.Excluded()) != 0 {
					t.Errorf("something of it came true: %+v, excluded %v", p, d.Excluded())
				}
				if _, err := d.Reject(t.Context(), sam, "P-000001", remap.Answer{Reason: why}); err != nil {
					t.Errorf("the next step: %v", err)
				}
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				d = openTestDesk(t, m, path, nil) // what is on disk can be replayed
				wantState(t, d, "P-000001", remap.Rejected)
				d.Close()
			})
		})
	}
}

// asks counts the previews that a driver is asked for.
type asks struct {
	*testMachine
	n atomic.Int32
}

func (d *asks) Preview(context.Context, remap.Plan) ([]string, error) {
	d.n.Add(1)
	return nil, nil
}

// A driver's preview asks every node: an approval by rule takes one, not one to look and one to approve.
func TestAnApprovalByRulePreviewsOnce(t *testing.T) {
	m := &asks{testMachine: newTestMachine(8, 4)}
	synctest.Test(t, func(t *testing.T) {
		set := DefaultSettings()
		set.Mode = remap.ModeAuto
		d, _, err := Open(Config{Settings: set, Path: filepath.Join(t.TempDir(), "journal"), Driver: m,
			Situation: m.situation})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		p, err := d.Propose(t.Context(), remap.Person{Name: "dfra", Role: remap.Operator, Via: remap.ViaPolicy},
			ask(0, "ROMS"))
		if err != nil || p.State == remap.Proposed || !strings.Contains(p.Approvals[0].Reason, "auto") {
			t.Fatalf("%+v, %v", p, err)
		}
		if n := m.n.Load(); n != 1 {
			t.Errorf("the driver was asked for %d previews", n)
		}
	})
}
