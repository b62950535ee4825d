package simsite

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// archive has one log, of job 9, and answers every question with what was asked.
type archive struct{ start time.Time }

func (archive) Ask(_ context.Context, q iolog.Question, limit int) (iolog.Result, error) {
	if q.Analysis.Name != "" {
		if _, err := q.Analysis.Bind(q.Params); err != nil {
			return iolog.Result{}, err
		}
	}
	if q.Analysis.Name == "low-bandwidth" {
		return slowJobs(), nil
	}
	if strings.HasPrefix(q.SQL, "SLOW") {
		return iolog.Result{}, fmt.Errorf("archive: %w", context.DeadlineExceeded)
	}
	if strings.HasPrefix(q.SQL, "DROP") {
		return iolog.Result{}, fmt.Errorf("%w: only SELECT is answered", iolog.ErrQuery)
	}
	return iolog.Result{Columns: []string{"asked", "params", "limit", "log"},
		Rows: [][]any{{q.Analysis.Name + q.SQL, fmt.Sprint(q.Params), limit, int64(math.MaxInt64)}}}, nil
}

// slowJobs are 40 jobs of 8 applications; every fifth does not know its stripes.
func slowJobs() iolog.Result {
	res := iolog.Result{Columns: []string{"job_id", "app", "procs", "node_count", "bytes", "bytes_per_sec", "small",
		"nonconsec", "collective", "osts", "procs_per_ost", "longest_share"}}
	for i := range 40 {
		var osts, contention any = 1 + i%9, 4000 / (1 + i%9)
		if i%5 == 0 {
			osts, contention = nil, nil
		}
		res.Rows = append(res.Rows, []any{"9", fmt.Sprintf("app%d", i%8), 4000, nil, 1e11, 1e6 * float64(1+i),
			float64(i%7) / 6, float64(i%4) / 3, float64(i % 2), osts, contention, float64(i) / 40})
	}
	return res
}

func (a archive) JobLogs(_ context.Context, run history.Run) ([]iolog.Log, error) {
	if run.Job != "9" {
		return nil, nil
	}
	none := math.NaN()
	one := int64(1)
	return []iolog.Log{{
		Jobs: []iolog.Job{{Log: math.MinInt64, JobID: "9", App: "roms", Procs: 64, Start: a.start,
			End: a.start.Add(100 * time.Second)}},
		JobFiles: []iolog.JobFile{
			{File: 1, Procs: 64, BytesWritten: 14e9, WriteStart: 0, WriteEnd: 10, ReadStart: none, ReadEnd: none,
				Writes: 640, PosixWrites: 640, SmallWrites: 320, StripeCount: &one, OSTs: []int32{20}},
			{File: 2, Procs: 1, WriteStart: 6, WriteEnd: 12, ReadStart: none, ReadEnd: none},
		},
		Files: []iolog.File{{ID: 1, Path: "/scratch/out", Mount: "/scratch"}},
	}}, nil
}

// Around has one target that is at its peak for the first five seconds.
func (archive) Around(_ context.Context, j *iolog.Job) (iolog.Around, error) {
	return iolog.Around{
		OSTs: []iolog.OST{{Time: j.Start, Target: "snx-OST0014", FS: "snx", Seconds: 5, BytesRead: 45e9,
			BytesWritten: math.NaN()}},
		PeakBytesPerSec: map[string]float64{"snx": 10e9},
		Neighbours:      []iolog.Neighbour{{JobID: "12", App: "vpic", Mount: "/scratch", OST: 20, Bytes: 31e9}},
	}, nil
}
