package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// written makes a journal with a batch of records a day.
func written(t *testing.T, batches ...[]*Record) (path string, day0 time.Time) {
	t.Helper()
	path, day0 = filepath.Join(t.TempDir(), "journal"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range batches {
		for _, r := range b {
			r.At = day0.AddDate(0, 0, i)
		}
		if err := j.Append(b...); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path, day0
}

// archive opens a journal, moves its records before a time to a segment, and closes it.
func archive(path string, before time.Time, least uint64) (segment string, n uint64, err error) {
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		return "", 0, err
	}
	old, err := j.Old(before, least)
	if err == nil && old != nil {
		segment, n, err = old.Segment, old.Records, j.CutOff(old)
	}
	return segment, n, errors.Join(err, j.Close())
}

func plan(n int, state remap.PlanState) []*Record {
	id := fmt.Sprintf("P-%06d", n)
	return []*Record{{Kind: StepPropose, Plan: id, Proposed: &remap.Plan{ID: id, State: remap.Proposed},
		Reason: "mine"},
		{Kind: StepReject, Plan: id, State: state}}
}

func exclusion(kind RecordKind) []*Record {
	return []*Record{{Kind: kind, Exclusion: &remap.Exclusion{Forwarder: "fwd1"}}}
}

func finding(n int, state anomaly.State) []*Record {
	id := fmt.Sprintf("F-%04d", n)
	return []*Record{{Kind: StepFinding, Plan: id, Finding: &anomaly.Change{Finding: anomaly.Finding{ID: id,
		Node: "fwd1", State: state}}}}
}

// TestOldRecordsGoToASegment: what is over is moved, the chain of hashes goes on through the segments, numbers too, and
// what can still change keeps its records and all later ones.
func TestOldRecordsGoToASegment(t *testing.T) {
	path, day0 := written(t, plan(1, remap.Rejected), exclusion(StepExclude), finding(1, anomaly.Suspect),
		exclusion(StepReturn), finding(1, anomaly.Returned), plan(2, remap.Rejected), finding(2, anomaly.Suspect),
		plan(3, remap.Rejected), finding(2, anomaly.Returned), plan(4, remap.Rejected))
	was, err := Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	if _, err := Read(path, func(r *Record) error { records = append(records, r.Hash); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		day  int
		want uint64 // records that went
	}{{0, 0}, {2, 2}, {3, 0}, {8, 6}, {100, 0}} { // day 3 cuts the exclusion, day 100 the newest finding
		segment, n, err := archive(path, day0.AddDate(0, 0, c.day), 0)
		if err != nil || n != c.want || (segment != "") != (n > 0) {
			t.Errorf("before day %d: %d records to %q, %v, want %d", c.day, n, segment, err, c.want)
		}
		sum, err := Verify(path)
		if err != nil || sum.Records != was.Records || sum.LastHash != was.LastHash {
			t.Fatalf("after day %d: %+v %v", c.day, sum, err)
		}
	}
	sum, err := Verify(path)
	if err != nil || sum.Archived != 8 || sum.Segment != "journal.3-8.gz" || !sum.First.Equal(day0.AddDate(0, 0, 6)) {
		t.Fatalf("%+v %v", sum, err)
	}
	j, sum, err := Open(path, func(*Record) error { return nil })
	if err != nil || sum.Records != was.Records || j.Records() != was.Records {
		t.Fatal(sum, err)
	}
	if err := j.Append(plan(5, remap.Rejected)...); err != nil {
		t.Fatal(err)
	}
	seen := was.Records + 2
	for r, err := range j.History(Wanted{}) {
		if err != nil || r.Seq != seen || int(r.Seq) <= len(records) && r.Hash != records[r.Seq-1] {
			t.Fatalf("record %d is %+v, %v", seen, r, err)
		}
		seen--
	}
	if seen != 8 {
		t.Errorf("the history ends before record %d, want 8", seen+1)
	}
	for r, err := range j.History(Wanted{Subject: "P-000004"}) {
		if err != nil || r.Plan != "P-000004" {
			t.Errorf("%+v %v", r, err)
		}
	}
	first := uint64(0)
	last, err := j.Since(0, func(r *Record) error {
		if first == 0 {
			first = r.Seq
		}
		return nil
	})
	if err != nil || first != 9 || last != was.Records+2 {
		t.Errorf("since the beginning: from %d to %d, %v", first, last, err)
	}
	if _, err := j.HashAt(3); err == nil {
		t.Error("the hash of a record in a segment was found")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"journal.1-2.gz", "journal.3-8.gz"} {
		if _, err := Verify(filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Error(err)
		}
	}
}

// TestASegmentThatWasChangedIsNamed: the head in the journal shows it; a segment that was taken away is not missed.
func TestASegmentThatWasChangedIsNamed(t *testing.T) {
	path, day0 := written(t, plan(1, remap.Rejected), plan(2, remap.Rejected), plan(3, remap.Rejected))
	other, _ := written(t, plan(1, remap.Expired), plan(2, remap.Rejected), plan(3, remap.Rejected))
	var segment string
	for _, p := range []string{path, other} {
		var err error
		if segment, _, err = archive(p, day0.AddDate(0, 0, 1), 0); err != nil || segment == "" {
			t.Fatal(segment, err)
		}
	}
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(filepath.Dir(path), filepath.Base(segment))
	if err := os.WriteFile(mine, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(path); !errors.Is(err, ErrDamaged) {
		t.Errorf("another journal's segment: %v", err)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	if sum, err := Verify(path); err != nil || sum.Archived != 2 {
		t.Errorf("%+v %v", sum, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"seq":2`), []byte(`"seq":1`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(path); !errors.Is(err, ErrDamaged) {
		t.Errorf("a changed head: %v", err)
	}
}

// TestWhatIsNotOverStays: an exclusion, a finding, a plan and a standing approval; and fewer records than are worth
// a segment stay.
func TestWhatIsNotOverStays(t *testing.T) {
	standing := func(kind RecordKind) []*Record {
		return []*Record{{Kind: kind, Standing: &remap.Standing{ID: "S-0001", Until: time.Date(2027, 1, 1, 0, 0, 0, 0,
			time.UTC)}}}
	}
	for name, c := range map[string]struct {
		begins []*Record
		want   uint64
	}{"an exclusion": {exclusion(StepExclude), 2}, "a standing approval": {standing(StepAllow), 2},
		"a finding": {finding(1, anomaly.Confirmed), 2}, "a plan": {plan(2, remap.Applying), 2},
		"nothing": {[]*Record{{Kind: StepCanary, Canary: &anomaly.Canary{Forwarder: topology.ForwarderID("fwd1")}}},
			3}} {
		path, day0 := written(t, plan(1, remap.Rejected), c.begins, plan(3, remap.Rejected), plan(4, remap.Rejected))
		if c.want == 3 { // up to the newest plan
			c.want = 5
		}
		if _, n, err := archive(path, day0.AddDate(0, 0, 9), 100); n != 0 || err != nil {
			t.Errorf("%s: fewer than 100 records: %d went, %v", name, n, err)
		}
		if _, n, err := archive(path, day0.AddDate(0, 0, 9), 0); n != c.want || err != nil {
			t.Errorf("%s: %d records went, want %d: %v", name, n, c.want, err)
		}
	}
}

// TestOldRecordsGoWhileItIsWritten: a journal that is open, written and read goes on beside it, and shows afterwards
// what one shows that is opened anew.
func TestOldRecordsGoWhileItIsWritten(t *testing.T) {
	var batches [][]*Record
	const days, aDay = 48, 32 // of two records
	for i := range days {
		var b []*Record
		for k := range aDay {
			b = append(b, plan(i*aDay+k, remap.Rejected)...)
		}
		batches = append(batches, b)
	}
	path, day0 := written(t, batches...)
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ends, ended := make(chan bool), make(chan error)
	go func() {
		for {
			for r, err := range j.History(Wanted{To: day0.AddDate(0, 0, 1)}) { // the first that go
				if err != nil || r == nil {
					ended <- err
					return
				}
			}
			if _, err := j.Since(0, func(*Record) error { return nil }); err != nil {
				ended <- err
				return
			}
			select {
			case <-ends:
				ended <- nil
				return
			default:
			}
		}
	}()
	next := days * aDay
	more := func() []*Record {
		out := plan(next, remap.Rejected)
		for _, r := range out {
			r.At = day0.AddDate(0, 0, next)
		}
		next++
		return out
	}
	for _, day := range []int{days / 4, days / 2, days - 1} {
		old, err := j.Old(day0.AddDate(0, 0, day), 0)
		if err != nil || old == nil {
			t.Fatalf("before day %d: %v, %v", day, old, err)
		}
		if err := j.Append(more()...); err != nil { // between the two
			t.Fatal(err)
		}
		if err := j.CutOff(old); err != nil {
			t.Fatal(err)
		}
	}
	close(ends)
	if err := <-ended; err != nil {
		t.Errorf("a reader beside it: %v", err)
	}
	last := more()
	if err := j.Append(last...); err != nil {
		t.Fatal(err)
	}
	history := func(j *Journal, w Wanted) (out []string) {
		for r, err := range j.History(w) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.Hash)
		}
		return out
	}
	wants := []Wanted{{}, {Subject: "P-000001"}, {Subject: last[0].Plan}, {From: day0.AddDate(0, 0, days+1)},
		{To: day0.AddDate(0, 0, days)}}
	var was [][]string
	for _, w := range wants {
		was = append(was, history(j, w))
	}
	if n := len(was[0]); n != 2*aDay+8 {
		t.Errorf("%d records are left, want those of the last day and 8", n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if sum, err := Verify(path); err != nil || sum.Records != uint64(2*next) {
		t.Errorf("%+v, %v: want %d records in one chain", sum, err, 2*next)
	}
	again, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for i, w := range wants {
		if now := history(again, w); !slices.Equal(now, was[i]) {
			t.Errorf("%+v: opened anew it shows %d records, before %d", w, len(now), len(was[i]))
		}
	}
}
