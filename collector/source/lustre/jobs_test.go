package lustre

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"fairway/collector"
	"fairway/collector/rootfs"
	"fairway/collector/topology"
)

// work is what one id has done at a storage target.
type work struct {
	id          string
	used, start float64 // Unix seconds
	read, wrote uint64
	punched     uint64
}

// entryOf writes an entry as releases from 2.14 on do.
func entryOf(w work) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- job_id:          %s\n  snapshot_time:   %020.9f secs.nsecs\n  start_time:      "+
		"%020.9f secs.nsecs\n  elapsed_time:    %.9f secs.nsecs\n", w.id, w.used, w.start, w.used-w.start)
	for _, op := range []struct {
		name string
		sum  uint64
	}{{"read_bytes", w.read}, {"write_bytes", w.wrote}} {
		fmt.Fprintf(&b, "  %-16s { samples: %11d, unit: bytes, min: %8d, max: %8d, sum: %16d, sumsq: %18d, hist: { "+
			"4K: 3, 4M: 6 } }\n", op.name+":", op.sum>>20, 4096, 1<<20, op.sum, 0)
	}
	for _, name := range []string{"read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs",
		"get_info", "set_info", "quotactl", "prealloc"} {
		n := uint64(0)
		if name == "punch" {
			n = w.punched
		}
		fmt.Fprintf(&b, "  %-16s { samples: %11d, unit: usecs, min: %8d, max: %8d, sum: %16d, sumsq: %18d }\n",
			name+":", n, 0, 0, n, 0)
	}
	return b.String()
}

const (
	tableFile = "proc/fs/lustre/obdfilter/fs-OST0000/job_stats"
	totalFile = "proc/fs/lustre/obdfilter/fs-OST0000/stats"
)

// treeOf is a storage target's two files.
func treeOf(read, wrote, punched uint64, entries ...string) fstest.MapFS {
	return fstest.MapFS{
		totalFile: file(fmt.Sprintf("snapshot_time 1 secs.nsecs\nread_bytes %d samples [bytes] 1 2 %d\n"+
			"write_bytes %d samples [bytes] 1 2 %d\npunch %d samples [usecs] 1 2 3\n", read>>20, read, wrote>>20, wrote,
			punched)),
		tableFile: file("job_stats:\n" + strings.Join(entries, "")),
	}
}

// did is who did what at a target, bytes written a second, by how it is listed.
func did(r collector.Reading) map[topology.JobID]float64 {
	out := map[topology.JobID]float64{}
	for _, j := range r.Jobs {
		if v, _ := collector.SampleOf(j.Samples, collector.WriteBytes); v != 0 || j.Job != collector.UncountedWork {
			out[j.Job] += v
		}
	}
	return out
}

const mib = 1 << 20

// Whatever an id is, what it did is its own, and the others keep theirs.
func TestOddIDs(t *testing.T) {
	for id, want := range map[string]topology.JobID{
		"24":                       "24",
		"\"24\"":                   "24",
		"SLURM_JOB24:0:cn1":        "24",
		"1234[7].pbs01":            "1234[7]",
		"dd.1000":                  "@dd.1000",
		"python3.0":                "@python3.0",
		"\"1000@login1\"":          "@1000@login1",
		"my prog.1000":             "@my prog.1000",
		"kworker/1:2.0":            "@kworker/1:2.0",
		"a: { samples: 1.1000":     "@a: { samples: 1.1000",
		"\x1b[31mred.1000":         "@\ufffd[31mred.1000",
		"12[\x1b[2J]":              "@12[\ufffd[2J]",
		"bad\xffutf.1000":          "@bad\ufffdutf.1000",
		"two\nlines.1000":          "@two\ufffdlines.1000",
		"three\n\nlines.1000":      "@three\ufffd\ufffdlines.1000",
		"\\x0aescaped.1000":        "@\\x0aescaped.1000",
		`"1234\x5B8\x5D.pbs01"`:    "1234[8]",
		`"31\x2B1"`:                "31+1",
		`"my\x20prog\x23.1000"`:    "@my prog#.1000",
		`\x20rest`:                 "@rest",
		"rest":                     "@rest",
		" rest":                    "@rest",
		"\" rest\"":                "@rest",
		strings.Repeat("\x01", 90): topology.JobID("@" + strings.Repeat("\ufffd", maxName/3)),
		"@ rest":                   "@@ rest",
		"":                         "@",
		strings.Repeat("x", 200):   topology.JobID("@" + strings.Repeat("x", maxName)),
		strings.Repeat("y", 9000):  topology.JobID("@" + strings.Repeat("y", maxName)),
		"job_id: 7":                "@job_id: 7",
	} {
		was := []string{entryOf(work{id: "before.1", used: 5, wrote: mib}), entryOf(work{id: id, used: 5, wrote: mib}),
			entryOf(work{id: "99", used: 5, wrote: mib})}
		now := []string{entryOf(work{id: "before.1", used: 101, wrote: 2 * mib}),
			entryOf(work{id: id, used: 101, wrote: 5 * mib}), entryOf(work{id: "99", used: 101, wrote: 9 * mib})}
		r := two(t, [2]fstest.MapFS{treeOf(0, 3*mib, 0, was...), treeOf(0, 16*mib, 0, now...)})
		got := did(r)
		if got["@before.1"] != mib || got["99"] != 8*mib || got[want] != 4*mib || len(got) != 3 {
			t.Errorf("%q: %v, want 4 MiB of %q beside 1 and 8", id, got, want)
		}
	}
}

// A line that cannot be read costs its own entry for as long as it cannot, and what that does is nobody's.
func TestBadEntriesCostThemselves(t *testing.T) {
	good := func(used float64, wrote uint64) string { return entryOf(work{id: "24", used: used, wrote: wrote}) }
	bad := func(used float64, wrote uint64) string { return entryOf(work{id: "25", used: used, wrote: wrote}) }
	for _, line := range []string{
		"  write_bytes:     { samples: x, unit: bytes, min: 1, max: 2, sum: 5 }\n",
		"  write_bytes:     { samples: 3, unit: bytes, min: 1, max: 2, sum: 99999999999999999999 }\n",
		"  write_bytes:\n", "  punch: {}\n", "  write_bytes: { unit: bytes }\n",
	} {
		now, s := fstest.MapFS{}, (*Source)(nil)
		s = New(now)
		for i, tree := range []fstest.MapFS{
			treeOf(0, 10*mib, 0, good(5, 4*mib), bad(5, 6*mib)),
			treeOf(0, 12*mib, 0, good(101, 5*mib), bad(101, 7*mib)+line),
			treeOf(0, 14*mib, 0, good(102, 6*mib), bad(102, 8*mib)),
			treeOf(0, 16*mib, 0, good(103, 7*mib), bad(103, 9*mib)),
		} {
			for name := range tree {
				now[name] = tree[name]
			}
			r := collector.Reading{Now: time.Unix(int64(100+i), 0)}
			err := s.Read(t.Context(), &r)
			want := []string{"map[]", "map[24:1.048576e+06 @ rest:1.048576e+06]",
				"map[24:1.048576e+06 @ rest:1.048576e+06]", "map[24:1.048576e+06 25:1.048576e+06]"}[i]
			if got := fmt.Sprint(did(r)); got != want || (err != nil) != (i == 1) {
				t.Errorf("%q, reading %d: %s, %v; want %s", line, i, got, err, want)
			}
		}
	}
}

// Entries come, end, come back and are passed over while the table changes: nothing is counted twice, and the sum is
// the target's.
func TestEntriesThatComeAndGo(t *testing.T) {
	one := func(id string, start, used float64, wrote uint64) string {
		return entryOf(work{id: id, start: start, used: used, wrote: wrote})
	}
	old := one("1", 1, 5, 100*mib)
	for name, c := range map[string]struct {
		readings [][]string
		total    []uint64
		want     []string // MiB of each reading but the first
	}{
		"new": {[][]string{{old}, {old, one("2", 101, 101, 3*mib)}}, []uint64{100, 103}, []string{"2:3"}},
		"ends and comes back": {[][]string{{old}, {}, {}, {one("1", 103, 103, 2*mib)}}, []uint64{100, 100, 100, 102},
			[]string{"", "", "1:2"}},
		"comes back within a reading": {[][]string{{old}, {one("1", 101, 101, 2*mib)}}, []uint64{100, 103},
			[]string{"1:2 @ rest:1"}},
		"comes back larger": {[][]string{{old}, {one("1", 101, 101, 200*mib)}}, []uint64{100, 300}, []string{"1:200"}},
		"is passed over once": {[][]string{{old}, {}, {one("1", 1, 102, 104*mib)}}, []uint64{100, 102, 104},
			[]string{"@ rest:2", "1:4"}},
		"is there twice": {[][]string{{old}, {one("1", 1, 101, 101*mib), one("1", 1, 101, 101*mib)}},
			[]uint64{100, 101}, []string{"1:1"}},
		"under two ids": {[][]string{{old}, {one("1", 1, 101, 101*mib), one("SLURM_JOB1:0:a", 101, 101, 4*mib)}},
			[]uint64{100, 105}, []string{"1:5"}},
		"none":            {[][]string{{}, {}}, []uint64{100, 107}, []string{"@ rest:7"}},
		"cleared by hand": {[][]string{{old}, {one("1", 1, 101, 1*mib)}}, []uint64{100, 103}, []string{"1:1 @ rest:2"}},
		"the total is read late": {[][]string{{old}, {one("1", 1, 101, 110*mib)}, {one("1", 1, 102, 120*mib)}},
			[]uint64{100, 108, 121}, []string{"1:10", "1:10 @ rest:1"}},
	} {
		now := fstest.MapFS{}
		s := New(now)
		for i, entries := range c.readings {
			for name, f := range treeOf(0, c.total[i]*mib, 0, entries...) {
				now[name] = f
			}
			r := collector.Reading{Now: time.Unix(int64(100+i), 0)}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			got := did(r)
			var words []string
			for _, who := range []topology.JobID{"1", "2", collector.UncountedWork} {
				if v := got[who]; v > 0 {
					words = append(words, fmt.Sprintf("%s:%.0f", who, v/mib))
				}
			}
			if text := strings.Join(words, " "); i > 0 && text != c.want[i-1] {
				t.Errorf("%s, reading %d: %q, want %q", name, i, text, c.want[i-1])
			}
		}
	}
}

// manyJobs are a target's entries: jobs, programs of users, and ids that nobody would write.
func manyJobs(n int, rng *rand.Rand) []work {
	all := make([]work, n)
	for i := range all {
		all[i] = work{id: fmt.Sprint(1_000_000 + i), start: 1, used: 2, read: rng.Uint64N(1 << 40),
			wrote: rng.Uint64N(1 << 40), punched: rng.Uint64N(1000)}
		switch i % 10 {
		case 7, 8:
			all[i].id = fmt.Sprintf("prog%d.%d", i, 1000+i%97)
		case 9:
			all[i].id = fmt.Sprintf("\x1b[%dm\xff odd: %d", i%8, i)
		}
	}
	return all
}

// The sum of all rows is what the target did, whoever did it and however many; the largest are named.
func TestRowsSumUpToTheTotal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 10, mostRows, mostRows + 1, 20_000} {
		all := manyJobs(n, rng)
		var total work
		for _, w := range all {
			total.read, total.wrote, total.punched = total.read+w.read, total.wrote+w.wrote, total.punched+w.punched
		}
		now := fstest.MapFS{}
		s := New(now)
		largest, before := "", total
		for second := range 3 {
			var b strings.Builder
			for _, w := range all {
				b.WriteString(entryOf(w))
			}
			for name, f := range treeOf(total.read, total.wrote, total.punched, b.String()) {
				now[name] = f
			}
			r := collector.Reading{Now: time.Unix(int64(100+second), 0)}
			s.jobs.due = time.Time{}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			var sum work
			named := largest == ""
			for _, j := range r.Jobs {
				value := func(m collector.Metric) uint64 { v, _ := collector.SampleOf(j.Samples, m); return uint64(v) }
				sum.read, sum.wrote = sum.read+value(collector.ReadBytes), sum.wrote+value(collector.WriteBytes)
				sum.punched += value(collector.MetaOps)
				named = named || string(j.Job) == largest
			}
			want := work{read: total.read - before.read, wrote: total.wrote - before.wrote,
				punched: total.punched - before.punched}
			if sum != want {
				t.Errorf("%d entries: the rows have %+v, the target %+v", n, sum, want)
			}
			if !named || len(r.Jobs) > mostRows+2 {
				t.Errorf("%d entries: %d rows, %q among them: %v", n, len(r.Jobs), largest, named)
			}
			before = total
			for i := range all {
				more := rng.Uint64N(100 * mib)
				if i == n/2 {
					more, largest = 1<<40, string(whoOf(all[i].id))
				} else if rng.IntN(3) == 0 {
					continue
				}
				w := &all[i]
				w.used = float64(101+second) - 0.5
				w.read, w.wrote, w.punched = w.read+more, w.wrote+more/3, w.punched+more%5
				total.read, total.wrote, total.punched = total.read+more, total.wrote+more/3, total.punched+more%5
			}
			total.read += 7 * mib // of nobody
		}
	}
}

// A table is the same in whatever pieces the kernel hands it over.
func TestTablesInPieces(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("job_stats:\n")
	for _, w := range manyJobs(300, rand.New(rand.NewPCG(3, 4))) {
		b.WriteString(entryOf(w))
	}
	want := b.String()[len("job_stats:\n"):]
	for _, size := range []int{maxEntry + 64, maxEntry + 100, 2*maxEntry + 1, scanBuffer} {
		var got strings.Builder
		err := scanJobs(t.Context(), iotest.HalfReader(bytes.NewReader(b.Bytes())), make([]byte, 0, size),
			func([]byte) int { return 0 }, func(text []byte, _ bool) { got.Write(text) })
		if err != nil || got.String() != want {
			t.Errorf("in a buffer of %d bytes: %d of %d bytes, %v", size, got.Len(), len(want), err)
		}
	}
	if err := scanJobs(t.Context(), iotest.ErrReader(os.ErrPermission), make([]byte, 0, scanBuffer),
		func([]byte) int { return 0 }, func([]byte, bool) {}); err == nil {
		t.Error("an error was lost")
	}
}

// Of more entries than are remembered those that are used stay, whatever stands before them; what the others do is
// nobody's, and counted.
func TestMoreEntriesThanAreRemembered(t *testing.T) {
	for name, c := range map[string]struct{ entries, inUse, named, beyond int }{
		"few": {100, 20, 20, 0}, "as many": {100, 50, 50, 0}, "more": {100, 80, 50, 30},
	} {
		now := fstest.MapFS{}
		s := New(now)
		s.jobs.most = 50
		for second := range 6 {
			at := int64(1000 + 10*second)
			var b strings.Builder
			total := uint64(0)
			for i := range c.entries {
				w := work{id: fmt.Sprint(i), used: 5}
				if i >= c.entries-c.inUse { // the last ones
					w.used, w.wrote = float64(at)-0.5, uint64(second)*mib
				}
				b.WriteString(entryOf(w))
				total += w.wrote
			}
			for file, f := range treeOf(0, total, 0, b.String()) {
				now[file] = f
			}
			r := collector.Reading{Now: time.Unix(at, 0)}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			if second < 3 {
				continue
			}
			got := did(r)
			rest := got[collector.UncountedWork] * 10 / mib
			delete(got, collector.UncountedWork)
			if len(got) != c.named || rest != float64(c.inUse-c.named) || s.jobs.newest.beyond != c.beyond {
				t.Errorf("%s, reading %d: %d named, %v of nobody, %d beyond; want %+v", name, second, len(got), rest,
					s.jobs.newest.beyond, c)
			}
		}
	}
}

// TestTablesAfterTheClockWasSetBack: rates of before are not those of now, for as long as it takes the clock.
func TestTablesAfterTheClockWasSetBack(t *testing.T) {
	now := fstest.MapFS{}
	s := New(now)
	for i, at := range []int64{5000, 5001, 1000, 1001} {
		wrote := uint64(100+i) * mib
		for name, f := range treeOf(0, wrote, 0, entryOf(work{id: "1", start: 1, used: float64(at), wrote: wrote})) {
			now[name] = f
		}
		r := collector.Reading{Now: time.Unix(at, 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if got, want := did(r)["1"], float64(i%2)*mib; got != want {
			t.Errorf("at %d it wrote %.0f bytes/s, want %.0f", at, got, want)
		}
	}
}

func TestPaceOfTables(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{time.Millisecond: 0, 40 * time.Millisecond: 0,
		80 * time.Millisecond: 2 * time.Second, 400 * time.Millisecond: 10 * time.Second, time.Hour: longestPace} {
		if got := paceOf(took); got != want {
			t.Errorf("after %v of a processor the next is due after %v, want %v", took, got, want)
		}
	}
}

// BenchmarkTableOfJobs is what a reading of 100,000 entries costs of a processor, one in fifty in use: 200 MB of text.
func BenchmarkTableOfJobs(b *testing.B) {
	const entries = 100_000
	dir := b.TempDir()
	name := filepath.Join(dir, tableFile)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.Fatal(err)
	}
	all := manyJobs(entries, rand.New(rand.NewPCG(5, 6)))
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	at := make([]int64, entries)
	end := int64(0)
	for i := range all {
		n, _ := f.WriteString(entryOf(all[i]))
		at[i], end = end, end+int64(n)
	}
	total := []byte("read_bytes 1 samples [bytes] 1 2 3\n")
	if err := os.WriteFile(filepath.Join(dir, totalFile), total, 0o644); err != nil {
		b.Fatal(err)
	}
	s := New(rootfs.At(dir))
	now := time.Unix(1_800_000_000, 0)
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	took, rows := time.Duration(0), 0
	for step := 0; b.Loop(); step++ {
		b.StopTimer()
		for i := step % 50; i < entries; i += 50 {
			all[i].wrote += mib
			all[i].used = float64(now.Unix()) + 0.5
			if _, err := f.WriteAt([]byte(entryOf(all[i])), at[i]); err != nil {
				b.Fatal(err)
			}
		}
		now = now.Add(5 * time.Second)
		r := collector.Reading{Now: now}
		s.jobs.due = time.Time{}
		b.StartTimer()
		began := cpu()
		if err := s.Read(b.Context(), &r); err != nil {
			b.Fatal(err)
		}
		took += cpu() - began
		rows = len(r.Jobs)
	}
	b.ReportMetric(float64(end)/1e6, "MB")
	b.ReportMetric(took.Seconds()*1e3/float64(b.N), "cpu-ms/read")
	b.ReportMetric(paceOf(s.jobs.under.took).Seconds(), "pace-s")
	b.ReportMetric(float64(rows), "rows")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
	runtime.KeepAlive(s)
}

// TestATableThatDoesNotEnd: what is still being read after a minute is an error, and nothing begins once it is closed.
func TestATableThatDoesNotEnd(t *testing.T) {
	s := &Source{}
	begun := time.Unix(1_700_000_000, 0)
	s.into = &collector.Reading{Now: begun.Add(2 * time.Minute)}
	s.jobs.under.done, s.jobs.begun = make(chan struct{}), begun
	s.jobs.report(s)
	if s.err == nil || !strings.Contains(s.err.Error(), "still being read after 120 s") {
		t.Errorf("after two minutes: %v", s.err)
	}
	s = &Source{}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.jobs.under.begin(t.Context(), func(ctx context.Context) *jobReading {
		return &jobReading{trouble: trouble{err: ctx.Err()}}
	})
	<-s.jobs.under.done
	if r, ended := s.jobs.under.take(); !ended || r.err == nil {
		t.Error("a reading begins after the end")
	}
}

func FuzzJobStats(f *testing.F) {
	f.Add([]byte("job_stats:\n- job_id: 24\n  write: { samples: 1, unit: usecs, sum: 3, hist: { 1K: 1 } }\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { ParseJobStats(b); ParseParams(b) })
}
