package rootcause

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// used makes a file's row as logs of today give it: written by procs processes from start to end, in calls for all
// seconds together and slowest of one.
func used(file, procs int64, start, end, all, slowest float64) iolog.JobFile {
	none := math.NaN()
	return iolog.JobFile{File: file, Procs: procs, Movers: &procs, SlowestRank: file, TimedBy: "FS", CountedBy: "FS",
		UsesPosix: true, Opens: procs, ReadStart: none, ReadEnd: none, WriteStart: start, WriteEnd: end,
		WriteSeconds: all, SlowestWriteSeconds: slowest, BytesWritten: 4e9, Writes: 4000, PosixWrites: 4000,
		ConsecWrites: 4000 - procs, SeqWrites: 4000 - procs, WrittenExtent: 4e9, OpenStart: none, CloseEnd: none,
		TracedRead: none, TracedWrite: none}
}

func explainRows(procs int64, rows ...iolog.JobFile) Answer {
	j := iolog.Job{Procs: procs, RunSeconds: 1000}
	return Explain(FromLog(&j, rows, map[int64]string{1: "/s/1", 2: "/s/2", 3: "/s/3", 4: "/s/4"}, Both), Defaults())
}

// TestIOTimeIsTheCalls: an idle file is not in I/O, however long it is open.
func TestIOTimeIsTheCalls(t *testing.T) {
	idle := used(1, 1, 0, 1000, .002, .002)
	traced := used(2, 8, 10, 900, 400, 60)
	traced.WriteTrace, traced.TracedWrite = []float64{10, 50, 880, 900}, 58
	for name, c := range map[string]struct {
		rows   []iolog.JobFile
		ioTime float64
		first  string
	}{
		"a log file beside the output": {[]iolog.JobFile{idle, used(2, 8, 10, 900, 400, 60)}, 60.002, "/s/2 (write)"},
		"files of two processes at once": {[]iolog.JobFile{used(1, 1, 0, 1000, 20, 20), used(2, 1, 0, 1000, 30, 30)},
			30,
			"/s/2 (write)"},
		"a file of one and one of all": {[]iolog.JobFile{used(1, 1, 0, 1000, 20, 20), used(2, 8, 0, 1000, 80, 10)}, 30,
			"/s/1 (write)"},
		"threads": {[]iolog.JobFile{used(1, 8, 0, 10, 800, 9), used(2, 8, 0, 10, 800, 9)}, 10, "/s/1 " +
			"(write)"},
		"traced":          {[]iolog.JobFile{traced}, 58, "/s/2 (write)"},
		"traced, and not": {[]iolog.JobFile{traced, used(3, 8, 0, 1000, 400, 90)}, 148, "/s/3 (write)"},
		"an old archive's": {[]iolog.JobFile{{File: 1, WriteEnd: 500, WriteSeconds: 7, ReadStart: math.NaN()}}, 7,
			"/s/1 (write)"},
		"no time in a call": {[]iolog.JobFile{used(1, 8, 0, 10, 0, 0)}, 0, ""},
	} {
		a := explainRows(8, c.rows...)
		first := ""
		if len(a.Critical) > 0 {
			first = longest(&a).Name
		}
		if math.Abs(a.IOTime-c.ioTime) > 1e-9 || first != c.first {
			t.Errorf("%s: %v s, most on %q; want %v on %q", name, a.IOTime, first, c.ioTime, c.first)
		}
	}
}

// TestTroublesCountByTheCallsUnderThem: a file in calls for a tenth of its span was under a trouble for a tenth of it.
func TestTroublesCountByTheCallsUnderThem(t *testing.T) {
	pieces := []Critical{{Start: 0, End: 100, Exclusive: 10}, {Start: 50, End: 150, Exclusive: 100}}
	if got := within(pieces, 0, 60); math.Abs(got-16) > 1e-9 {
		t.Errorf("%v s", got)
	}
	pieces[0].active = []float64{0, 10, 80, 120}
	for until, want := range map[float64]float64{5: 5. / 3, 60: 10./3 + 10, 90: 20./3 + 40} {
		if got := within(pieces, 0, until); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v s until %v s, want %v", got, until, want)
		}
	}
}

// TestWhenIsOfTheHeatMap: where calls were not traced, they were when the heat map has bytes of their direction; how
// long they took stays what their counters say.
func TestWhenIsOfTheHeatMap(t *testing.T) {
	j := iolog.Job{Procs: 8, RunSeconds: 1000, HeatSeconds: 10, HeatWrite: make([]int64, 100), HeatRead: []int64{0, 1}}
	j.HeatWrite[1], j.HeatWrite[2], j.HeatWrite[90] = 5, 5, 5
	job := FromLog(&j, []iolog.JobFile{used(1, 8, 0, 1000, 400, 60)}, map[int64]string{1: "/s/1"}, Both)
	trouble := func(from, to float64) float64 {
		job.Records = []Record{{Layer: topology.Forwarder, Node: "fwd1", What: anomaly.FailSlow, Start: from, End: to}}
		a := Explain(job, Defaults())
		if a.IOTime != 60 || !strings.Contains(a.Verdict[0], "is not traced but is taken from the heat map") {
			t.Errorf("%v s: %s", a.IOTime, a.Verdict[0])
		}
		for _, r := range a.Reasons {
			if r.Rule == "fail_slow" {
				return float64(r.Value)
			}
		}
		return 0
	}
	for _, c := range []struct{ from, to, want float64 }{{10, 30, 2. / 3}, {30, 900, 0}, {895, 999, 1. / 3}} {
		if got := trouble(c.from, c.to); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v to %v s: %v of the I/O time, want %v", c.from, c.to, got, c.want)
		}
	}
}

// TestPatterns: each cause beyond the paper's five is named with its figure and what helps, and only where it costs.
func TestPatterns(t *testing.T) {
	change := func(f func(*iolog.JobFile)) iolog.JobFile {
		r := used(1, 4, 0, 800, 2000, 600)
		f(&r)
		return r
	}
	mpiio := func(r *iolog.JobFile, collective int64) {
		r.UsesMPIIO, r.MPIIOOps, r.CollectiveOps, r.UsesCollective = true, r.Writes, collective, collective > 0
	}
	unaligned := func(r *iolog.JobFile) {
		n, unit := r.Writes-10, int64(1<<20)
		r.Unaligned, r.Alignment, r.SmallWrites = &n, &unit, r.Writes
		r.BytesWritten, r.ConsecWrites = 47008*r.Writes, 0
	}
	for name, c := range map[string]struct {
		row        iolog.JobFile
		want, text string
		not        []string
	}{
		"ior-hard": {change(func(r *iolog.JobFile) { unaligned(r); mpiio(r, 0) }), "unaligned", "4000 requests of " +
			"47 kB",
			nil},
		"and independent": {change(func(r *iolog.JobFile) { unaligned(r); mpiio(r, 0) }), "independent", "100 % of " +
			"the MPI-IO",
			nil},
		"and collective": {change(func(r *iolog.JobFile) { unaligned(r); mpiio(r, 4000) }), "unaligned", "",
			[]string{"independent"}},
		"large": {change(
			func(r *iolog.JobFile) { unaligned(r); r.BytesWritten = 32 << 20 * r.Writes; r.SmallWrites = 0 }),
			"shared-file", "", []string{"unaligned", "small"}},
		"random": {change(func(r *iolog.JobFile) { r.SeqWrites, r.ConsecWrites = 2000, 0 }), "random", "50 % of the " +
			"requests began at or below", nil},
		"4 KiB in order": {change(func(r *iolog.JobFile) { r.BytesWritten, r.SmallWrites = 4096*r.Writes, r.Writes }),
			"small",
			"at 4.1 kB a call a process moved 8.19 kB/s", nil},
		"few of them": {change(func(r *iolog.JobFile) {
			r.Writes, r.PosixWrites, r.SmallWrites, r.BytesWritten, r.ConsecWrites = 40, 40, 40, 40*4096, 36
		}), "shared-file", "", []string{"small"}},
		"written again": {change(func(r *iolog.JobFile) { r.WrittenExtent = 1e9 }), "rewritten", "was written 4 " +
			"times", nil},
		"sieving": {change(func(r *iolog.JobFile) { mpiio(r, 4000); r.MPIIOWritten, r.WrittenExtent = 1e9, 1e9 }),
			"sieving", "moved 4 GB of /s/1 (write) where it was asked for 1 GB", []string{"rewritten", "inflated"}},
		"fill values": {change(func(r *iolog.JobFile) {
			mpiio(r, 4000)
			r.MPIIOWritten, r.WrittenExtent, r.Library, r.LibraryWrites, r.LibraryWritten = 4e9, 2e9, "HDF5", 4000, 2e9
		}), "inflated", "HDF5 moved 4 GB of /s/1 (write) for accesses of 2 GB",
			[]string{"rewritten", "sieving", "split"}},
		"strided selections": {change(func(r *iolog.JobFile) {
			r.Library, r.LibraryWrites, r.LibraryWritten, r.LibraryCollective = "HDF5", 40, r.BytesWritten/100, 10
			r.BytesWritten /= 100
		}), "split", "HDF5 made 4000 requests, 10 kB each on average, of 40 accesses", []string{"blocking"}},
		"variables piece by piece": {change(func(r *iolog.JobFile) {
			unaligned(r)
			mpiio(r, 0)
			r.Library, r.LibraryWrites, r.LibraryWritten, r.LibraryNonblocking = "PnetCDF", 4000, r.BytesWritten, 400
		}), "blocking", "90 % of the 4000 accesses to variables of /s/1 (write), 47 kB each", []string{"split"}},
		"and gathered": {change(func(r *iolog.JobFile) {
			unaligned(r)
			mpiio(r, 0)
			r.Library, r.LibraryWrites, r.LibraryWritten, r.LibraryNonblocking = "PnetCDF", 4000, r.BytesWritten, 4000
		}), "independent", "0 % of the accesses were to be collective in PnetCDF", []string{"blocking"}},
		"one of 64": {change(func(r *iolog.JobFile) { one := int64(2); r.Procs, r.Movers = 64, &one }), "imbalance",
			"2 processes of the 64 that opened", nil},
		"an open a write": {change(func(r *iolog.JobFile) {
			r.Opens, r.MetaSeconds, r.SlowestMetaSeconds = 4004, 900,
				20
		}),
			"open-close", "opened 4000 times more", nil},
		"long in metadata": {change(func(r *iolog.JobFile) { r.MetaSeconds, r.SlowestMetaSeconds = 900, 31 }),
			"metadata",
			"one process spent 31 s", nil},
		"first requests": {change(func(r *iolog.JobFile) { r.PosixWrites, r.ConsecWrites = 4, 0 }), "shared-file", "",
			[]string{"nonconsec", "random"}},
	} {
		a := explainRows(64, c.row)
		i := slices.IndexFunc(a.Reasons, func(r Clause) bool { return r.Rule == c.want && r.Cause })
		if i < 0 || !strings.Contains(a.Reasons[i].Text, c.text) || a.Reasons[i].Remedy == "" {
			t.Errorf("%s: no cause %s with %q in\n%s", name, c.want, c.text, strings.Join(a.Verdict, "\n"))
		}
		for _, r := range a.Reasons {
			if r.Cause && slices.Contains(c.not, r.Rule) {
				t.Errorf("%s: %s", name, r.Text)
			}
			if r.GainSeconds > a.IOTime {
				t.Errorf("%s: %s gains %v s of %v", name, r.Rule, r.GainSeconds, a.IOTime)
			}
		}
	}
}

// TestRemediesAreOfWhatTheProgramUses: a program of HDF5 gets no advice for PnetCDF.
func TestRemediesAreOfWhatTheProgramUses(t *testing.T) {
	for _, c := range []struct {
		rule, library string
		mpiio         bool
		want, not     string
	}{
		{"unaligned", "", false, "pad records", "PnetCDF"},
		{"unaligned", "", true, "striping_unit; HDF5: H5Pset_alignment with the unit; PnetCDF: ", "pad"},
		{"unaligned", "HDF5", true, "H5Pset_alignment", "striping_unit"},
		{"unaligned", "PnetCDF", true, "nc_header_align_size", "H5P"},
		{"metadata", "HDF5", false, "stay open", "H5Pset"},
		{"metadata", "HDF5", true, "H5Pset_coll_metadata_write", "stay open"},
		{"serial", "HDF5", true, "MPI_File_iwrite", ""},
		{"fail_slow", "HDF5", true, "", ""},
	} {
		got := remedyOf(c.rule).text(c.library, c.mpiio)
		if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) || c.want == "" && got != "" {
			t.Errorf("%s of %q, MPI-IO %v: %s", c.rule, c.library, c.mpiio, got)
		}
	}
}

func TestWhatALogLacksIsSaid(t *testing.T) {
	j := iolog.Job{Procs: 4, RunSeconds: 10, Partial: true, HeatSeconds: .1, HeatRead: []int64{0, 5000},
		HeatWrite: []int64{0, 0, 7000}, Notes: []string{"POSIX: the runtime ran out of memory for it"}}
	text := strings.Join(Explain(FromLog(&j, nil, nil, Both), Defaults()).Verdict, "\n")
	for _, want := range []string{"not known", "ran out of memory",
		"5 kB were read and 7 kB written from 0.1 s to 0.3 s of the job, in 0.2 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "no file was read") {
		t.Error(text)
	}
}

// TestLogsOfOthers explains all the logs that lie beside the repository, and those of the tests.
func TestLogsOfOthers(t *testing.T) {
	logs, _ := filepath.Glob("../../collector/logs/darshan/testdata/darshan/*.darshan")
	for _, more := range []string{"data/darshan/*.darshan", "data/darshan_1x_2x/*.gz", "field/darshan-*/*.darshan",
		"field/job-logs/*.darshan", "field/job-logs/concurrent/*.darshan"} {
		found, _ := filepath.Glob(filepath.Join("../../../shared", more))
		logs = append(logs, found...)
	}
	if len(logs) < 2 {
		t.Fatalf("%d logs", len(logs))
	}
	named := map[string]string{"imbalanced-io.darshan": "312046190", "noposix.darshan": "4028781608",
		"treddy_mpi-io-test_id4373053_6-2-60198-9815401321915095332_1.darshan": "mpi_io_rough_work/test.out"}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := logread.Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), 1, logread.Options{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		names := map[int64]string{}
		for _, f := range l.Files {
			names[f.ID] = f.Path
		}
		job := FromLog(&l.Jobs[0], l.JobFiles, names, Both)
		a := Explain(job, Defaults())
		calls := 0.
		for i := range l.JobFiles {
			f := &l.JobFiles[i]
			calls += f.ReadSeconds + f.WriteSeconds + f.MetaSeconds
		}
		if run := l.Jobs[0].RunSeconds; a.IOTime > calls*(1+1e-9) || a.IOTime > run+2 {
			t.Errorf("%s: I/O took %v s, all calls %v, the run %v", path, a.IOTime, calls, run)
		}
		if want := named[filepath.Base(path)]; want != "" && !strings.Contains(longest(&a).Name, want) {
			t.Errorf("%s: most time goes to %s, want %s", path, longest(&a).Name, want)
		}
	}
	t.Logf("%d logs", len(logs))
}

// TestProgramsOfAJob: 24 that load at the same time took as long as the slowest of them, and two in turn their sum.
func TestProgramsOfAJob(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	program := func(from, to, seconds float64, procs int64) Program {
		j := iolog.Job{Procs: procs, RunSeconds: to - from}
		at := func(s float64) time.Time { return start.Add(time.Duration(s * 1e9)) }
		return Program{FromLog(&j, []iolog.JobFile{used(1, procs, 0, to-from, seconds*float64(procs), seconds)},
			map[int64]string{1: "/s/1"}, Both), at(from), at(to)}
	}
	var loaders []Program
	for i := range 24 {
		loaders = append(loaders, program(0, 38, 1+float64(i)/4, 1))
	}
	for name, c := range map[string]struct {
		programs      []Program
		ioTime, procs float64
	}{
		"24 loaders": {loaders, 6.75, 24},
		"in turn":    {[]Program{program(100, 200, 7, 4), program(0, 90, 5, 8)}, 12, 8},
		"both":       {[]Program{program(0, 90, 5, 8), program(0, 90, 3, 8), program(100, 200, 7, 4)}, 12, 16},
		"none":       {nil, 0, 0},
	} {
		j := Together(c.programs)
		a := Explain(j, Defaults())
		if math.Abs(a.IOTime-c.ioTime) > 1e-9 || float64(j.Procs) != c.procs {
			t.Errorf("%s: %v s of %v processes, want %v of %v", name, a.IOTime, j.Procs, c.ioTime, c.procs)
		}
		for _, r := range a.Reasons {
			if r.Rule == "one-process" && name == "24 loaders" {
				t.Error(r.Text)
			}
		}
	}
}
