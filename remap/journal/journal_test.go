package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/collector/appendlog"
)

// writeJournal makes a journal of n rejected proposals and returns its path and lines.
func writeJournal(t testing.TB, n int) (string, [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range n {
		if err := j.Append(&Record{At: at.Add(time.Duration(i) * time.Second), Kind: StepStop, Plan: "P-000001",
			Actor: "olga"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path, readLines(t, path)
}

func readLines(t testing.TB, path string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(b, []byte("\n"))
}

func TestDamageIsNamedByRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(lines [][]byte) [][]byte
		words  []string
	}{
		{"a changed letter", func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte("olga"), []byte("anna"),
				1)
			return l
		}, []string{"record 3", "CRC"}},
		{"a changed letter with its CRC made right", func(l [][]byte) [][]byte {
			_, line, _ := bytes.Cut(l[2], []byte(`"record":`))
			body := bytes.Replace(bytes.TrimSuffix(line, []byte("}\n")), []byte("olga"), []byte("anna"), 1)
			l[2] = []byte(`{"crc":"` + crcText(body) + `","hash":"` + hashText(l[2]) + `","record":` + string(body) +
				"}\n")
			return l
		}, []string{"record 3", "hash does not follow"}},
		{"a removed record", func(l [][]byte) [][]byte { return append(l[:1:1], l[2:]...) },
			[]string{"record 2", "hash does not follow"}},
		{"swapped records", func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l },
			[]string{"record 2", "hash does not follow"}},
		{"something else", func(l [][]byte) [][]byte { l[3] = []byte("hello\n"); return l },
			[]string{"record 4", "invalid character"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, lines := writeJournal(t, 5)
			if err := os.WriteFile(path, bytes.Join(c.damage(lines), nil), 0o600); err != nil {
				t.Fatal(err)
			}
			before := readLines(t, path)
			_, err := Verify(path)
			wantFailure(t, err, ErrDamaged, append(c.words, path)...)
			if _, _, err = Open(path, func(*Record) error { return nil }); !errors.Is(err, ErrDamaged) {
				t.Errorf("open says %v", err)
			}
			if !bytes.Equal(bytes.Join(before, nil), bytes.Join(readLines(t, path), nil)) {
				t.Error("a damaged journal was changed")
			}
		})
	}
}

func TestUnfinishedTailIsCutAndReported(t *testing.T) {
	path, lines := writeJournal(t, 5)
	whole := bytes.Join(lines, nil)
	for cut := range len(lines[4]) {
		torn := len(lines[4]) - cut - 1
		if err := os.WriteFile(path, whole[:len(whole)-cut-1], 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		j, sum, err := Open(path, func(*Record) error { n++; return nil })
		if err != nil {
			t.Fatalf("%d bytes missing: %v", cut+1, err)
		}
		if n != 4 || sum.Records != 4 || sum.TornBytes != int64(torn) {
			t.Fatalf("%d bytes missing: %d records, %+v", cut+1, n, sum)
		}
		if err := j.Append(&Record{Kind: StepStop, Plan: "P-000002"}); err != nil {
			t.Fatal(err)
		}
		j.Close()
		if sum, err := Verify(path); err != nil || sum.Records != 5 {
			t.Fatalf("after a further record: %+v, %v", sum, err)
		}
	}
}

func TestOneProcessHoldsTheJournal(t *testing.T) {
	path, _ := writeJournal(t, 1)
	j, _, err := Open(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, _, err = Open(path, func(*Record) error { return nil })
	wantFailure(t, err, appendlog.ErrLocked, path)
	if sum, err := Verify(path); err != nil || sum.Records != 1 {
		t.Errorf("verifying beside the holder: %+v, %v", sum, err)
	}
}

func TestAFullDiskLosesNothingAndTheNextRecordFits(t *testing.T) {
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	full := &journaltest.FullDisk{Disk: k}
	j, _, err := OnFile(full, strings.NewReader(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := func() *Record { return &Record{Kind: StepStop, Plan: "P-000001"} }
	if err := j.Append(rec()); err != nil {
		t.Fatal(err)
	}
	full.Full = true
	if err := j.Append(rec(), rec()); !errors.Is(err, journaltest.ErrFull) {
		t.Fatalf("on a full disk: %v", err)
	}
	full.Full = false
	if err := j.Append(rec()); err != nil {
		t.Fatal(err)
	}
	c := chain{name: "journal"}
	if err := c.read(bytes.NewReader(k.Data), nil); err != nil || c.seq != 2 {
		t.Errorf("%d records, %v", c.seq, err)
	}
	k.Syncs = 0 // a failed fsync: what is on disk is not known any more
	first := j.Append(rec())
	k.Dead, k.Syncs = false, -1
	if again := j.Append(rec()); again == nil || again.Error() != first.Error() {
		t.Errorf("after a failed fsync: %v, then %v", first, again)
	}
}

func crcText(body []byte) string { return fmt.Sprintf("%08x", appendlog.Sum(body)) }

func hashText(line []byte) string {
	_, rest, _ := strings.Cut(string(line), `"hash":"`)
	hash, _, _ := strings.Cut(rest, `"`)
	return hash
}

func FuzzJournal(f *testing.F) {
	_, lines := writeJournal(f, 3)
	f.Add(bytes.Join(lines, nil))
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"crc":"00000000","hash":"","record":null}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, n := chain{name: "journal"}, uint64(0)
		err := c.read(bytes.NewReader(b), func(r *Record) error {
			if n++; r.Seq != n {
				t.Errorf("record %d has number %d", n, r.Seq)
			}
			return nil
		})
		if c.seq != n || err == nil && c.size+c.torn != int64(len(b)) {
			t.Errorf("%d records shown, %d counted; %d+%d of %d bytes", n, c.seq, c.size, c.torn, len(b))
		}
	})
}

func wantFailure(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want one that wraps %q", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("error %q does not say %q", err, w)
		}
	}
}
