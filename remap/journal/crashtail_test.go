package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/lab/conform/journaltest"
)

// batches makes a journal of batches and returns its content and where each begins; the last is its end.
func batches(t testing.TB, rng *rand.Rand, n int) (content []byte, starts []int) {
	t.Helper()
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	j, _, err := OnFile(k, strings.NewReader(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		starts = append(starts, len(k.Data))
		recs := make([]*Record, 1+rng.IntN(4))
		for i := range recs {
			recs[i] = &Record{Kind: StepStop, Plan: "P-000001", Reason: strings.Repeat("why ", rng.IntN(300))}
		}
		if err := j.Append(recs...); err != nil {
			t.Fatal(err)
		}
	}
	return k.Data, append(starts, len(k.Data))
}

// tear leaves of b what a power cut leaves of what was written from start to end: some of the pages are not
// there, and the file may be short. It says whether anything is missing.
func tear(rng *rand.Rand, b []byte, start, end int) ([]byte, bool) {
	page := 1 << (3 + rng.IntN(10))
	torn := bytes.Clone(b)
	junk := byte(0)
	if rng.IntN(4) == 0 {
		junk = '\n'
	}
	for at := start - start%page; at < end; at += page {
		if rng.IntN(3) == 0 {
			for i := max(at, start); i < min(at+page, end); i++ {
				torn[i] = junk
			}
		}
	}
	if end == len(b) && rng.IntN(3) == 0 {
		torn = torn[:start+rng.IntN(end-start+1)]
	}
	return torn, !bytes.Equal(torn, b)
}

// TestATornLastBatchIsCutOffWhole tears the last batch in every way that a power cut can, and looks that
// the start keeps all before it and nothing of it.
func TestATornLastBatchIsCutOffWhole(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 1))
		whole, starts := batches(t, rng, 1+rng.IntN(4))
		start := starts[len(starts)-2]
		b, damaged := tear(rng, whole, start, len(whole))
		if !damaged {
			continue
		}
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(whole[:start], []byte("\n"))
		if sum, err := Verify(path); err != nil || sum.TornBytes != int64(len(b)-start) ||
			(sum.Torn == "") != (len(b) == start) {
			t.Fatalf("seed %d: verify says %+v, %v", seed, sum, err)
		}
		n := 0
		j, sum, err := Open(path, func(*Record) error { n++; return nil })
		if err != nil || n != want || sum.Records != uint64(want) {
			t.Fatalf("seed %d: %d records of %d, %+v, %v", seed, n, want, sum, err)
		}
		if len(b) > start {
			if kept, err := os.ReadFile(sum.Kept); err != nil || !bytes.Equal(kept, b[start:]) {
				t.Fatalf("seed %d: %d bytes kept of %d, %v", seed, len(kept), len(b)-start, err)
			}
		}
		if err := errors.Join(j.Append(&Record{Kind: StepStop}, &Record{Kind: StepStop}), j.Close()); err != nil {
			t.Fatal(err)
		}
		if sum, err := Verify(path); err != nil || sum.Records != uint64(want+2) || sum.TornBytes != 0 {
			t.Fatalf("seed %d: after two more records %+v, %v", seed, sum, err)
		}
	}
}

// TestDamageBeforeTheLastBatchRefusesToStart tears a batch that another follows; that one may be torn
// too, as long as one of its records is whole.
func TestDamageBeforeTheLastBatchRefusesToStart(t *testing.T) {
	both := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 2))
		whole, starts := batches(t, rng, 2+rng.IntN(4))
		last := starts[len(starts)-2]
		i := rng.IntN(len(starts) - 2)
		b, damaged := tear(rng, whole, starts[i], starts[i+1])
		if !damaged {
			continue
		}
		if rng.IntN(2) == 0 {
			torn, _ := tear(rng, b, last, len(b))
			if !anyWhole(whole[last:], torn[last:]) {
				continue
			}
			b = torn
			both++
		}
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		first := bytes.Count(whole[:starts[i]], []byte("\n")) + 1
		_, _, err := Open(path, func(*Record) error { return nil })
		wantFailure(t, err, ErrDamaged, path)
		var named int
		if _, e := fmt.Sscanf(strings.TrimPrefix(err.Error(), path+": record "), "%d", &named); e != nil ||
			named < first || named > first+3 {
			t.Fatalf("seed %d: batch of record %d is damaged; %v", seed, first, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
			t.Fatalf("seed %d: the journal was changed, %v", seed, err)
		}
	}
	if both < 50 {
		t.Errorf("only %d had two torn batches", both)
	}
}

// anyWhole says whether torn still has a line of whole in its place.
func anyWhole(whole, torn []byte) bool {
	at := 0
	for line := range bytes.Lines(whole) {
		if end := at + len(line); end <= len(torn) && bytes.Equal(torn[at:end], line) {
			return true
		}
		at += len(line)
	}
	return false
}

// TestWhatACrashDoesNotLeaveIsDamage are last lines that no torn write explains.
func TestWhatACrashDoesNotLeaveIsDamage(t *testing.T) {
	path, lines := writeJournal(t, 5)
	good := bytes.Join(lines, nil)
	for name, b := range map[string][]byte{
		"the last record once more":   append(bytes.Clone(good), lines[4]...),
		"an older record once more":   append(bytes.Clone(good), lines[1]...),
		"an older one behind garbage": append(append(bytes.Clone(good), "\x00\x00"...), lines[1]...),
		"a changed last record":       bytes.Replace(good, []byte(`"seq":5`), []byte(`"seq":6`), 1),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(path, func(*Record) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
