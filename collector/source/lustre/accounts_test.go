package lustre

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// tableOf writes a table of accounts as servers of 2.12 do, by user in kB.
func tableOf(kbytes map[int]uint64) *fstest.MapFile {
	text := "usr_accounting:\n"
	for id := range 100 {
		if n, ok := kbytes[id]; ok {
			text += fmt.Sprintf("- %-8s %d\n  %-8s { inodes: %20d, kbytes: %20d }\n", "id:", id, "usage:", n/1000, n)
		}
	}
	return file(text)
}

// TestWhoFillsATarget: of a target that fills the users with most are named, and whose grew, from the second reading
// that shows growth on; one with space is not read.
func TestWhoFillsATarget(t *testing.T) {
	const target = "proc/fs/lustre/osd-ldiskfs/fs-OST0000/"
	tree := fstest.MapFS{target + "filestotal": file("1000\n"), target + "filesfree": file("900\n"),
		target + "kbytestotal": file("1000\n"), target + "kbytesavail": file("300\n"),
		target + "kbytesfree": file("300\n")}
	s := New(tree)
	defer s.Close()
	start := time.Unix(1_800_000_000, 0)
	kbytes := map[int]uint64{0: 5, 17: 3_000_000_000, 18: 2_000_000, 19: 1_000_000, 20: 1_000, 21: 0}
	read := func(minute int) string {
		tree[target+"quota_slave/acct_user"] = tableOf(kbytes)
		r := collector.Reading{Now: start.Add(time.Duration(minute) * time.Minute)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Error(err)
		}
		if done := s.full.accounts.under.done; done != nil {
			<-done
			r.Note, r.Samples, r.Targets = "", nil, nil
			if err := s.Read(t.Context(), &r); err != nil {
				t.Error(err)
			}
		}
		return r.Note
	}
	if got := read(0); got != "" {
		t.Errorf("of a target with space: %s", got)
	}
	tree[target+"kbytesavail"] = file("100\n")
	const most = "fs-OST0000 bytes: who has most: uid 17 (3.07 TB), uid 18 (2.05 GB), uid 19 (1.02 GB)"
	if got := read(1); got != most {
		t.Errorf("%s, want %s", got, most)
	}
	kbytes[18], kbytes[20], kbytes[22] = 2_000_500, 2_000, 9_000 // 18 grew by less than leastGrown, 22 is new
	if got := read(5); got != most {
		t.Errorf("growth after 4 minutes: %s", got)
	}
	want := most + "; whose grew most in 12 minutes: uid 22 (9.22 MB), uid 20 (1.02 MB)"
	if got := read(13); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// What is compared with is at most an hour old.
	for minute := 14; minute < 100; minute++ {
		kbytes[22] = uint64(9_000 + minute)
		got := read(minute)
		from := strings.Index(got, "in ") + len("in ")
		var span int
		if _, err := fmt.Sscan(got[from:], &span); err != nil || span > 61 {
			t.Fatalf("minute %d: %q", minute, got)
		}
	}
	tree[target+"kbytesavail"] = file("300\n")
	if got := read(101); got != "" {
		t.Errorf("of a target that has space again: %s", got)
	}
	tree[target+"kbytesavail"] = file("100\n")
	if got := read(300); !strings.HasPrefix(got, "fs-OST0000 bytes: who has most") || strings.Contains(got, "grew") {
		t.Errorf("when it fills again, hours later: %s", got)
	}
}

// TestBadAccounts: an entry that cannot be understood costs itself, whatever else stands in its table.
func TestBadAccounts(t *testing.T) {
	const good = "- id:      7\n  usage:   { inodes:                  220, kbytes:                15636 }\n"
	for name, text := range map[string]string{
		"usage without an id":    "  usage:   { inodes: 1, kbytes: 99 }\n" + good,
		"id without usage":       "- id:      8\n" + good,
		"id of 64 bits":          "- id:      18446744073709551615\n  usage:   { inodes: 1, kbytes: 99999 }\n" + good,
		"negative":               "- id:      8\n  usage:   { inodes: 1, kbytes: -4 }\n" + good,
		"beyond what can be":     "- id:      8\n  usage:   { inodes: 1, kbytes: 18446744073709551000 }\n" + good,
		"cut off":                good + "- id:      8\n  usage:   { inodes: 1, kbytes: 99999999",
		"a line without end":     "- id: " + strings.Repeat("9", 2*scanBuffer) + "\n" + good,
		"another release's":      "- id:      8\n  usage:   { files: 1, blocks: 99999 }\n" + good,
		"twice, as it grew":      good + "- id:      7\n  usage:   { inodes: 1, kbytes: 100 }\n",
		"Windows' ends of lines": strings.ReplaceAll(good, "\n", "\r\n"),
		"not supported":          "not supported\n",
	} {
		table := accountTable{file: "t", of: "fs-OST0000"}
		tree := fstest.MapFS{"t": file("usr_accounting:\n" + text)}
		got, err := table.read(t.Context(), tree, time.Unix(1, 0), &ledger{})
		want := "who has most: uid 7 (16 MB)"
		if name == "not supported" {
			want = ""
		}
		if got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		ok := name == "not supported" || name == "usage without an id" || strings.Contains(name, "twice") ||
			strings.HasPrefix(name, "Windows")
		if (err == nil) != ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestQuotas: who has nine tenths of what is allowed is named, in blocks and in inodes; 0 allows all.
func TestQuotas(t *testing.T) {
	const head = "global_pool0_dt_usr\n"
	limit := func(id, hard, soft, granted int) string {
		return fmt.Sprintf("- %-8s %d\n  %-8s { hard: %12d, soft: %12d, granted: %12d, time: %15d }\n", "id:", id,
			"limits:", hard, soft, granted, 604800)
	}
	all := head + limit(0, 0, 0, 0) + limit(7, 1000, 900, 950) + limit(8, 1000, 0, 899) + limit(9, 0, 1000, 2000) +
		limit(10, 0, 0, 5000)
	for _, c := range []struct {
		inodes bool
		text   string
		want   string
	}{
		{false, all, "near their quotas: uid 9 (2.05 MB of 1.02 MB), uid 7 (973 kB of 1.02 MB)"},
		{true, all, "near their quotas: uid 9 (2000 of 1000), uid 7 (950 of 1000)"},
		{true, head + limit(7, 1000, 900, 50), ""},
		{true, all + limit(11, 10, 0, 9) + limit(12, 10, 0, 10), "near their quotas: uid 9 (2000 of 1000), " +
			"uid 12 (10 of 10), uid 7 (950 of 1000) and 1 more"},
	} {
		table := accountTable{file: "t", of: "fs-QMT0000", limits: true, inodes: c.inodes}
		tree := fstest.MapFS{"t": file(c.text)}
		if got, err := table.read(t.Context(), tree, time.Unix(1, 0), &ledger{}); err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}

// TestManyAccounts: of more users than are remembered no growth is larger than it was.
func TestManyAccounts(t *testing.T) {
	var l ledger
	table := accountTable{file: "t", of: "fs-OST0000", inodes: true}
	read := func(minute, more int) string {
		var b strings.Builder
		for id := range 3 * mostHeld {
			n := 1 + id
			if id == 5 {
				n += more
			}
			fmt.Fprintf(&b, "- id:      %d\n  usage:   { inodes: %12d, kbytes: %12d }\n", id, n, 1)
		}
		text, err := table.read(t.Context(), fstest.MapFS{"t": file(b.String())},
			time.Unix(int64(minute)*60, 0), &l)
		if err != nil {
			t.Error(err)
		}
		return text
	}
	read(1, 0)
	if len(l.first.all) != mostHeld || l.first.floor != 2*mostHeld {
		t.Errorf("%d are remembered, the others had at most %d", len(l.first.all), l.first.floor)
	}
	want := fmt.Sprintf("whose grew most in 20 minutes: uid 5 (%d)", 40_006-2*mostHeld)
	if got := read(21, 40_000); !strings.HasSuffix(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}

// endedFS gives a file whose first reading ends the context.
type endedFS struct {
	fstest.MapFS
	end context.CancelFunc
}

type endedFile struct {
	fs.File
	end context.CancelFunc
}

func (f endedFS) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	return endedFile{file, f.end}, err
}

func (f endedFile) Read(b []byte) (int, error) { f.end(); return f.File.Read(b) }

// TestAPartOfATable: of a table that was not read to its end nothing is reported or remembered.
func TestAPartOfATable(t *testing.T) {
	var text strings.Builder
	for id := range 2000 {
		fmt.Fprintf(&text, "- id:      %d\n  usage:   { inodes: 1, kbytes: 1 }\n", id)
		fmt.Fprintf(&text, "- id:      %d\n  limits:  { hard: 10, soft: 0, granted: 10, time: 1 }\n", id)
	}
	for _, limits := range []bool{false, true} {
		ctx, end := context.WithCancel(t.Context())
		table, l := accountTable{file: "t", of: "fs-OST0000", limits: limits}, &ledger{}
		got, err := table.read(ctx, endedFS{fstest.MapFS{"t": file(text.String())}, end}, time.Unix(1, 0), l)
		if got != "" || !errors.Is(err, context.Canceled) || len(l.first.all) > 0 {
			t.Errorf("limits %v: %q, %v, %d are remembered", limits, got, err, len(l.first.all))
		}
	}
}

// stuckFS needs its time for one table.
type stuckFS struct {
	fstest.MapFS
	table string
}

func (f stuckFS) Open(name string) (fs.File, error) {
	if name == f.table {
		time.Sleep(90 * time.Second)
	}
	return f.MapFS.Open(name)
}

// TestASlowTableOfAccounts: a table that takes its time holds up no second.
func TestASlowTableOfAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const target = "proc/fs/lustre/osd-ldiskfs/fs-OST0000/"
		tree := stuckFS{fstest.MapFS{target + "filestotal": file("1000\n"), target + "filesfree": file("10\n"),
			target + "quota_slave/acct_user": tableOf(map[int]uint64{7: 1_000_000})}, target + "quota_slave/acct_user"}
		for _, name := range []string{"kbytestotal", "kbytesfree", "kbytesavail"} {
			tree.MapFS[target+name] = file("1000\n")
		}
		s := New(tree)
		defer s.Close()
		notes := 0
		for range 15 * 60 {
			began := time.Now()
			r := collector.Reading{Now: began}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 0 {
				t.Fatalf("a second took %s", took)
			}
			if strings.Contains(r.Note, "fs-OST0000 inodes: who has most: uid 7 (1000)") {
				notes++
			}
			time.Sleep(time.Second)
		}
		if notes == 0 {
			t.Error("its outcome is not reported")
		}
		time.Sleep(90 * time.Second)
	})
}

func FuzzAccounts(f *testing.F) {
	f.Add([]byte("usr_accounting:\n- id:      7\n  usage:   { inodes:     220, kbytes:      15636 }\n"), false, false)
	f.Add([]byte("- id: 7\n  limits:  { hard: 100, soft: 0, granted: 95, time: 604800 }\n"), true, true)
	f.Fuzz(func(t *testing.T, text []byte, inodes, limits bool) {
		table := accountTable{file: "t", of: "fs-OST0000", inodes: inodes, limits: limits}
		l := &ledger{}
		for minute := range 2 {
			got, _ := table.read(t.Context(), fstest.MapFS{"t": {Data: text}}, time.Unix(int64(minute)*1200, 0), l)
			if len(got) > 250 || strings.Contains(got, "\n") {
				t.Errorf("%q", got)
			}
		}
	})
}
