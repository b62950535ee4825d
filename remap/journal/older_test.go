package journal

import (
	"testing"

	"fairway/remap"
)

// TestJournalsFromBeforeWithdrawnAreRead: what a policy rejected was withdrawn; a person's no stays.
func TestJournalsFromBeforeWithdrawnAreRead(t *testing.T) {
	path, _ := written(t,
		[]*Record{{Kind: StepExpire, State: remap.Expired, Error: "nobody approved it in time", Plan: "P-000001"}},
		[]*Record{{Kind: StepReject, State: remap.Rejected, Via: remap.ViaPolicy, Actor: "policy dfra",
			Reason: "job 5 has ended", Plan: "P-000002"}},
		[]*Record{{Kind: StepReject, State: remap.Rejected, Via: "unix", Actor: "olga", Reason: "no",
			Plan: "P-000003"}})
	var got []Record
	j, _, err := Open(path, func(r *Record) error { got = append(got, *r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := []Record{{Kind: StepExpire, State: remap.Expired, Reason: "nobody approved it in time"},
		{Kind: StepWithdraw, State: remap.Withdrawn, Actor: "policy dfra", Reason: "job 5 has ended"},
		{Kind: StepReject, State: remap.Rejected, Actor: "olga", Reason: "no"}}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, w := range want {
		if r := &got[i]; r.Kind != w.Kind || r.State != w.State || r.Actor != w.Actor || r.Reason != w.Reason ||
			r.Error != "" {
			t.Errorf("record %d reads %+v", i+1, r)
		}
	}
	if _, err := Verify(path); err != nil {
		t.Errorf("its chain: %v", err)
	}
}
