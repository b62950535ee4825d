//go:build cgo

package report

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
)

// archivedWeek is a site's archive with what a report is made from: jobs of the batch system with the logs of their
// programs, which the history learns from there, and the forwarders' seconds of the days.
type archivedWeek struct {
	dir string
	Sources
}

func archiveWeek(t *testing.T) archivedWeek {
	t.Helper()
	w := archivedWeek{dir: filepath.Join(t.TempDir(), "archive"), Sources: Sources{Records: records(),
		Forwarders: []topology.NodeID{"fwd0", "fwd1", "fwd2"}}}
	rnd := rand.New(rand.NewPCG(3, 1))
	w.importJobs(t, rnd)
	jobs, _, err := history.Open(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { jobs.Close() })
	sum, err := jobs.Import(t.Context(), archive.Runs(t.Context(), w.dir, func([]topology.NodeID) int { return 2 }))
	if err != nil || sum.Runs < 100 || sum.Refused > 0 {
		t.Fatalf("the history learned %+v, %v", sum, err)
	}
	w.Runs = jobs.Each
	store, err := engine.Open(filepath.Join(t.TempDir(), "store"), engine.Options{SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w.Store = store
	w.storeSeconds(t, rnd)
	now := monday.AddDate(0, 0, 8)
	if days, err := archive.KeepForwarders(t.Context(), w.dir, store, now, 9); err != nil || days < 7 {
		t.Fatalf("%d days of forwarders in the archive, %v", days, err)
	}
	return w
}

// importJobs reads the accounts of 300 jobs, over a day more than the week at both ends, with one or two logs each.
func (w *archivedWeek) importJobs(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	none := math.NaN()
	unknown := iolog.Factors{IOSeconds: none, BytesPerSec: none, LongestShare: none, Small: none, Nonconsec: none,
		Collective: none, OSTs: none, ProcsPerOST: none}
	all, log := &iolog.Log{Kind: "drawn"}, int64(0)
	for i := range 300 {
		id, nodes := fmt.Sprint(1000+i), int64(1+rnd.IntN(64))
		end := monday.Add(time.Duration(rnd.IntN(9*24*3600)-24*3600) * time.Second)
		start := end.Add(-time.Duration(600+rnd.IntN(7200)) * time.Second)
		all.Slurm = append(all.Slurm, iolog.Slurm{JobID: id, SlurmID: id, Name: "run.sh",
			App: fmt.Sprint("app", rnd.IntN(12)), User: fmt.Sprint("u", rnd.IntN(30)),
			Account: []string{"", "sea", "air"}[rnd.IntN(3)], Start: start, End: end, NodeCount: &nodes})
		for range 1 + rnd.IntN(2) {
			log++
			written := unknown
			written.IOSeconds, written.BytesPerSec = 6000*rnd.Float64(), 1e9
			all.Jobs = append(all.Jobs, iolog.Job{Log: log, JobID: id, Procs: 8, Start: start, End: end,
				BytesRead: rnd.Int64N(1e12), BytesWritten: rnd.Int64N(1e12), MetaOps: rnd.Int64N(1e5),
				MetaSeconds: none, Write: written, Read: unknown})
			all.JobFiles = append(all.JobFiles, iolog.JobFile{Log: log, File: log, Procs: 8, BytesWritten: 1})
		}
	}
	file := filepath.Join(t.TempDir(), "logs")
	if err := os.WriteFile(file, []byte("stands for the logs"), 0o600); err != nil {
		t.Fatal(err)
	}
	im := archive.Importer{Dir: w.dir, TrustedBy: "root", Read: func(context.Context, archive.Input) (*iolog.Log,
		error) {
		return all, nil
	}}
	if r, err := im.Import(t.Context(), file); err != nil || r.Imported != 1 {
		t.Fatalf("%+v %v", r, err)
	}
}

// storeSeconds stores two hours of the forwarders on each day, from before midnight to after it.
func (w *archivedWeek) storeSeconds(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	for day := range 8 {
		var frames []collector.Frame
		for sec := range 7200 {
			at := monday.AddDate(0, 0, day).Add(time.Duration(sec-3600) * time.Second)
			for _, f := range w.Forwarders {
				frames = append(frames, collector.Frame{Node: f, Role: topology.Forwarder, TimeMillis: at.UnixMilli(),
					Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(rnd.IntN(1e9))},
						{Metric: collector.WriteBytes, Value: float64(rnd.IntN(3) * 1e6)},
						{Metric: collector.MetaOps, Value: float64(rnd.IntN(100))}}})
			}
		}
		if err := w.Store.Append(t.Context(), frames); err != nil {
			t.Fatal(err)
		}
	}
}

// ask answers SQL over the archive's Parquet files.
func (w *archivedWeek) ask(t *testing.T, query string) [][]any {
	t.Helper()
	to := monday.AddDate(0, 0, 7)
	res, err := archive.Query(t.Context(), w.dir, query, map[string]any{"from": monday, "to": to}, 0)
	if err != nil || len(res.Rows) == 0 {
		t.Fatalf("%s: %v, %d rows", query, err, len(res.Rows))
	}
	return res.Rows
}

// TestReportAgreesWithSQL: SQL over the archive's files has the report's sums for every project, user and application,
// and for every step of the forwarders', up to the order of addition.
func TestReportAgreesWithSQL(t *testing.T) {
	w := archiveWeek(t)
	to := monday.AddDate(0, 0, 7)
	r, err := Make(t.Context(), w.Sources, monday, to, to)
	if err != nil || len(r.Missing) > 0 {
		t.Fatalf("%v, missing %q", err, r.Missing)
	}
	for column, uses := range map[string][]Use{"s.account": r.Projects, "s.user": r.Users, "s.app": r.Apps,
		"'all'": {r.Total}} {
		t.Run(column, func(t *testing.T) { w.compareUse(t, column, uses) })
	}
	steps := w.ask(t, fmt.Sprintf(`SELECT time_bucket(INTERVAL %d SECOND, time), sum(read_bytes), sum(write_bytes),
		sum(meta_ops) FROM forwarder WHERE time >= $from AND time < $to GROUP BY 1`, r.Layer.StepSeconds))
	want := map[time.Time]Step{}
	for _, row := range steps {
		at := row[0].(time.Time).UTC()
		want[at] = Step{At: at, ReadBytes: row[1].(float64), WriteBytes: row[2].(float64), MetaOps: row[3].(float64)}
	}
	sums := Step{}
	for _, got := range r.Layer.Steps {
		s := want[got.At.UTC()]
		delete(want, got.At.UTC())
		if !near(got.ReadBytes, s.ReadBytes) || !near(got.WriteBytes, s.WriteBytes) || !near(got.MetaOps, s.MetaOps) {
			t.Errorf("the step of %s: the report has %+v, the archive %+v", got.At, got, s)
		}
		sums.ReadBytes, sums.WriteBytes, sums.MetaOps = sums.ReadBytes+s.ReadBytes, sums.WriteBytes+s.WriteBytes,
			sums.MetaOps+s.MetaOps
	}
	if len(want) > 0 || len(steps) < 2*7 {
		t.Errorf("the archive has %d steps, of which the report lacks %v", len(steps), want)
	}
	if l := &r.Layer; !near(l.ReadBytes, sums.ReadBytes) || !near(l.WriteBytes, sums.WriteBytes) ||
		!near(l.MetaOps, sums.MetaOps) || l.ReadBytes == 0 {
		t.Errorf("in all the report has %g, %g and %g, the archive %+v", l.ReadBytes, l.WriteBytes, l.MetaOps, sums)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// compareUse wants the sums of the uses to be those of the archive, a row for each name and no other. A run is not
// longer in I/O than it is in all.
func (w *archivedWeek) compareUse(t *testing.T, column string, uses []Use) {
	t.Helper()
	rows := w.ask(t, `SELECT `+column+`, count(*), sum(epoch(s.end_time - s.start_time) / 3600 * s.node_count),
		sum(j.read)::DOUBLE, sum(j.write)::DOUBLE, sum(j.meta)::DOUBLE,
		sum(least(j.io, epoch(s.end_time - s.start_time))), sum(least(j.longest, epoch(s.end_time - s.start_time)))
		FROM slurm s JOIN (SELECT job_id, sum(bytes_read) AS read, sum(bytes_written) AS write, sum(meta_ops) AS meta,
			sum(write_io_seconds) AS io, max(write_io_seconds) AS longest FROM job GROUP BY job_id) j USING (job_id)
		WHERE s.end_time >= $from AND s.end_time < $to GROUP BY 1`)
	want := map[string][]any{}
	for _, row := range rows {
		name, _ := row[0].(string) // an account that is not known is NULL
		want[name] = row
	}
	if len(want) != len(uses) {
		t.Errorf("the report has %d rows, the archive %d", len(uses), len(want))
	}
	for _, got := range uses {
		row := want[got.Name]
		if row == nil || row[1] != int64(got.Runs) || got.Measured != got.Runs {
			t.Errorf("the report has %+v, the archive %v", got, row)
			continue
		}
		for i, v := range []float64{got.NodeHours, got.ReadBytes, got.WriteBytes, got.MetaOps} {
			if !near(v, row[2+i].(float64)) {
				t.Errorf("the report has %+v, the archive %v", got, row)
			}
		}
		// Programs beside each other do their I/O in the same time: between the longest of them and their sum.
		if sum, longest := row[6].(float64), row[7].(float64); got.IOSeconds > sum*(1+1e-9) ||
			got.IOSeconds < longest*(1-1e-9) {
			t.Errorf("the report has %+v, the archive %v", got, row)
		}
	}
}
