package archive

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/tsdb/history/iolog"
)

// small is an archive whose every answer can be counted by hand.
func small(t *testing.T) string {
	t.Helper()
	mega, four, one, auto := int64(1<<20), int64(4), int64(1), int64(-1)
	slow := iolog.Factors{IOSeconds: 100, BytesPerSec: 4e8, Small: 0.9, Nonconsec: 0.1, Collective: math.NaN(), OSTs: 1,
		ProcsPerOST: 2000, CriticalFiles: 1, LongestShare: 1}
	none := iolog.Factors{IOSeconds: math.NaN(), BytesPerSec: math.NaN(), Small: math.NaN(), Nonconsec: math.NaN(),
		Collective: math.NaN(), OSTs: math.NaN(), ProcsPerOST: math.NaN(), LongestShare: math.NaN()}
	return archiveOf(t,
		iolog.Log{
			Jobs: []iolog.Job{{Log: 1, JobID: "11", App: "wrf", Procs: 2000, Start: testDay,
				End: testDay.Add(time.Hour), Files: 1, SharedFiles: 1, FullFiles: 1, BytesWritten: 40e9,
				UsesPosix: true, UsesMPIIO: true, UsesCollective: true,
				PosixWrites: 100, SeqWrites: 100, ConsecWrites: 50, SizeWrites: []int64{0, 0, 0, 0, 90, 10, 0, 0, 0, 0},
				SizeReads: make([]int64, 10), Write: slow, Read: none}},
			JobFiles: []iolog.JobFile{{Log: 1, File: 7, OSTs: []int32{5, 6}, BytesWritten: 100, StripeSize: &mega,
				StripeCount: &four, StripeOffset: &auto}},
			Slurm: []iolog.Slurm{{JobID: "11", NodeCount: &four, Start: testDay}},
		},
		iolog.Log{
			Jobs: []iolog.Job{{Log: 2, JobID: "12", App: "wrf", Procs: 4, Start: testDay,
				End: testDay.Add(2 * time.Hour), Files: 4, BytesRead: 5e9, BytesWritten: 5e9, UsesPosix: true,
				PosixReads: 100, SeqReads: 20, ConsecReads: 10, SizeReads: []int64{100, 0, 0, 0, 0, 0, 0, 0, 0, 0},
				SizeWrites: make([]int64, 10), Write: none, Read: none}},
			JobFiles: []iolog.JobFile{{Log: 2, File: 8, StripeSize: &mega, StripeCount: &one, StripeOffset: &auto},
				{Log: 2, File: 9, OSTs: []int32{6, 8}, BytesWritten: 40, BytesRead: 6}},
		},
		iolog.Log{Jobs: []iolog.Job{{Log: 3, JobID: "13", App: "cat", Procs: 1, Start: testDay.AddDate(0, 0, 1),
			Files: 2, BytesRead: 30e9, UsesStdio: true, Write: none, Read: none}}},
		iolog.Log{Jobs: []iolog.Job{{Log: 4, JobID: "14", App: "hmmer", Procs: 8, Start: testDay, Files: 3,
			SharedFiles: 2, UsesPosix: true, Write: none, Read: none}}, Problem: "cut at byte 9"},
	)
}

// archiveOf is an archive of these logs in one batch.
func archiveOf(t *testing.T, logs ...iolog.Log) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	b, err := newBatch()
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for i, l := range logs {
		l.Jobs = slices.Clone(l.Jobs)
		for k := range l.Jobs {
			if l.Jobs[k].Owner == "" {
				l.Jobs[k].Owner = iolog.OwnerTrusted
			}
		}
		if err := b.add(&l, iolog.Read{Hash: fmt.Sprintf("%064x", i), Path: "p", Problem: l.Problem,
			Imported: testDay}); err != nil {
			t.Fatal(err)
		}
	}
	into, err := s.begin("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.writeTo(into, "b"); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(into); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnalyses(t *testing.T) {
	dir := small(t)
	f := func(name string, params map[string]string, want string) {
		t.Helper()
		a, ok := iolog.Named(name)
		if !ok {
			t.Fatalf("no analysis %s", name)
		}
		res, err := Ask(t.Context(), dir, iolog.Question{Analysis: a, Params: params}, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if got := fmt.Sprint(res.Rows); got != want {
			t.Errorf("%s %v:\n got %s\nwant %s", name, params, got, want)
		}
	}
	type p = map[string]string
	f("top-apps", nil, "[[wrf 2 50000000000 0.625] [cat 1 30000000000 0.375] [hmmer 1 0 0]]")
	f("top-apps", p{"op": "read", "n": "1"}, "[[cat 1 30000000000 0.8571428571428571]]")
	f("top-apps", p{"from": "2026-11-21"}, "[[cat 1 30000000000 1]]")
	f("top-apps", p{"to": "2026-11-20T22:00:00Z"}, "[]")
	f("top-apps", p{"to": "2026-11-20T22:00:01Z", "app": "wrf"}, "[[wrf 2 50000000000 1]]")
	f("read-ratio", p{"bins": "4"}, "[[0 1 0.3333333333333333] [0.5 1 0.3333333333333333] [1 1 0.3333333333333333]]")
	f("sharing", nil,
		"[[N-1 1 0.3333333333333333 2000 2000 2000] [N-M 1 0.3333333333333333 2.6666666666666665 2.6666666666666665 "+
			"2.6666666666666665] [N-N 1 0.3333333333333333 1 1 1]]")
	f("middleware", nil, "[[One 1 0 0 0 1 0] [Small 2 2 0 0 0 0] [Medium 1 0 0 1 0 1]]")
	f("stripes", nil, "[[true 1 0.5 4] [false 1 0.5 1]]")
	f("stripes", p{"count": "4"}, "[[true 1 0.5 1] [false 1 0.5 4]]")
	f("stripes", p{"app": "cat"}, "[]")
	f("request-sizes", p{"op": "write"},
		"[[0-100 B 0 0] [100 B-1 KiB 0 0] [1-10 KiB 0 0] [10-100 KiB 0 0] [100 KiB-1 MiB 90 0.9] [1-4 MiB 10 0.1] "+
			"[4-10 MiB 0 0] [10-100 MiB 0 0] [100 MiB-1 GiB 0 0] [1 GiB+ 0 0]]")
	f("low-bandwidth", nil,
		"[[11 wrf 2000 4 2026-11-20 22:00:00 +0000 UTC 40000000000 100 4e+08 0.9 0.1 <nil> 1 2000 1 1]]")
	f("low-bandwidth", p{"op": "read"}, "[]")
	f("low-bandwidth", p{"min_procs": "2000"}, "[]")
	f("neighbours", p{"job": "11"}, "[[12 wrf 1 3 20 2026-11-20 22:00:00 +0000 UTC 2026-11-21 00:00:00 +0000 UTC]]")
	f("neighbours", p{"job": "13"}, "[]")
	f("bad-logs", nil, "[[2026-11-20 22:00:00 +0000 UTC p false cut at byte 9]]")
	for _, c := range []struct {
		name      string
		low, high float64
	}{{"sequential", 0.2, 1}, {"consecutive", 0.1, 0.5}} {
		a, _ := iolog.Named(c.name)
		res, err := Ask(t.Context(), dir, iolog.Question{Analysis: a, Params: nil}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(res.Rows); n != 21 || res.Rows[0][1] != c.low || res.Rows[20][1] != c.high ||
			res.Rows[20][0] != 100.0 {
			t.Errorf("%s: %v", c.name, res.Rows)
		}
	}
}

func TestParametersAreChecked(t *testing.T) {
	for _, given := range []map[string]string{{"no": "1"}, {"n": "ten"}, {"op": "both ways"}, {"from": "yesterday"}} {
		a, _ := iolog.Named("top-apps")
		if _, err := Ask(t.Context(), t.TempDir(), iolog.Question{Analysis: a, Params: given}, 0); !errors.Is(err,
			iolog.ErrQuery) {
			t.Errorf("%v: error %v", given, err)
		}
	}
}

func TestEveryAnalysisAnswersAnEmptyArchive(t *testing.T) {
	for _, a := range iolog.Analyses {
		if _, err := Ask(t.Context(), t.TempDir(), iolog.Question{Analysis: a, Params: nil}, 0); err != nil {
			t.Error(err)
		}
		if a.Does == "" {
			t.Errorf("%s does not say what it does", a.Name)
		}
	}
}
