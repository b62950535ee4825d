package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// recipe is what the tests' logs hold: the reader makes rows of it.
type recipe struct {
	Job   string
	Files int
	Seed  uint64
}

var testDay = time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)

func readRecipe(_ context.Context, in Input) (*iolog.Log, error) {
	b, err := io.ReadAll(in.Content)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(b, []byte("text")) {
		return nil, iolog.ErrNotALog
	}
	if bytes.HasPrefix(b, []byte("panic")) {
		panic("as asked")
	}
	var r recipe
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("byte 0: %w", err)
	}
	return synthetic(in.ID, r), nil
}

// synthetic makes one job with its files; equal recipes give equal rows.
func synthetic(id int64, r recipe) *iolog.Log {
	rnd := rand.New(rand.NewPCG(r.Seed, 5))
	start := testDay.Add(time.Duration(rnd.IntN(86400*3)) * time.Second)
	procs := int64(1) << rnd.IntN(14)
	j := iolog.Job{
		Log: id, JobID: r.Job, UID: 1000, App: fmt.Sprintf("app%02d", rnd.IntN(40)), Procs: procs, Start: start,
		End:        start.Add(time.Hour),
		RunSeconds: 3600, Files: int64(r.Files), UsesPosix: true, UsesMPIIO: rnd.IntN(4) == 0, MetaSeconds: math.NaN(),
		SizeReads: make([]int64, 10), SizeWrites: make([]int64, 10),
	}
	j.Write = iolog.Factors{
		IOSeconds: 100 * rnd.Float64(), BytesPerSec: 3e9 * rnd.Float64(), Small: rnd.Float64(),
		Nonconsec: rnd.Float64(), Collective: 0,
		OSTs: 1, ProcsPerOST: float64(procs), LongestShare: rnd.Float64(), CriticalFiles: 3,
	}
	j.Read = j.Write
	l := &iolog.Log{Kind: "recipe"}
	one := int64(1)
	for i := range r.Files {
		f := iolog.JobFile{
			Log: id, JobID: r.Job, File: int64(rnd.Uint32()), Procs: 1 + rnd.Int64N(procs), UsesPosix: true,
			BytesRead: rnd.Int64N(1e9), BytesWritten: rnd.Int64N(1e9),
			Reads: 100, Writes: 200, PosixReads: 100, PosixWrites: 200, SeqReads: rnd.Int64N(100),
			SeqWrites: rnd.Int64N(200), ReadStart: math.NaN(), ReadEnd: math.NaN(),
			WriteStart: rnd.Float64() * 1000, StripeCount: &one, OSTs: []int32{int32(rnd.IntN(248))},
		}
		f.WriteEnd = f.WriteStart + rnd.Float64()*10
		size, offset := int64(1<<20), int64(-1)
		if rnd.IntN(1000) == 0 {
			size = 1 << 22
		}
		f.StripeSize, f.StripeOffset = &size, &offset
		l.JobFiles = append(l.JobFiles, f)
		l.Files = append(l.Files, iolog.File{ID: f.File, Path: fmt.Sprintf("/scratch/%s/out.%d", r.Job, i),
			Mount: "/scratch", FS: "lustre"})
		j.BytesRead += f.BytesRead
		j.BytesWritten += f.BytesWritten
		j.PosixReads += 100
		j.PosixWrites += 200
		j.SeqReads += f.SeqReads
		j.SeqWrites += f.SeqWrites
		j.SizeWrites[rnd.IntN(10)] += 200
		j.SizeReads[rnd.IntN(10)] += 100
		if f.Procs > 1 {
			j.SharedFiles++
		}
		if f.Procs == procs {
			j.FullFiles++
		}
	}
	l.Jobs = []iolog.Job{j}
	return l
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logs writes n recipes of three files each.
func logs(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		write(t, dir, fmt.Sprintf("%04d.log", i), fmt.Sprintf(`{"Job":"%d","Files":3,"Seed":%d}`, 1000+i, i))
	}
}

func run1(t *testing.T, im Importer, paths ...string) Report {
	t.Helper()
	im.Read, im.TrustedBy = readRecipe, "root"
	rep, err := im.Import(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// one answers a query of one row.
func one(t *testing.T, dir, query string) []any {
	t.Helper()
	res, err := Query(t.Context(), dir, query, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Rows) != 1 {
		t.Fatalf("%s: %d rows", query, len(res.Rows))
	}
	return res.Rows[0]
}

func TestEachLogIsReadOnce(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	logs(t, from, 30)
	write(t, from, "copy-of-3.log", `{"Job":"1003","Files":3,"Seed":3}`)
	write(t, from, "readme", "text, no log")
	write(t, from, "cut.log", `{"Job":`)
	write(t, from, "panic.log", `panic`)
	var last Progress
	rep := run1(t, Importer{Dir: dir, BatchRows: 40, Progress: func(p Progress) { last = p }}, from,
		filepath.Join(from, "nowhere"))
	if rep.Imported != 30 || rep.Known != 1 || rep.Skipped != 1 || rep.Files != 34 || rep.Rows != 30*7 {
		t.Errorf("%+v", rep)
	}
	var problems []string
	for _, b := range rep.Bad {
		problems = append(problems, filepath.Base(b.Path)+": "+b.Problem)
	}
	slices.Sort(problems)
	if len(problems) != 3 || !strings.Contains(problems[0], "cut.log") ||
		!strings.Contains(problems[1], "no such file") || !strings.Contains(problems[2], "panicked: as asked") {
		t.Errorf("bad logs: %q", problems)
	}
	if last.Files != 34 || last.Bytes != last.TotalBytes || last.Left() != 0 {
		t.Errorf("progress ended at %+v", last)
	}
	if got := one(t, dir,
		"SELECT (SELECT count(*) FROM job), (SELECT count(*) FROM jobfile), (SELECT count(DISTINCT log) FROM "+
			"jobfile), (SELECT count(*) FROM read WHERE bad)"); !slices.Equal(got,
		[]any{int64(30), int64(90), int64(30), int64(2)}) {
		t.Errorf("rows %v", got)
	}
	again := run1(t, Importer{Dir: dir}, from)
	if again.Imported != 0 || again.Known != 33 || len(again.Bad) != 0 {
		t.Errorf("the second import did something: %+v", again)
	}
	write(t, from, "cut.log", `{"Job":"77","Files":1}`)
	if rep := run1(t, Importer{Dir: dir}, from); rep.Imported != 1 {
		t.Errorf("a mended log was not read: %+v", rep)
	}
	if rep := run1(t, Importer{Dir: dir, Retry: true}, from); rep.Imported != 0 || len(rep.Bad) != 1 {
		t.Errorf("retry: %+v", rep)
	}
}

func TestUnknownIsNull(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 1)
	run1(t, Importer{Dir: dir}, from)
	if got := one(t, dir, "SELECT meta_seconds IS NULL, start_time IS NULL, len(size_reads) FROM job"); !slices.Equal(
		got, []any{true, false, int64(10)}) {
		t.Errorf("%v", got)
	}
	if got := one(t, dir,
		"SELECT bool_and(read_start IS NULL), bool_and(write_start IS NOT NULL), min(stripe_count), min(len(osts)) "+
			"FROM jobfile"); !slices.Equal(got, []any{true, true, int64(1), int64(1)}) {
		t.Errorf("%v", got)
	}
}

func TestTwoImportsAreRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := (&Importer{Dir: dir, Read: readRecipe}).Import(t.Context(), dir); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
}

// A batch that was committed but not moved in is finished by the next import; one that was not is gone.
func TestRecovery(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 4)
	run1(t, Importer{Dir: dir}, from)
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	// Move the committed parts back under pending, half of them.
	parts, err := filepath.Glob(filepath.Join(dir, "job*", "day=*", "*.parquet"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	batch := filepath.Join(dir, "pending", strings.TrimSuffix(filepath.Base(parts[0]), ".parquet"))
	for _, p := range parts {
		rel, _ := filepath.Rel(dir, p)
		to := filepath.Join(batch, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(p, to); err != nil {
			t.Fatal(err)
		}
	}
	write(t, batch, commitName, "")
	torn := filepath.Join(dir, "pending", "torn", "job", "day=2026-11-21")
	if err := os.MkdirAll(torn, 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, torn, "torn.parquet", "half a")
	if rep := run1(t, Importer{Dir: dir}, from); rep.Imported != 0 || rep.Known != 4 {
		t.Errorf("%+v", rep)
	}
	if got := one(t, dir, "SELECT (SELECT count(*) FROM job), (SELECT count(*) FROM jobfile)"); !slices.Equal(got,
		[]any{int64(4), int64(12)}) {
		t.Errorf("rows %v", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "pending")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestQueriesCannotLeaveTheArchive(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 2)
	run1(t, Importer{Dir: dir}, from)
	secret := filepath.Join(from, "0000.log")
	for _, q := range []string{
		"SELECT * FROM read_text('" + secret + "')",
		"SELECT * FROM '" + secret + "'",
		"SELECT * FROM glob('" + from + "/*')",
		"COPY job TO '" + filepath.Join(dir, "x.parquet") + "'",
		"COPY job TO '" + filepath.Join(from, "x.parquet") + "'",
		"EXPLAIN ANALYZE COPY job TO '" + filepath.Join(dir, "x.parquet") + "'",
		"SET enable_external_access = true",
		"SELECT 1; DROP VIEW job",
		"DROP VIEW job", "CREATE TABLE t (x INT)", "INSTALL httpfs", "LOAD httpfs",
		"ATTACH '" + filepath.Join(dir, "x.db") + "'",
		"PRAGMA threads = 9", "CALL pragma_version()", "not sql", "",
	} {
		if res, err := Query(t.Context(), dir, q, nil, 0); !errors.Is(err, iolog.ErrQuery) {
			t.Errorf("%s: answered %v, error %v", q, res, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.parquet")); err == nil {
		t.Error("a query wrote a file")
	}
}

func TestQueryLimitsAndEmptyArchive(t *testing.T) {
	dir := t.TempDir()
	if got := one(t, dir, "SELECT count(*) FROM jobfile"); got[0] != int64(0) {
		t.Errorf("empty archive: %v", got)
	}
	res, err := Query(t.Context(), dir, "SELECT * FROM range(10)", nil, 3)
	if err != nil || len(res.Rows) != 3 || !res.Cut {
		t.Errorf("%+v %v", res, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Query(ctx, dir, "SELECT count(*) FROM range(1000000) a, range(1000000) b", nil, 0); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a query ran past its deadline: %v", err)
	}
}

// What was written comes back as it was, NaN and nil as such.
func TestJobLogsComeBack(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 5)
	run1(t, Importer{Dir: dir}, from)
	r := NewReader(dir, Limits{}, nil)
	got, err := r.JobLogs(t.Context(), history.Run{Job: "1002"})
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	want := synthetic(got[0].Jobs[0].Log, recipe{Job: "1002", Files: 3, Seed: 2})
	for _, l := range []*iolog.Log{want, &got[0]} {
		slices.SortFunc(l.JobFiles, func(a, b iolog.JobFile) int { return int(a.File - b.File) })
		slices.SortFunc(l.Files, func(a, b iolog.File) int { return int(a.ID - b.ID) })
	}
	want.Kind, want.Jobs[0].Owner = "darshan", iolog.OwnerTrusted
	if g, w := fmt.Sprintf("%+v", clean(got[0])), fmt.Sprintf("%+v", clean(*want)); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if got, err := r.JobLogs(t.Context(), history.Run{Job: "no such job"}); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := NewReader(filepath.Join(dir, "nowhere"), Limits{}, nil).JobLogs(t.Context(),
		history.Run{Job: "1"}); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

// clean puts values in the place of pointers, which print as addresses.
func clean(l iolog.Log) any {
	type file struct {
		iolog.JobFile
		size, count, offset int64
	}
	var files []file
	for _, f := range l.JobFiles {
		c := file{f, *f.StripeSize, *f.StripeCount, *f.StripeOffset}
		c.StripeSize, c.StripeCount, c.StripeOffset = nil, nil, nil
		files = append(files, c)
	}
	l.JobFiles = nil
	return []any{l, files}
}

// Many small imports leave few parts, every row once, and nothing to recover.
func TestSmallPartsAreMerged(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 3)
	run1(t, Importer{Dir: dir}, from)
	same := `{"Job":"1","Files":2,"Seed":7}`
	for i := range 18 {
		// The same files again, in another log.
		write(t, from, fmt.Sprint("again", i), same+strings.Repeat(" ", i))
		run1(t, Importer{Dir: dir}, filepath.Join(from, fmt.Sprint("again", i)))
	}
	for _, table := range []string{"job", "jobfile", "file", "read"} {
		days, _ := filepath.Glob(filepath.Join(dir, table, "day=*"))
		if len(days) == 0 {
			t.Errorf("%s has no days", table)
		}
		for _, day := range days {
			if parts, _ := filepath.Glob(filepath.Join(day, "*.parquet")); len(parts) > manyParts {
				t.Errorf("%s: %d parts", day, len(parts))
			}
		}
	}
	if merged, _ := filepath.Glob(filepath.Join(dir, "*", "day=*", "merged-*")); len(merged) == 0 {
		t.Error("nothing was merged")
	}
	got := one(t, dir,
		"SELECT (SELECT count(*) FROM job), (SELECT count(DISTINCT log) FROM job), (SELECT count(*) FROM jobfile), "+
			"(SELECT count(DISTINCT (log, file)) FROM jobfile), (SELECT count(*) FROM read)")
	if want := []any{int64(21), int64(21), int64(45), int64(45), int64(21)}; !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "pending")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if rep := run1(t, Importer{Dir: dir}, from); rep.Imported != 0 {
		t.Errorf("logs were read again: %+v", rep)
	}
}

// Questions go on while imports write and merge: each sees whole batches only.
func TestQueriesDuringImports(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 24)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 24 {
			im := Importer{Dir: dir, Read: readRecipe}
			if _, err := im.Import(context.Background(), filepath.Join(from, fmt.Sprintf("%04d.log", i))); err != nil {
				t.Error(err)
			}
		}
	}()
	asked := 0
	for last := int64(0); last < 24; asked++ {
		res, err := Query(t.Context(), dir, "SELECT count(*), count(DISTINCT log) FROM job", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		n, distinct := res.Rows[0][0].(int64), res.Rows[0][1].(int64)
		if n != distinct || n < last {
			t.Fatalf("%d rows of %d logs after %d", n, distinct, last)
		}
		last = n
		select {
		case <-done:
			if last < 24 {
				if n := one(t, dir, "SELECT count(*) FROM job")[0]; n != int64(24) {
					t.Fatalf("%d jobs at the end", n)
				}
				return
			}
		default:
		}
	}
	<-done
	t.Logf("%d questions", asked)
}
