package archive

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// What another reader sees of a part of jobfile.
type foreignJobFile struct {
	Log          int64    `parquet:"log"`
	JobID        string   `parquet:"job_id"`
	BytesWritten int64    `parquet:"bytes_written"`
	UsesPosix    bool     `parquet:"uses_posix"`
	ReadStart    *float64 `parquet:"read_start,optional"`
	WriteStart   *float64 `parquet:"write_start,optional"`
	StripeCount  *int64   `parquet:"stripe_count,optional"`
	OSTs         []int32  `parquet:"osts,list"`
}

type foreignJob struct {
	Log       int64   `parquet:"log"`
	App       string  `parquet:"app"`
	Start     int64   `parquet:"start_time"` // microseconds
	SizeReads []int64 `parquet:"size_reads,list"`
}

// The parts are plain Parquet: parquet-go reads the values that DuckDB wrote.
func TestAnotherReaderReadsTheParts(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	logs(t, from, 20)
	run1(t, Importer{Dir: dir}, from)
	want := map[int64][]any{}
	err := Each(t.Context(), dir,
		"SELECT log, sum(bytes_written), count(osts), sum(osts[1]), min(job_id) FROM jobfile GROUP BY log", nil,
		func(row []any) error {
			want[row[0].(int64)] = []any{row[1], row[2], row[3], row[4]}
			return nil
		})
	if err != nil || len(want) != 20 {
		t.Fatal(len(want), err)
	}
	type sum struct {
		bytes, files, osts int64
		job                string
	}
	got := map[int64]sum{}
	parts, _ := filepath.Glob(filepath.Join(dir, "jobfile", "day=*", "*.parquet"))
	for _, p := range parts {
		rows, err := parquet.ReadFile[foreignJobFile](p)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.ReadStart != nil || r.WriteStart == nil || *r.StripeCount != 1 || !r.UsesPosix || len(r.OSTs) != 1 {
				t.Fatalf("%s: %+v", p, r)
			}
			s := got[r.Log]
			s.bytes, s.files, s.osts, s.job = s.bytes+r.BytesWritten, s.files+1, s.osts+int64(r.OSTs[0]), r.JobID
			got[r.Log] = s
		}
	}
	for log, w := range want {
		g := got[log]
		if g.bytes != w[0] || g.files != w[1] || g.osts != w[2] || g.job != w[3] {
			t.Errorf("log %d: parquet-go reads %+v, DuckDB %v", log, g, w)
		}
	}
	parts, _ = filepath.Glob(filepath.Join(dir, "job", "day=*", "*.parquet"))
	jobs := 0
	for _, p := range parts {
		rows, err := parquet.ReadFile[foreignJob](p)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			jobs++
			day := "day=" + time.UnixMicro(r.Start).UTC().Format(time.DateOnly)
			if filepath.Base(filepath.Dir(p)) != day || r.App == "" || len(r.SizeReads) != 10 {
				t.Errorf("%s: %+v lies in another day", p, r)
			}
		}
	}
	if jobs != 20 {
		t.Errorf("%d jobs in %d parts, want 20", jobs, len(parts))
	}
}
