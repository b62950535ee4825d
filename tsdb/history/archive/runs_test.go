package archive

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

func factors(seconds, bytesPerSec float64) iolog.Factors {
	n := math.NaN()
	return iolog.Factors{IOSeconds: seconds, BytesPerSec: bytesPerSec, LongestShare: n, Small: n, Nonconsec: n,
		Collective: n, OSTs: n, ProcsPerOST: n}
}

func two([]topology.NodeID) int { return 2 }

func collect(t *testing.T, dir string, forwarders func([]topology.NodeID) int) (runs []history.Run) {
	t.Helper()
	for r, err := range Runs(t.Context(), dir, forwarders) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	return runs
}

// TestRunsOfTheJoin: one batch job with two programs, one that was requeued, one whose log is cut, one
// without a log, and a log without a batch job.
func TestRunsOfTheJoin(t *testing.T) {
	four, hour := int64(4), time.Hour
	none := factors(math.NaN(), math.NaN())
	slurm := func(id, app string, start time.Time) iolog.Slurm {
		return iolog.Slurm{JobID: id, SlurmID: id, Name: "run.sh", App: app, User: "wei", Account: "phys",
			State: "COMPLETED", Start: start, End: start.Add(hour),
			NodeCount: &four, RunSeconds: 3600, Nodes: []string{"n1", "n2", "n3", "n4"}}
	}
	job := func(log int64, id string, start time.Time, procs, read, written int64) iolog.Job {
		return iolog.Job{Log: log, JobID: id, UID: 7, App: "wrf.exe", Procs: procs, Start: start,
			End: start.Add(hour / 2), Reads: 10, Writes: 90,
			BytesRead: read, BytesWritten: written, MetaOps: 50, MetaSeconds: 400,
			Write: factors(100, float64(written)/100), Read: none}
	}
	file := func(log, procs, written int64) iolog.JobFile {
		return iolog.JobFile{Log: log, File: log*1000 + procs, Procs: procs, BytesWritten: written}
	}
	own := func(log int64, n int, written int64) (files []iolog.JobFile) {
		for i := range n {
			files = append(files, iolog.JobFile{Log: log, File: log*100 + int64(i), Procs: 1, BytesWritten: written})
		}
		return files
	}
	cut := job(5, "14", testDay, 8, 0, 8e9)
	cut.Partial = true
	dir := archiveOf(t,
		// 12: a shared file of all processes and a small log file each; then a small program of one process.
		iolog.Log{Jobs: []iolog.Job{job(1, "12", testDay.Add(time.Minute), 8, 0, 80e9),
			job(2, "12", testDay.Add(2*hour/3), 1, 1e9, 0)},
			JobFiles: append(own(1, 8, 1e6), file(1, 8, 80e9), file(2, 1, 1e9)),
			Slurm:    []iolog.Slurm{slurm("12", "WRF", testDay)}},
		// 13 ran, was requeued, and ran again: a file for each of its processes, then half of them.
		iolog.Log{Jobs: []iolog.Job{job(3, "13", testDay, 8, 0, 8e9), job(4, "13", testDay.Add(2*hour), 8, 0, 4e9)},
			JobFiles: append(own(3, 8, 1e9), own(4, 4, 1e9)...), Slurm: []iolog.Slurm{slurm("13", "", testDay),
				slurm("13", "", testDay.Add(2*hour))}},
		iolog.Log{Jobs: []iolog.Job{cut}, JobFiles: own(5, 8, 1e9), Slurm: []iolog.Slurm{slurm("14", "", testDay)}},
		iolog.Log{Slurm: []iolog.Slurm{slurm("15", "", testDay)}},
		iolog.Log{Jobs: []iolog.Job{job(6, "16", testDay, 8, 0, 8e9)}, JobFiles: own(6, 8, 1e9)},
	)
	runs := collect(t, dir, two)
	if len(runs) != 3 {
		t.Fatalf("%d runs: %+v", len(runs), runs)
	}
	wrf, first, again := runs[0], runs[1], runs[2]
	p := wrf.Profile
	if wrf.Job != "12" || wrf.Key() != (history.Key{User: "wei", App: "WRF", Project: "phys", Nodes: 4}) ||
		wrf.Seconds() != 3600 || wrf.NodeList != nil {
		t.Errorf("%+v", wrf)
	}
	if p.Mode != topology.ModeN1 || p.ReadBytes != 1e9 || p.WriteBytes != 80e9 || p.IONodes != 4 || p.MetaOps != 100 ||
		p.IOSeconds != 200 ||
		p.PeakBytesPerSec != 8e8 || p.PeakNodeBytesPerSec != 2e8 || p.PeakOpsPerSec != 1 ||
		p.From != history.FromDarshan || *p.MetaQueue != 800.0/200/2 {
		t.Errorf("%+v, queue %g", p, *p.MetaQueue)
	}
	if first.App != "run.sh" || first.Profile.Mode != topology.ModeNN || first.Profile.WriteBytes != 8e9 ||
		first.Profile.IONodes != 4 || !first.Start.Equal(testDay) {
		t.Errorf("%+v %+v", first, first.Profile)
	}
	if again.Profile.Mode != topology.ModeNM || again.Profile.WriteBytes != 4e9 || again.Profile.IONodes != 2 ||
		!again.Start.Equal(testDay.Add(2*hour)) {
		t.Errorf("%+v %+v", again, again.Profile)
	}
	if q := collect(t, dir, func([]topology.NodeID) int { return 0 })[0].Profile.MetaQueue; q != nil {
		t.Errorf("a queue of %g at forwarders that nobody knows", *q)
	}
	learned(t, dir, 3)
}

// learned imports the runs into a history, twice, and asks for a prediction.
func learned(t *testing.T, dir string, want int) *history.Store {
	t.Helper()
	h, _, err := history.Open(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for round, news := range []int{want, 0} {
		sum, err := h.Import(t.Context(), Runs(t.Context(), dir, two))
		if err != nil || sum.Runs != news || sum.Runs+sum.Known != want || sum.Refused != 0 {
			t.Errorf("round %d: %+v %v", round, sum, err)
		}
	}
	return h
}

func TestModeIsThatOfTheLargerPart(t *testing.T) {
	for _, c := range []struct {
		l    runLog
		want topology.Mode
	}{
		{runLog{procs: 4}, ""},
		{runLog{procs: 1, written: 10, ownBytes: 10, ownFiles: 5}, topology.Mode11},
		{runLog{procs: 4, written: 10, ownBytes: 10, ownFiles: 1}, topology.Mode11},
		{runLog{procs: 4, written: 10, ownBytes: 10, ownFiles: 4}, topology.ModeNN},
		{runLog{procs: 4, written: 10, ownBytes: 10, ownFiles: 3}, topology.ModeNM},
		{runLog{procs: 4, written: 8, read: 2, ownBytes: 4, ownFiles: 4, everybodysBytes: 6}, topology.ModeN1},
		{runLog{procs: 4, written: 10, ownBytes: 2, ownFiles: 4, everybodysBytes: 2}, topology.ModeNM},
	} {
		if got := c.l.mode(c.l.read + c.l.written); got != c.want {
			t.Errorf("%+v: %s, want %s", c.l, got, c.want)
		}
	}
}

// TestProgramsAtTheSameTime: the I/O of a job is not the sum of what its programs did beside each other.
func TestProgramsAtTheSameTime(t *testing.T) {
	at := func(from, to, io, rate float64) program {
		return program{testDay.Add(time.Duration(from * 1e9)), testDay.Add(time.Duration(to * 1e9)), io, rate}
	}
	var loaders []program
	for range 24 {
		loaders = append(loaders, at(0, 38, 10, 2))
	}
	for name, c := range map[string]struct {
		programs      []program
		seconds, rate float64
	}{
		"24 loaders":                 {loaders, 10, 48},
		"one after another":          {[]program{at(0, 10, 5, 1), at(20, 30, 2, 3)}, 7, 3},
		"half beside":                {[]program{at(0, 10, 10, 1), at(5, 15, 5, 3)}, 12.5, 4},
		"more I/O than time":         {[]program{at(0, 10, 90, 1)}, 10, 1},
		"an end not after the start": {[]program{at(5, 5, 3, 2)}, 3, 2},
	} {
		if s, r := inIO(c.programs); math.Abs(s-c.seconds) > 1e-9 || r != c.rate {
			t.Errorf("%s: %v s, %v B/s; want %v and %v", name, s, r, c.seconds, c.rate)
		}
	}
}

// TestLoadersAreOneJob: eight programs of one process, each with a file of its own, are N-N; one shared file N-1.
func TestLoadersAreOneJob(t *testing.T) {
	four := int64(4)
	one := func(id string, first int64, file func(i int64) int64) (l iolog.Log) {
		l.Slurm = []iolog.Slurm{{JobID: id, User: "wei", App: id, Start: testDay, End: testDay.Add(time.Hour),
			NodeCount: &four}}
		for i := first; i < first+8; i++ {
			l.Jobs = append(l.Jobs, iolog.Job{Log: i, JobID: id, Owner: iolog.OwnerTrusted, Procs: 1,
				Start: testDay.Add(time.Minute),
				End:   testDay.Add(2 * time.Minute), BytesWritten: 1e9, Write: factors(30, 1e9/30), Read: factors(0,
					0)})
			movers := int64(1)
			l.JobFiles = append(l.JobFiles, iolog.JobFile{Log: i, File: file(i), Procs: 1, Movers: &movers,
				BytesWritten: 1e9})
		}
		return l
	}
	dir := archiveOf(t, one("20", 100, func(i int64) int64 { return i }), one("21", 200,
		func(int64) int64 { return 7 }))
	runs := collect(t, dir, two)
	if len(runs) != 2 || runs[0].Profile.Mode != topology.ModeNN || runs[1].Profile.Mode != topology.ModeN1 {
		t.Fatalf("%+v", runs)
	}
	for _, r := range runs {
		if math.Abs(r.Profile.IOSeconds-30) > 1e-9 || r.Profile.IONodes != 4 || r.Profile.WriteBytes != 8e9 {
			t.Errorf("%+v", r.Profile)
		}
	}
}

func TestNoArchiveIsNoRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if runs := collect(t, dir, two); len(runs) != 0 || State(dir) != "" {
		t.Errorf("%+v, state %q", runs, State(dir))
	}
}

// TestRunOfALoggedJob: 64 GiB by 64 processes on 8 nodes into one shared file, known from its Darshan log and from
// what the batch system says of its nodes.
func TestRunOfALoggedJob(t *testing.T) {
	const logs = "../../../collector/logs/"
	paths := []string{logs + "darshan/testdata/darshan/wave-3.10.darshan", logs + "slurm/testdata/wave.slurm"}
	im := Importer{Dir: filepath.Join(t.TempDir(), "archive"), TrustedBy: "root", Read: func(_ context.Context,
		in Input) (*iolog.Log, error) {
		return logread.Read(in.Content, in.ID, logread.Options{Zone: time.UTC})
	}}
	if r, err := im.Import(t.Context(), paths...); err != nil || r.Imported != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	runs := collect(t, im.Dir, two)
	if len(runs) != 1 {
		t.Fatalf("%+v", runs)
	}
	r, p := runs[0], runs[0].Profile
	t.Logf("%+v\n%+v", r, p)
	if r.Job != "7700001" || r.Nodes != 8 || r.App != "wave_mpi" || p.Mode != topology.ModeN1 ||
		p.WriteBytes != 64<<30+600 || p.IONodes != 8 {
		t.Errorf("%+v %+v", r, p)
	}
	learned(t, im.Dir, 1)
}
