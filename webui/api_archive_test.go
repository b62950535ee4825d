package webui

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/journal"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
)

// fakeArchive has one log, of job 9, and answers every question with what was asked.
type fakeArchive struct{}

var logStart = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)

func (fakeArchive) Ask(_ context.Context, q iolog.Question, limit int) (iolog.Result, error) {
	if q.Analysis.Name != "" {
		if _, err := q.Analysis.Bind(q.Params); err != nil {
			return iolog.Result{}, err
		}
	}
	if q.Analysis.Name == "low-bandwidth" {
		return slowJobs(), nil
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

func (fakeArchive) JobLogs(_ context.Context, job topology.JobID) ([]iolog.Log, error) {
	if job != "9" {
		return nil, nil
	}
	none := math.NaN()
	one := int64(1)
	return []iolog.Log{{
		Jobs: []iolog.Job{{Log: math.MinInt64, JobID: "9", App: "roms", Procs: 64, Start: logStart,
			End: logStart.Add(100 * time.Second)}},
		JobFiles: []iolog.JobFile{
			{File: 1, Procs: 64, BytesWritten: 14e9, WriteStart: 0, WriteEnd: 10, ReadStart: none, ReadEnd: none,
				PosixWrites: 10, SmallWrites: 5, StripeCount: &one, OSTs: []int32{20}},
			{File: 2, Procs: 1, WriteStart: 6, WriteEnd: 12, ReadStart: none, ReadEnd: none},
		},
		Files: []iolog.File{{ID: 1, Path: "/scratch/out", Mount: "/scratch"}},
	}}, nil
}

// Around has one target that is at its peak for the first five seconds.
func (fakeArchive) Around(_ context.Context, j *iolog.Job) (iolog.Around, error) {
	return iolog.Around{
		OSTs: []iolog.OST{{Time: j.Start, Target: "snx-OST0014", FS: "snx", Seconds: 5, BytesRead: 45e9,
			BytesWritten: math.NaN()}},
		PeakBytesPerSec: map[string]float64{"snx": 10e9},
		Neighbours:      []iolog.Neighbour{{JobID: "12", App: "vpic", Mount: "/scratch", OST: 20, Bytes: 31e9}},
	}, nil
}

func TestRootCause(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.run(3)
	eventually(t, "routes are known", func() bool { return len(s.board.Routes(time.Now())) == 32 })
	v := get[api.JobCause](s, "/api/v1/jobs/9/rootcause")
	if len(v.Logs) != 1 || v.Logs[0].Read != nil || v.Logs[0].Log != "-9223372036854775808" {
		t.Fatalf("%+v", v)
	}
	w := v.Logs[0].Write
	if w.IOTime != 12 || w.CriticalFiles != 2 || w.Critical[0].Name != "/scratch/out" ||
		!strings.HasPrefix(w.Critical[1].Name, "file 0") || w.Factors.ProcsPerOST != 64 {
		t.Errorf("%+v", w)
	}
	if text := strings.Join(w.Verdict, "\n"); !strings.Contains(text,
		"snx-OST0014 was saturated for 5 s of the I/O time (42 %)") ||
		!strings.Contains(text, "job 12 (vpic) moved 31 GB there") {
		t.Errorf("%s", text)
	}
	if res, _ := s.ask("GET", "/api/v1/jobs/10/rootcause", viewerSecret, nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a job without a log: %d", res.StatusCode)
	}
	// A forwarder that was excluded while the job ran is named, for as long as the job did I/O.
	s.post("/api/v1/dispatch", hookSecret, dispatch.Request{Job: "9", User: "wei", App: "ROMS",
		Nodes: s.machine.topo.Default.Clients("fwd003")})
	s.server.nouns.archives.records = func(w journal.Wanted) iter.Seq2[*journal.Record, error] {
		records := []journal.Record{
			{Kind: journal.StepExclude, At: logStart.Add(5 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
			{Kind: journal.StepExclude, At: logStart.Add(6 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
			{Kind: journal.StepExclude, At: logStart, Exclusion: &remap.Exclusion{Forwarder: "fwd004"}},
			{Kind: journal.StepReturn, At: logStart.Add(11 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
		}
		return func(yield func(*journal.Record, error) bool) {
			for _, r := range slices.Backward(records) {
				if string(r.Exclusion.Forwarder) == w.Subject && !yield(&r, nil) {
					return
				}
			}
		}
	}
	v = get[api.JobCause](s, "/api/v1/jobs/9/rootcause")
	text := strings.Join(v.Logs[0].Write.Verdict, "\n")
	if !strings.Contains(text, "fwd003 was excluded from allocation for 6 s of the I/O time") ||
		strings.Contains(text, "fwd004") {
		t.Errorf("forwarders %v: %s", v.Forwarders, text)
	}
}

func TestArchiveQuestions(t *testing.T) {
	s := newSite(t, siteOptions{})
	if all := get[[]iolog.Analysis](s, "/api/v1/archive"); len(all) != len(iolog.Analyses) || all[0].SQL == "" {
		t.Errorf("%d analyses", len(all))
	}
	f := func(path, secret string, status int, want string) {
		t.Helper()
		res, b := s.ask("GET", path, secret, nil)
		if res.StatusCode != status || !strings.Contains(string(b), want) {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
	f("/api/v1/archive/top-apps?op=read", viewerSecret, 200, `["top-apps","map[op:read]",10000,9223372036854775807]`)
	f("/api/v1/archive/top-apps?op=sideways", viewerSecret, 400, "op")
	f("/api/v1/archive/nothing", viewerSecret, 404, "lists them")
	f("/api/v1/archive/sql?q=SELECT+1&limit=5", operatorSecret, 200, `["SELECT 1","map[]",5,`)
	f("/api/v1/archive/sql?q=SELECT+1&limit=0", operatorSecret, 400, "limit")
	f("/api/v1/archive/sql?q=DROP+VIEW+job", operatorSecret, 400, "only SELECT")
	f("/api/v1/archive/sql?q=SELECT+1", viewerSecret, 403, "operator")
	s = newSite(t, siteOptions{noArchive: true})
	f("/api/v1/archive/top-apps", viewerSecret, 503, api.ErrUnreachable.Error())
}
