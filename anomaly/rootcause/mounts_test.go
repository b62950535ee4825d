package rootcause

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

func TestMounts(t *testing.T) {
	m := Mounts{{Point: "/lus", FileSystem: "big"},
		{Point: "/lus/fast", FileSystem: "nvme", Forwarders: []string{"fwd1*"}}}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/lus": "big", "/lus/a": "big", "/lus/fast": "nvme",
		"/lus/fast/a": "nvme", "/lus/faster/a": "big", "/lustre/a": "", "a": ""} {
		if got := m.of(name); want == "" && got != nil || want != "" && (got == nil || got.FileSystem != want) {
			t.Errorf("%s lies on %+v, want %q", name, got, want)
		}
	}
	for point, want := range map[string]string{"/lus": "big", "/home": "home", "/other": ""} {
		if got := m.fileSystem(point, []string{"home", "snx"}); got != want {
			t.Errorf("at %s %q is mounted, want %q", point, got, want)
		}
	}
	if got := m.fileSystem("/other", []string{"snx"}); got != "snx" {
		t.Errorf("the only one recorded: %q", got)
	}
	for _, c := range []struct {
		m    Mount
		says string
	}{
		{Mount{Point: "lus", FileSystem: "x"}, "absolute"}, {Mount{Point: "/lus/", FileSystem: "x"}, "slash"},
		{Mount{Point: "/a"}, "file_system"}, {Mount{Point: "/a", FileSystem: "x/y"}, "x/y"},
		{Mount{Point: "/a", FileSystem: "x", Forwarders: []string{"[x"}}, "[x"},
		{Mount{Point: "/lus", FileSystem: "x"}, "twice"},
	} {
		if err := append(m[:2:2], c.m).Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.says)
		}
	}
}

// A forwarder of another file system is not to blame.
func TestForwardersOfOtherFileSystemsAreNoCause(t *testing.T) {
	j := Job{Files: []File{file("/lus/fast/out (write)", 0, 10)},
		Mounts: Mounts{{Point: "/lus/fast", FileSystem: "nvme", Forwarders: []string{"fwd1*"}}}}
	for _, f := range []string{"fwd10", "fwd20"} {
		j.Records = append(j.Records, Record{Layer: topology.Forwarder, Node: f, What: anomaly.FailSlow, Start: 0,
			End: 10})
	}
	a := explained(t, j)
	text := strings.Join(a.Verdict, "\n")
	if !strings.Contains(text, "fwd10 was fail-slow") || strings.Contains(text, "fwd20") {
		t.Error(text)
	}
	j.Mounts = nil
	if text := strings.Join(explained(t, j).Verdict, "\n"); !strings.Contains(text, "fwd20") {
		t.Error("without settings every forwarder counts: " + text)
	}
}

// Each process has a file of its own on one target; the file on the slow one is the last to end and alone is critical.
// The others show what is usual, and the calendar when it was.
func TestSlowTargetUnderAFileForEachProcess(t *testing.T) {
	j := Job{Procs: 8, Storage: Storage{Begun: time.Date(2018, 1, 28, 8, 0, 0, 0, time.UTC)}}
	for i := range 8 {
		rate, end := 1e9, 10.0
		if i == 5 {
			rate, end = 0.2e9, 50
		}
		f := file("/lus/out."+string(rune('0'+i)), 0, end)
		f.Bytes, f.Targets = 10e9, []topology.TargetID{target(i)}
		j.Files = append(j.Files, f)
		for k := range 10 {
			l := Load{Target: target(i), Start: float64(5 * k), End: float64(5*k + 5)}
			if l.Start < end {
				l.Bytes = 5 * rate
			}
			j.Storage.Loads = append(j.Storage.Loads, l)
		}
	}
	a := explained(t, j)
	if len(a.Critical) != 1 || j.Files[a.Critical[0].File].Targets[0] != target(5) {
		t.Fatalf("critical %+v", a.Critical)
	}
	wantCause(t, a, "ost-slow", 0.8,
		"snx-OST0005 was slow for everybody from 2018-01-28 08:00:00 to 08:00:50 UTC: it moved 10 GB at 200 MB/s",
		"as much at 1 GB/s (median)", "100 % of it was this job's own")
}

// Why a record is not joined is part of the verdict.
func TestWhatIsNotJoinedIsSaid(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	l := &iolog.Log{Jobs: []iolog.Job{{Start: start}},
		Files: []iolog.File{{ID: 1, Path: "/scratch1/a", Mount: "/scratch1"}},
		JobFiles: []iolog.JobFile{{File: 1, BytesWritten: 1e9, WriteStart: 0, WriteEnd: 9, ReadStart: 1, ReadEnd: 0,
			OSTs: []int32{3}}}}
	around := iolog.Around{}
	for _, fs := range []string{"snx1", "snx2"} {
		around.OSTs = append(around.OSTs, iolog.OST{Time: start, Target: fs + "-OST0003", FS: fs, Seconds: 5,
			BytesWritten: 1e9})
	}
	for _, c := range []struct {
		mounts Mounts
		osts   []int32
		says   string
	}{
		{nil, []int32{3}, "which of snx1, snx2 is mounted there is not set"},
		{Mounts{{Point: "/scratch1", FileSystem: "snx3"}}, []int32{3},
			"below /scratch1 on snx3, and the record is of snx1, snx2"},
		{nil, nil, "does not name the storage targets"},
		{Mounts{{Point: "/scratch1", FileSystem: "snx2"}}, []int32{3},
			"knows 1 storage target of the job; the busiest, snx2-OST0003"},
	} {
		l.JobFiles[0].OSTs = c.osts
		j := FromLog(&l.Jobs[0], l.JobFiles, map[int64]string{1: "/scratch1/a"}, Write)
		j.Mounts = c.mounts
		j.FromAround(l, around)
		if text := strings.Join(explained(t, j).Verdict, "\n"); !strings.Contains(text, c.says) {
			t.Errorf("%+v: %s\nwant %q", c.mounts, text, c.says)
		}
	}
}
