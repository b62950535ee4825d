package logread

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fairway/collector/logs/darshan"
	"fairway/tsdb/history/iolog"
)

// of makes a record of all processes of /scratch/a.
func of(ints map[string]int64, floats map[string]float64) []record {
	return []record{{id: 1, rank: -1, ints: ints, floats: floats}}
}

// TestWhatALogSaysOfAFile: each case is a way in which logs were misread.
func TestWhatALogSaysOfAFile(t *testing.T) {
	written := map[string]int64{"POSIX_OPENS": 8, "POSIX_WRITES": 8, "POSIX_BYTES_WRITTEN": 800}
	times := func(more map[string]float64) map[string]float64 {
		out := map[string]float64{"POSIX_F_WRITE_START_TIMESTAMP": 2, "POSIX_F_WRITE_END_TIMESTAMP": 4,
			"POSIX_F_WRITE_TIME": 8, "POSIX_F_SLOWEST_RANK_TIME": 1.5}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	mpi := map[string]int64{"MPIIO_COLL_OPENS": 8, "MPIIO_INDEP_WRITES": 16, "MPIIO_BYTES_WRITTEN": 1600}
	for name, c := range map[string]struct {
		posix, mpiio []record
		want         func(*iolog.JobFile) bool
	}{
		"collective opens move no data": {nil, of(mpi, nil), func(f *iolog.JobFile) bool {
			return !f.UsesCollective && f.MPIIOOps == 16 && f.CollectiveOps == 0
		}},
		"a file that POSIX only looked at, written by MPI-IO": {of(map[string]int64{"POSIX_STATS": 4}, nil), of(mpi,
			nil),
			func(f *iolog.JobFile) bool {
				return f.BytesWritten == 1600 && f.Writes == 16 && f.CountedBy == layerMPIIO && f.WriteEnd == 10
			}},
		"a rank's bytes below 0": {nil, []record{{id: 1, rank: 0, ints: map[string]int64{"MPIIO_INDEP_WRITES": 3,
			"MPIIO_BYTES_WRITTEN": -32574}}, {id: 1, rank: 1, ints: map[string]int64{"MPIIO_INDEP_WRITES": 3,
			"MPIIO_BYTES_WRITTEN": 9000}}}, func(f *iolog.JobFile) bool {
			return f.BytesWritten == 9000 && f.Writes == 6
		}},
		"what POSIX saw less of": {of(written, times(nil)), of(mpi, nil), func(f *iolog.JobFile) bool {
			return f.BytesWritten == 1600 && f.PosixWrites == 8 && f.TimedBy == layerFS
		}},
		"times of the layer that waits": {of(written, times(nil)), of(map[string]int64{"MPIIO_COLL_WRITES": 8,
			"MPIIO_BYTES_WRITTEN": 800}, map[string]float64{"MPIIO_F_WRITE_TIME": 90, "MPIIO_F_META_TIME": 10,
			"MPIIO_F_SLOWEST_RANK_TIME": 20}), func(f *iolog.JobFile) bool {
			return f.CountedBy == layerFS && f.TimedBy == layerMPIIO && f.WriteSeconds == 90 && f.MetaSeconds == 10 &&
				f.SlowestWriteSeconds == 18 && f.SlowestMetaSeconds == 2
		}},
		"one of eight wrote": {of(map[string]int64{"POSIX_OPENS": 8, "POSIX_WRITES": 8, "POSIX_BYTES_WRITTEN": 800,
			"POSIX_SLOWEST_RANK_BYTES": 800}, times(nil)), nil, func(f *iolog.JobFile) bool {
			return f.Procs == 8 && *f.Movers == 1
		}},
		"who wrote is not recorded": {of(written, times(nil)), nil,
			func(f *iolog.JobFile) bool { return f.Movers == nil }},
		"a start before the job": {of(written, times(map[string]float64{"POSIX_F_WRITE_START_TIMESTAMP": -.5})), nil,
			func(f *iolog.JobFile) bool { return f.BytesWritten == 800 && f.WriteStart == 0 && f.WriteEnd == 4 }},
		"an end that never was": {of(written, times(map[string]float64{"POSIX_F_WRITE_END_TIMESTAMP": 0})), nil,
			func(f *iolog.JobFile) bool { return f.BytesWritten == 800 && f.WriteStart == 2 && f.WriteEnd == 10 }},
		"an end years later": {of(written, times(map[string]float64{"POSIX_F_WRITE_END_TIMESTAMP": 1e9})), nil,
			func(f *iolog.JobFile) bool { return f.WriteEnd == 10 }},
		"no numbers": {of(written, times(map[string]float64{"POSIX_F_WRITE_END_TIMESTAMP": math.Inf(1),
			"POSIX_F_WRITE_START_TIMESTAMP": math.NaN(), "POSIX_F_WRITE_TIME": math.Inf(1)})), nil,
			func(f *iolog.JobFile) bool { return f.WriteStart == 0 && f.WriteEnd == 10 && f.WriteSeconds == 0 }},
		"requests off the unit": {of(map[string]int64{"POSIX_WRITES": 4, "POSIX_BYTES_WRITTEN": 188032,
			"POSIX_FILE_NOT_ALIGNED": 3, "POSIX_FILE_ALIGNMENT": 1 << 20, "POSIX_MAX_BYTE_WRITTEN": 188031},
			times(nil)), nil,
			func(f *iolog.JobFile) bool {
				return *f.Unaligned == 3 && *f.Alignment == 1<<20 && f.WrittenExtent == 188032 && f.ReadExtent == 0
			}},
	} {
		l := parse(t, handmade(c.posix, c.mpiio, nil))
		if f := &l.JobFiles[0]; !c.want(f) {
			t.Errorf("%s: %+v", name, *f)
		}
		if is := strings.Contains(name, "below 0"); l.Jobs[0].Partial != is ||
			strings.Contains(l.Problem, "below 0") != is {
			t.Errorf("%s: partial: %t, problem %q", name, l.Jobs[0].Partial, l.Problem)
		}
	}
}

// TestWhatWasAskedOfALibrary: HDF5's accesses stand beside what they became below.
func TestWhatWasAskedOfALibrary(t *testing.T) {
	dataset := map[string]int64{"H5D_WRITES": 4, "H5D_BYTES_WRITTEN": 400, "H5D_READS": 1, "H5D_BYTES_READ": 10,
		"H5D_USE_MPIIO_COLLECTIVE": 1}
	l := parse(t, handmade(of(map[string]int64{"POSIX_OPENS": 40, "POSIX_WRITES": 16, "POSIX_BYTES_WRITTEN": 1600,
		"POSIX_MAX_BYTE_WRITTEN": 99}, nil), of(map[string]int64{"MPIIO_INDEP_WRITES": 8, "MPIIO_BYTES_WRITTEN": 800,
		"MPIIO_BYTES_READ": 20}, nil), nil, record{id: 4, rank: -1, ints: dataset}))
	f := &l.JobFiles[0]
	if len(l.JobFiles) != 1 || f.Library != "HDF5" || f.LibraryWrites != 4 || f.LibraryWritten != 400 ||
		f.LibraryReads != 1 || f.LibraryRead != 10 || f.LibraryCollective != 5 || f.MPIIOWritten != 800 ||
		f.MPIIORead != 20 || f.BytesWritten != 1600 {
		t.Errorf("%d rows, %+v", len(l.JobFiles), *f)
	}
	if f.WrittenExtent != 0 {
		t.Errorf("opened again and again, perhaps to append, but %d bytes long", f.WrittenExtent)
	}
}

// TestFilesThatWereOpened: looking at a file, or the layout of one, does not open it.
func TestFilesThatWereOpened(t *testing.T) {
	l := parse(t, handmade([]record{{id: 1, rank: 0, ints: map[string]int64{"POSIX_STATS": 3}},
		{id: 2, rank: -1, ints: map[string]int64{"POSIX_OPENS": 8}}}, nil, nil))
	if j := &l.Jobs[0]; j.Files != 1 || j.SharedFiles != 0 || len(l.JobFiles) != 2 {
		t.Errorf("%d files, %d shared, %d rows", j.Files, j.SharedFiles, len(l.JobFiles))
	}
}

// TestWhatTheHeadSaysWrongly: a job without a number, and one that ended before it began.
func TestWhatTheHeadSaysWrongly(t *testing.T) {
	b := handmade(of(map[string]int64{"POSIX_OPENS": 1}, nil), nil, nil)
	put := func(at int, v byte) { b[360+at] = v }
	put(8*4, 0) // job ID 77
	put(8*2, 0) // the end, 1009, is 768
	j := parse(t, b).Jobs[0]
	if j.JobID != "" || !math.IsNaN(j.RunSeconds) || !strings.Contains(strings.Join(j.Notes, ";"), "end lies before") {
		t.Errorf("%+v", j)
	}
}

// TestHeatOfAllRanks: maps whose bins differ in number and width are one, and one that cannot be costs itself.
func TestHeatOfAllRanks(t *testing.T) {
	rank := func(width float64, written ...int64) darshan.RankBins {
		return darshan.RankBins{API: "POSIX", Bins: darshan.Bins{WidthSeconds: width, Write: written,
			Read: make([]int64, len(written))}}
	}
	for name, c := range map[string]struct {
		maps []darshan.RankBins
		want []int64
	}{
		"eight bins more": {[]darshan.RankBins{rank(.2, 1, 2), rank(.2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5)},
			[]int64{2, 2, 0, 0, 0, 0, 0, 0, 0, 5}},
		"widths of their own": {[]darshan.RankBins{rank(.1, 1, 2, 4, 8, 16), rank(.2, 100, 200, 400),
			rank(.4, 1000, 2000)}, []int64{1315, 2416}},
		"below 0":            {[]darshan.RankBins{rank(.2, 1, -8, 3)}, []int64{1, 0, 3}},
		"wider than the run": {[]darshan.RankBins{rank(.2, 1, 2), rank(1e9, 7), rank(math.NaN(), 7)}, []int64{1, 2}},
	} {
		j := iolog.Job{RunSeconds: 10, HeatSeconds: math.NaN()}
		addHeat(&j, c.maps)
		if !slices.Equal(j.HeatWrite, c.want) {
			t.Errorf("%s: %v each %g s, want %v", name, j.HeatWrite, j.HeatSeconds, c.want)
		}
	}
}
