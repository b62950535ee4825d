package history

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector/topology"
)

// TestOldRunsAreForgotten: with their starts, while those that have not ended and the newer ones stay.
func TestOldRunsAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
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
	ends, ended := make(chan bool), make(chan error)
	go func() { // those who ask beside it see one file or the other
		for {
			runs, err := h.Recent(9)
			if err == nil && runs[0].App != "new" {
				err = fmt.Errorf("the newest run is %+v", runs[0])
			}
			for _, err := range []error{err, h.Each(func(Run) error { return nil })} {
				if err != nil {
					ended <- err
					return
				}
			}
			select {
			case <-ends:
				ended <- nil
				return
			default:
			}
		}
	}()
	for _, want := range []int{1, 0} {
		if n, err := h.Forget(begun.AddDate(0, 3, 0)); n != want || err != nil {
			t.Errorf("%d forgotten, want %d: %v", n, want, err)
		}
	}
	close(ends)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	later := Run{Job: "later", User: "wei", App: "later", Nodes: 1, Start: begun.AddDate(1, 0, 0)}
	if err := h.Begin(later); err != nil {
		t.Fatal(err)
	}
	later.End = later.Start.Add(time.Hour)
	if err := h.End(later); err != nil {
		t.Fatal(err)
	}
	if r, ok, err := h.Job("later"); err != nil || !ok || !r.End.Equal(later.End) {
		t.Errorf("a run of after it: %+v %v %v", r, ok, err)
	}
	if n, err := h.Forget(begun.AddDate(2, 0, 0)); n != 2 || err != nil { // of the new file
		t.Errorf("%d forgotten, want 2: %v", n, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, sum, err := Open(path)
	if err != nil || sum.Runs != 0 || sum.Running != 1 || len(h.Pending()) != 1 || len(sum.Damaged) > 0 {
		t.Fatalf("%+v %v, %d pending", sum, err, len(h.Pending()))
	}
	defer h.Close()
	if at, err := h.At(begun.Add(time.Minute)); err != nil || len(at) != 2 {
		t.Errorf("the old start is there: %+v %v", at, err)
	}
}
