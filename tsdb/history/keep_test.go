package history

import (
	"path/filepath"
	"testing"
	"time"

	"fairway/collector/topology"
)

// TestOldRunsAreForgotten: with their starts, while those that have not ended and the newer ones stay.
func TestOldRunsAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if n, err := Forget(path, time.Now()); n != 0 || err != nil {
		t.Errorf("no history: %d %v", n, err)
	}
	h, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"old", "new", "pending", "running"} {
		r := Run{Job: topology.JobID(name), User: "wei", App: name, Nodes: 1, Start: begun}
		if name == "new" {
			r.Start = begun.AddDate(0, 6, 0)
		}
		if err := h.Begin(r); err != nil {
			t.Fatal(err)
		}
		r.End = r.Start.Add(time.Hour)
		switch name {
		case "pending":
			err = h.Stop(r)
		case "old", "new":
			r.Profile = &Profile{WriteBytes: 1, IONodes: 1, Coverage: 1, From: "test"}
			err = h.End(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Forget(path, begun.AddDate(0, 3, 0)); err == nil {
		t.Error("an open history was written anew")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := Forget(path, begun.AddDate(0, 3, 0)); n != want || err != nil {
			t.Errorf("%d forgotten, want %d: %v", n, want, err)
		}
	}
	h, sum, err := Open(path)
	if err != nil || sum.Runs != 1 || sum.Running != 1 || len(h.Pending()) != 1 || len(sum.Damaged) > 0 {
		t.Fatalf("%+v %v, %d pending", sum, err, len(h.Pending()))
	}
	defer h.Close()
	if runs, err := h.Recent(9); err != nil || len(runs) != 1 || runs[0].App != "new" {
		t.Errorf("%+v %v", runs, err)
	}
	if at, err := h.At(begun.Add(time.Minute)); err != nil || len(at) != 2 {
		t.Errorf("the old start is there: %+v %v", at, err)
	}
}
