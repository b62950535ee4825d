package remap

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writeJournal makes a journal of n rejected proposals and returns its path and lines.
func writeJournal(t testing.TB, n int) (string, [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := OpenJournal(path, func(*Record) error { return nil })
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
			_, err := VerifyJournal(path)
			wantErr(t, err, ErrDamaged, append(c.words, path)...)
			if _, _, err = OpenJournal(path, func(*Record) error { return nil }); !errors.Is(err, ErrDamaged) {
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
		j, sum, err := OpenJournal(path, func(*Record) error { n++; return nil })
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
		if sum, err := VerifyJournal(path); err != nil || sum.Records != 5 {
			t.Fatalf("after a further record: %+v, %v", sum, err)
		}
	}
}

func TestOneProcessHoldsTheJournal(t *testing.T) {
	path, _ := writeJournal(t, 1)
	j, _, err := OpenJournal(path, func(*Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, _, err = OpenJournal(path, func(*Record) error { return nil })
	wantErr(t, err, ErrLocked, path)
	if sum, err := VerifyJournal(path); err != nil || sum.Records != 1 {
		t.Errorf("verifying beside the holder: %+v, %v", sum, err)
	}
}

func TestAFullDiskLosesNothingAndTheNextRecordFits(t *testing.T) {
	k := &disk{left: -1, syncs: -1}
	full := &fullDisk{disk: k}
	j := &Journal{file: full}
	rec := func() *Record { return &Record{Kind: StepStop, Plan: "P-000001"} }
	if err := j.Append(rec()); err != nil {
		t.Fatal(err)
	}
	full.full = true
	if err := j.Append(rec(), rec()); !errors.Is(err, errFull) {
		t.Fatalf("on a full disk: %v", err)
	}
	full.full = false
	if err := j.Append(rec()); err != nil {
		t.Fatal(err)
	}
	c := chain{name: "journal"}
	if err := c.read(bytes.NewReader(k.data), nil); err != nil || c.seq != 2 {
		t.Errorf("%d records, %v", c.seq, err)
	}
	k.syncs = 0 // a failed fsync: what is on disk is not known any more
	first := j.Append(rec())
	k.dead, k.syncs = false, -1
	if again := j.Append(rec()); again == nil || again.Error() != first.Error() {
		t.Errorf("after a failed fsync: %v, then %v", first, again)
	}
}

// TestAFullDiskIsSaidAndGoneOn lets a proposal expire on a full disk: the desk says that it cannot write,
// in the log once, and goes on when there is room.
func TestAFullDiskIsSaidAndGoneOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		m, full := newTestMachine(8, 4), &fullDisk{disk: &disk{left: -1, syncs: -1}}
		d := startDesk(Config{Settings: DefaultSettings(), Driver: m, Situation: m.situation,
			Log: slog.New(slog.NewTextHandler(&said, nil))}, newBook(), &Journal{file: full})
		p := propose(t, d, olga, ask(0, ""))
		set := func(v bool) {
			if err := d.do(t.Context(), func() error { full.full = v; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		set(true)
		time.Sleep(time.Hour)
		wantState(t, d, p.ID, Proposed)
		if err := d.Unrecorded(); !errors.Is(err, errFull) {
			t.Errorf("on a full disk: %v", err)
		}
		set(false)
		time.Sleep(time.Second)
		wantState(t, d, p.ID, Expired)
		if err := d.Unrecorded(); err != nil {
			t.Errorf("with room again: %v", err)
		}
		d.Close()
		if n := strings.Count(said.String(), "not recorded"); n != 1 {
			t.Errorf("the log says it %d times:\n%.600s", n, said.String())
		}
	})
}

// TestWhatHasEndedIsLookedAtNoMore counts the plans that every tick walks over.
func TestWhatHasEndedIsLookedAtNoMore(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		for i := range 4 {
			propose(t, d, olga, ask(i, ""))
		}
		rejected, err := d.Reject(t.Context(), sam, "P-000002", Answer{Reason: why})
		if err != nil || rejected.Ended == nil || rejected.Ended.By != sam.Name || rejected.Ended.Reason != why {
			t.Fatalf("%+v, %v", rejected.Ended, err)
		}
		waiting, err := d.Waiting(t.Context())
		if err != nil || len(waiting) != 3 || waiting[0].ID != "P-000004" || waiting[2].ID != "P-000001" {
			t.Errorf("waiting are %+v, %v", waiting, err)
		}
		time.Sleep(time.Hour)
		newest, err := d.Plans(t.Context(), 2)
		if err != nil || len(newest) != 2 || newest[0].ID != "P-000004" || newest[0].Moves != nil ||
			Title(&newest[0]) != "cn3 -> fwd3" {
			t.Errorf("the newest two are %+v, %v", newest, err)
		}
		p := wantState(t, d, "P-000004", Expired)
		if len(p.Moves) != 1 || p.Moves[0] != (Move{node(3), forwarder(1), "fwd3"}) || p.Frozen.Healthy != 4 ||
			Title(&p) != "cn3 -> fwd3" {
			t.Errorf("the whole of what has ended is %+v", p)
		}
		var said strings.Builder
		d.WriteMetrics(&said)
		if text := said.String(); !strings.Contains(text, `state="expired"} 3`) ||
			!strings.Contains(text, `state="rejected"} 1`) || strings.Contains(text, "proposed") {
			t.Errorf("counted are\n%s", text)
		}
		if err := d.do(t.Context(), func() error {
			if n := len(d.book.open); n != 0 {
				return fmt.Errorf("%d plans are open", n)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// hungDisk takes nothing and does not say so until it is let go.
type hungDisk struct {
	*disk
	hangs, goOn chan struct{}
}

func (h *hungDisk) Sync() error {
	close(h.hangs)
	<-h.goOn
	return h.disk.Sync()
}

// TestAScrapeDoesNotWaitForAHungDisk asks for the counters while a step is being written.
func TestAScrapeDoesNotWaitForAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, hung := newTestMachine(8, 4), &hungDisk{&disk{left: -1, syncs: -1}, make(chan struct{}), make(chan struct{})}
		d := startDesk(Config{Settings: DefaultSettings(), Driver: m, Situation: m.situation}, newBook(),
			&Journal{file: hung})
		go func() {
			<-hung.hangs
			time.Sleep(90 * time.Second)
			var said strings.Builder
			d.WriteMetrics(&said)
			if text := said.String(); !strings.Contains(text, "fairway_journal_write_seconds 90\n") ||
				!strings.Contains(text, "fairway_journal_records 0\n") {
				t.Errorf("while the disk hangs:\n%s", text)
			}
			close(hung.goOn)
		}()
		propose(t, d, olga, ask(0, ""))
		var said strings.Builder
		d.WriteMetrics(&said)
		if text := said.String(); !strings.Contains(text, "fairway_journal_write_seconds 0\n") ||
			!strings.Contains(text, "fairway_journal_records 1\n") {
			t.Errorf("afterwards:\n%s", text)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

var errFull = errors.New("no space left on device")

// fullDisk takes half of what it is given while it is full.
type fullDisk struct {
	*disk
	full bool
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.full {
		n, _ := f.disk.Write(p[:len(p)/2])
		return n, errFull
	}
	return f.disk.Write(p)
}

func crcText(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

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
