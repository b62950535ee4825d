package archive

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fairway/tsdb/history/iolog"
)

// bigEnv names a directory for the archive of the bar: 100,000 jobs with 10,000,000 file records.
const bigEnv = "FAIRWAY_ARCHIVE_BIG"

func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func size(t testing.TB, dir string) (files, bytes int64) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				files, bytes = files+1, bytes+info.Size()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, bytes
}

// TestBigArchive imports 100,000 synthetic jobs of 100 files each and asks every named analysis. It is
// not part of the normal run:
//
//	FAIRWAY_ARCHIVE_BIG=$(mktemp -d) go test -run BigArchive -v -timeout 30m ./tsdb/history/archive
func TestBigArchive(t *testing.T) {
	root := os.Getenv(bigEnv)
	if root == "" {
		t.Skipf("set %s to a directory with 3 GB to measure 100,000 jobs with 10,000,000 file records", bigEnv)
	}
	from, dir := filepath.Join(root, "logs"), filepath.Join(root, "archive")
	if _, err := os.Stat(dir); err != nil {
		for i := range 100_000 {
			sub := filepath.Join(from, fmt.Sprint(i/1000))
			if i%1000 == 0 {
				if err := os.MkdirAll(sub, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, sub, fmt.Sprint(i), fmt.Sprintf(`{"Job":"%d","Files":100,"Seed":%d}`, i, i))
		}
		begun, used := time.Now(), cpu(t)
		rep := run1(t, Importer{Dir: dir}, from)
		t.Logf("import: %d jobs, %d rows in %.1f s, CPU %.1f s", rep.Imported, rep.Rows, time.Since(begun).Seconds(),
			(cpu(t) - used).Seconds())
	}
	begun, used := time.Now(), cpu(t)
	rep := run1(t, Importer{Dir: dir}, from)
	t.Logf("import again: %d known in %.1f s, CPU %.1f s", rep.Known, time.Since(begun).Seconds(),
		(cpu(t) - used).Seconds())
	files, bytes := size(t, dir)
	t.Logf("archive: %d parts, %d MB, rows %v", files, bytes/1e6,
		one(t, dir, "SELECT (SELECT count(*) FROM job), (SELECT count(*) FROM jobfile)"))
	for _, a := range iolog.Analyses {
		q := iolog.Question{Analysis: a}
		if a.Name == "neighbours" { // of a job between others, or there is nothing to do
			q.Params = map[string]string{"job": fmt.Sprint(one(t, dir,
				"SELECT job_id FROM job ORDER BY start_time LIMIT 1 OFFSET 50000")[0])}
		}
		begun, used := time.Now(), cpu(t)
		res, err := Ask(t.Context(), dir, q, 0)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%-14s %4d rows in %4d ms, CPU %4d ms", a.Name, len(res.Rows), time.Since(begun).Milliseconds(),
			(cpu(t) - used).Milliseconds())
	}
}
