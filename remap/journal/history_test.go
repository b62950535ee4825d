package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// longJournal makes a journal of n records about a tenth as many subjects, with a clock that is now and then
// set back.
func longJournal(t testing.TB, rng *rand.Rand, n int) (*Journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for n > 0 {
		recs := make([]*Record, min(n, 1+rng.IntN(500)))
		for i := range recs {
			if at = at.Add(time.Second); rng.IntN(1000) == 0 {
				at = at.Add(-time.Hour)
			}
			recs[i] = someRecord(rng, at, 1+n/10)
		}
		n -= len(recs)
		if err := j.Append(recs...); err != nil {
			t.Fatal(err)
		}
	}
	return j, path
}

func someRecord(rng *rand.Rand, at time.Time, subjects int) *Record {
	switch i := rng.IntN(subjects); i % 3 {
	case 0:
		return &Record{At: at, Kind: StepExclude,
			Exclusion: &remap.Exclusion{Forwarder: topology.ForwarderID(fmt.Sprintf("fwd%d", i))}}
	case 1:
		return &Record{At: at, Kind: StepFinding, Plan: fmt.Sprintf("F-%04d", i), Finding: &anomaly.Change{At: at}}
	default:
		return &Record{At: at, Kind: StepStop, Plan: fmt.Sprintf("P-%06d", i), Actor: "olga",
			Reason: "because it is asked for"}
	}
}

// seqs are the numbers of what History shows, at most limit.
func seqs(t testing.TB, d *Journal, w Wanted, limit int) (out []uint64) {
	t.Helper()
	for r, err := range d.History(w) {
		if err != nil {
			t.Fatal(err)
		}
		if out = append(out, r.Seq); len(out) == limit {
			break
		}
	}
	return out
}

// TestHistoryIsWhatTheWholeJournalSays compares with a reading from end to end, of a journal that was written
// by this process and of the same one opened again.
func TestHistoryIsWhatTheWholeJournalSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	j, path := longJournal(t, rng, 3000)
	var all []*Record
	if _, err := Read(path, func(r *Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	for _, opened := range []string{"written", "opened again"} {
		d, found := j, 0
		for range 40 {
			w := Wanted{}
			if rng.IntN(3) > 0 {
				w.Subject = all[rng.IntN(len(all))].subject()
			}
			if rng.IntN(2) == 0 {
				w.From = all[rng.IntN(len(all))].At
			}
			if rng.IntN(2) == 0 {
				w.To = all[rng.IntN(len(all))].At
			}
			var want []uint64
			for _, r := range all {
				if (w.Subject == "" || w.Subject == r.subject()) && !r.At.Before(w.From) &&
					(w.To.IsZero() || r.At.Before(w.To)) {
					want = append(want, r.Seq)
				}
			}
			found += len(want)
			if got := seqs(t, d, w, 0); !slices.Equal(got, want) {
				t.Fatalf("%s, %+v: %d records %.5v, want %d %.5v", opened, w, len(got), got, len(want), want)
			}
		}
		for r := range d.History(Wanted{}) {
			if r.Hash != all[0].Hash || r.Hash == "" || seqs(t, d, Wanted{}, 3)[2] != all[2].Seq {
				t.Errorf("%s: the newest is %+v, want %+v", opened, r, all[0])
			}
			break
		}
		if found == 0 || seqs(t, d, Wanted{Subject: "nobody"}, 0) != nil {
			t.Errorf("%s: %d found", opened, found)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if j, _, err = Open(path, func(*Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
}

// TestHistoryBesideAWriter reads while records are written: every reading is whole and without gaps.
func TestHistoryBesideAWriter(t *testing.T) {
	j, _ := longJournal(t, rand.New(rand.NewPCG(1, 2)), 50)
	defer j.Close()
	d, done := j, make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for last := uint64(0); last < 250; {
				got := seqs(t, d, Wanted{}, 0)
				if uint64(len(got)) != got[0] || got[0] < last {
					t.Errorf("%d records, the newest is %d, after %d", len(got), got[0], last)
					return
				}
				last = got[0]
				select {
				case <-done:
					last = 250
				default:
				}
			}
		})
	}
	for range 100 {
		if err := j.Append(&Record{Kind: StepStop, Plan: "P-000001"},
			&Record{Kind: StepStop, Plan: "P-000002"}); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}

// TestHistoryNamesWhatWasChangedOnDisk changes a record under the desk.
func TestHistoryNamesWhatWasChangedOnDisk(t *testing.T) {
	j, path := longJournal(t, rand.New(rand.NewPCG(1, 3)), 20)
	defer j.Close()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("xxxx"), 100); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range (j).History(Wanted{}) {
		if n++; n == 20 && !errors.Is(err, ErrDamaged) || n < 20 && err != nil {
			t.Errorf("record %d from the end: %v", n, err)
		}
	}
	if n != 20 {
		t.Errorf("%d records", n)
	}
}

// BenchmarkHistory asks a journal of 100,000 records: from end to end, and by its catalog.
func BenchmarkHistory(b *testing.B) {
	j, path := longJournal(b, rand.New(rand.NewPCG(1, 4)), 100_000)
	defer j.Close()
	d := j
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(path, func(*Record) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("newest100", func(b *testing.B) {
		for b.Loop() {
			seqs(b, d, Wanted{}, 100)
		}
	})
	b.Run("subject", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n = len(seqs(b, d, Wanted{Subject: "P-000002"}, 0))
		}
		b.ReportMetric(float64(n), "records")
	})
}

// TestTimesBeyondNanoseconds: bounds of years that int64 has no nanoseconds of are before or after all.
func TestTimesBeyondNanoseconds(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for i, years := 0, []int{1, 1500, 1700, 1970, 2026, 2261, 2999, 9999}; i+1 < len(years); i++ {
		a, b := nanos(at(years[i])), nanos(at(years[i+1]))
		if a > b || a == b && years[i] >= 1700 && years[i+1] <= 2261 {
			t.Errorf("%d is %d, %d is %d", years[i], a, years[i+1], b)
		}
	}
}
