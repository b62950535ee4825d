package archive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// TestWhoseLogCounts imports a log of job 7, which wei (uid 1001) ran, as the file's owner, the log's own words and the
// importer have it: what is not wei's decides nothing and is on no page.
func TestWhoseLogCounts(t *testing.T) {
	hour := time.Hour
	nodes := int64(2)
	for name, c := range map[string]struct {
		file, says int64 // uids
		at         time.Time
		trusted    string
		counts     bool
	}{
		"hers":                                 {1001, 1001, testDay, "", true},
		"another's, with her number":           {1002, 1002, testDay, "", false},
		"another's, with her number and uid":   {1002, 1001, testDay, "", false},
		"root's copy":                          {0, 1001, testDay, "", false},
		"root's copy, vouched for":             {0, 1001, testDay, "root", true},
		"hers, of an earlier run":              {1001, 1001, testDay.Add(-72 * hour), "", false},
		"another's, of the number before hers": {1002, 1002, testDay.Add(-72 * hour), "", false},
		"a nameless user's":                    {4711, 4711, testDay, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			none := math.NaN()
			unknown := iolog.Factors{IOSeconds: none, BytesPerSec: none, LongestShare: none, Small: none,
				Nonconsec: none, Collective: none, OSTs: none, ProcsPerOST: none}
			written := unknown
			written.IOSeconds, written.BytesPerSec = 10, 1e9
			dir := filepath.Join(t.TempDir(), "archive")
			from := t.TempDir()
			path := filepath.Join(from, "log")
			if err := os.WriteFile(path, []byte("log"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(path, int(c.file), -1); err != nil {
				t.Skip("skipped: files cannot be given to others: ", err)
			}
			if err := os.WriteFile(filepath.Join(from, "accounts"), []byte("accounts"), 0o644); err != nil {
				t.Fatal(err)
			}
			im := Importer{Dir: dir, TrustedBy: c.trusted,
				UserOf: func(uid int64) string { return map[int64]string{1001: "wei", 1002: "eve"}[uid] },
				Read: func(_ context.Context, in Input) (*iolog.Log, error) {
					if strings.HasSuffix(in.Path, "accounts") {
						return &iolog.Log{Slurm: []iolog.Slurm{{JobID: "7", SlurmID: "7", Name: "roms", User: "wei",
							Start: testDay, End: testDay.Add(hour), NodeCount: &nodes}}}, nil
					}
					return &iolog.Log{Jobs: []iolog.Job{{Log: 1, JobID: "7", UID: c.says, Procs: 4, Start: c.at,
						End: c.at.Add(hour), BytesWritten: 10e9, MetaSeconds: none, Write: written, Read: unknown}},
						JobFiles: []iolog.JobFile{{Log: 1, File: 1, Procs: 4, BytesWritten: 10e9}}}, nil
				}}
			if r, err := im.Import(t.Context(), from); err != nil || r.Imported != 2 {
				t.Fatalf("%+v %v", r, err)
			}
			want := 0
			if c.counts {
				want = 1
			}
			if runs := collect(t, dir, two); len(runs) != want {
				t.Errorf("%d runs decide: %+v", len(runs), runs)
			}
			for _, run := range []history.Run{{Job: "7"},
				{Job: "7", User: "wei", Start: testDay, End: testDay.Add(hour)}} {
				logs, err := NewReader(dir, Limits{}, nil).JobLogs(t.Context(), run)
				if err != nil || len(logs) != want {
					t.Errorf("%d logs on the page of %+v: %v", len(logs), run, err)
				}
			}
			other := history.Run{Job: "7", User: "eve", Start: testDay, End: testDay.Add(hour)}
			logs, err := NewReader(dir, Limits{}, nil).JobLogs(t.Context(), other)
			if err != nil || len(logs) > 0 && c.trusted == "" && c.file != 1002 {
				t.Errorf("another's run of that number shows %d logs: %v", len(logs), err)
			}
		})
	}
}

// TestAccountsAreRoots: what a user writes in a batch system's words is not its accounts.
func TestAccountsAreRoots(t *testing.T) {
	from := t.TempDir()
	path := filepath.Join(from, "accounts")
	if err := os.WriteFile(path, []byte("accounts"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1002, -1); err != nil {
		t.Skip("skipped: files cannot be given to others: ", err)
	}
	read := func(context.Context, Input) (*iolog.Log, error) {
		return &iolog.Log{Slurm: []iolog.Slurm{{JobID: "7", User: "wei", Start: testDay}}}, nil
	}
	im := Importer{Dir: filepath.Join(t.TempDir(), "archive"), Read: read}
	r, err := im.Import(t.Context(), from)
	if err != nil || r.Imported != 0 || len(r.Bad) != 1 || !strings.Contains(r.Bad[0].Problem, "uid 1002") {
		t.Errorf("%+v %v", r, err)
	}
	im = Importer{Dir: filepath.Join(t.TempDir(), "archive"), Read: read, TrustedBy: "root"}
	if r, err := im.Import(t.Context(), from); err != nil || r.Imported != 1 {
		t.Errorf("vouched for: %+v %v", r, err)
	}
}

// TestACopyKeepsNobodyOut: a user copies somebody's log and the accounts to where they are found first. The true ones
// count all the same, and neither is read again.
func TestACopyKeepsNobodyOut(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	im := Importer{Dir: dir, Read: func(_ context.Context, in Input) (*iolog.Log, error) {
		if strings.HasSuffix(in.Path, "accounts") {
			return &iolog.Log{Slurm: []iolog.Slurm{{JobID: "7", SlurmID: "7", User: "wei", Start: testDay}}}, nil
		}
		return &iolog.Log{Jobs: []iolog.Job{{Log: in.ID, JobID: "7", UID: 1001, Start: testDay}}}, nil
	}}
	for _, owners := range []map[string]int{{"copy-of-log": 1002, "copy-of-accounts": 1002},
		{"log": 1001, "accounts": 0},
		{"moved-log": 1001, "again-accounts": 0, "again-copy-of-log": 1002}} {
		for name, uid := range owners {
			path := filepath.Join(from, name)
			if err := os.WriteFile(path, []byte(name[strings.LastIndexByte(name, '-')+1:]), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(path, uid, -1); err != nil {
				t.Skip("skipped: files cannot be given to others: ", err)
			}
		}
		if _, err := im.Import(t.Context(), from); err != nil {
			t.Fatal(err)
		}
	}
	got := one(t, dir, "SELECT (SELECT count(*) FROM job), (SELECT count(*) FROM job WHERE owner = 'file'), "+
		"(SELECT count(DISTINCT log) FROM job), (SELECT count(*) FROM slurm), (SELECT count(*) FROM read)")
	if want := []any{int64(2), int64(1), int64(2), int64(1), int64(4)}; !slices.Equal(got, want) {
		t.Errorf("jobs, those that count, their logs, accounts, files: %v, want %v", got, want)
	}
}

// TestACopyAtTheSameTimeKeepsNobodyOut: while a user's copy is being read the true log comes.
func TestACopyAtTheSameTimeKeepsNobodyOut(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	for name, uid := range map[string]int{"a-copy": 1002, "log": 1001} {
		path := filepath.Join(from, name)
		if err := os.WriteFile(path, []byte("log"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, -1); err != nil {
			t.Skip("skipped: files cannot be given to others: ", err)
		}
	}
	both := make(chan struct{}, 2)
	im := Importer{Dir: dir, Workers: 2, Read: func(ctx context.Context, in Input) (*iolog.Log, error) {
		both <- struct{}{}
		for len(both) < 2 && ctx.Err() == nil { // each is read while the other is
			runtime.Gosched()
		}
		return &iolog.Log{Jobs: []iolog.Job{{Log: in.ID, JobID: "7", UID: 1001, Start: testDay}},
			JobFiles: []iolog.JobFile{{Log: in.ID, File: 1}}}, ctx.Err()
	}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if r, err := im.Import(ctx, from); err != nil || r.Imported != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	got := one(t, dir, "SELECT (SELECT count(DISTINCT log) FROM job), "+
		"(SELECT count(*) FROM job WHERE owner = 'file'), "+
		"(SELECT count(*) FROM jobfile JOIN job USING (log))")
	if want := []any{int64(2), int64(1), int64(2)}; !slices.Equal(got, want) {
		t.Errorf("logs, those that count, their files: %v, want %v", got, want)
	}
}

// TestALogThatWasCutOffIsNotBad: what an import was reading when it was ended is read by the next one.
func TestALogThatWasCutOffIsNotBad(t *testing.T) {
	const logs = 8
	for range logs {
		from, dir := t.TempDir(), filepath.Join(t.TempDir(), "archive")
		for i := range logs {
			log := fmt.Appendf(nil, `{"Job":"%d"}`, i)
			if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), log, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		im := Importer{Dir: dir, Workers: logs, Read: func(ctx context.Context, _ Input) (*iolog.Log, error) {
			stop()
			return nil, ctx.Err()
		}}
		if r, err := im.Import(ctx, from); !errors.Is(err, context.Canceled) || len(r.Bad) > 0 {
			t.Errorf("%+v %v", r, err)
		}
		im = Importer{Dir: dir, Read: readRecipe}
		if r, err := im.Import(t.Context(), from); err != nil || r.Imported != logs {
			t.Fatalf("the next one: %+v %v", r, err)
		}
	}
}

// TestFilesThatAreNoLogs: what would be read for ever is refused by name, and an import ends with its context.
func TestFilesThatAreNoLogs(t *testing.T) {
	from := t.TempDir()
	for name, size := range map[string]int64{"sparse": 1 << 40, "huge": mostBytes + 1, "half": 4 * mostHoles} {
		f, err := os.Create(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("a log's first words"); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Skip("skipped: this file system has no such files: ", err)
		}
		f.Close()
	}
	im := Importer{Dir: filepath.Join(t.TempDir(), "archive"), Read: readRecipe}
	r, err := im.Import(t.Context(), from)
	if err != nil || len(r.Bad) != 3 || r.Imported != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	for _, b := range r.Bad {
		if !strings.Contains(b.Problem, "holes") && !strings.Contains(b.Problem, "at most") {
			t.Errorf("%+v", b)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f := found{path: filepath.Join(from, "sparse")}
	if err := os.Truncate(f.path, 1<<10); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := open(ctx, f, &iolog.Read{}); err == nil {
		t.Error("a file is read though the import has ended")
	}
}
