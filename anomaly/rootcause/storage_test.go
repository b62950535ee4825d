package rootcause

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// striped is a job of 100 s with one file of 40 GB on four targets, and a record of eight in which each
// moves the rate that it is given for every interval of 5 s.
func striped(rate func(target, interval int) float64) Job {
	f := file("/scratch/out", 0, 100)
	f.Bytes = 40e9
	for i := range 4 {
		f.Targets = append(f.Targets, target(i))
	}
	j := Job{Procs: 64, Files: []File{f}}
	j.Storage.Peak = 1e9
	for k := range 20 {
		for i := range 8 {
			j.Storage.Loads = append(j.Storage.Loads, Load{Target: target(i), Start: float64(5 * k),
				End: float64(5*k + 5), Bytes: 5 * rate(i, k)})
		}
	}
	return j
}

func target(i int) topology.TargetID { return topology.TargetID(fmt.Sprintf("snx-OST%04x", i)) }

func explained(t *testing.T, j Job) Answer {
	t.Helper()
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	return Explain(j, Defaults())
}

func wantCause(t *testing.T, a Answer, rule string, value float64, words ...string) {
	t.Helper()
	c := reason(t, a, rule)
	if !c.Cause || math.Abs(float64(c.Value)-value) > 1e-9 {
		t.Errorf("%s: %+v, want a cause of %v", rule, c, value)
	}
	for _, w := range words {
		if !strings.Contains(c.Text, w) {
			t.Errorf("%s says %q, want %q", rule, c.Text, w)
		}
	}
}

func noneOf(t *testing.T, a Answer, rules ...string) {
	t.Helper()
	for _, r := range rules {
		if has(a, r) {
			t.Errorf("unfounded: %+v", reason(t, a, r))
		}
	}
}

func TestEvenTargetsAreNoCause(t *testing.T) {
	a := explained(t, striped(func(int, int) float64 { return 400e6 }))
	noneOf(t, a, "ost-saturated", "ost-hot", "ost-slow")
	if c := reason(t, a, "osts"); c.Cause || !strings.Contains(c.Text, "knows 4 storage targets of the job") ||
		!strings.Contains(c.Text, "40 % of the most seen") {
		t.Errorf("%+v", c)
	}
}

func TestSaturatedTargetAndWhoFillsIt(t *testing.T) {
	j := striped(func(i, k int) float64 {
		if i == 2 && k < 8 {
			return 900e6
		}
		return 600e6
	})
	j.Storage.Neighbours = []Neighbour{{"77", "small", target(2), 1e9}, {"88", "vpic", target(2), 30e9},
		{"99", "elsewhere", target(5), 90e9}}
	a := explained(t, j)
	// 8 of 20 intervals; 8*5*0.9e9 + 12*5*0.6e9 = 72 GB, of which the job's quarter is 10.
	wantCause(t, a, "ost-saturated", 0.4, "snx-OST0002", "for 40 s", "80 % of 1 GB/s",
		"14 % of it was this job's own, job 88 (vpic) moved 30 GB there")
	noneOf(t, a, "ost-hot", "ost-slow")

	j.Storage.Neighbours = nil
	if c := reason(t, explained(t, j), "ost-saturated"); !strings.Contains(c.Text, "no log shows whose") {
		t.Errorf("%+v", c)
	}
	j.Storage.Peak = 0
	noneOf(t, explained(t, j), "ost-saturated") // a job that is alone in the record is its own peak
}

func TestHotTarget(t *testing.T) {
	j := striped(func(i, k int) float64 {
		if i == 1 && k >= 10 {
			return 500e6
		}
		return 50e6
	})
	j.Files[0].Bytes = 400e9 // most of what the target moved
	wantCause(t, explained(t, j), "ost-hot", 0.5, "snx-OST0001", "for 50 s", "4.71 times",
		"a wider stripe would spread")
	// Hot, but only in a second that no file of the job was in I/O.
	j.Files[0].End = 50
	noneOf(t, explained(t, j), "ost-hot")
	// An idle file system has no hot target, whatever the ratio.
	j = striped(func(i, k int) float64 {
		switch {
		case i == 0 && k > 0:
			return 5e6
		case i == 7 && k == 0:
			return 900e6
		}
		return 0
	})
	noneOf(t, explained(t, j), "ost-hot")
}

func TestSlowTarget(t *testing.T) {
	// All move 20 GB; target 3 takes four times as long for it.
	work := func(i, k int) float64 {
		switch {
		case i == 3:
			return 200e6
		case k < 5 && i < 4:
			return 800e6
		}
		return 0
	}
	j := striped(work)
	j.Storage.Peak = 2e9
	a := explained(t, j)
	wantCause(t, a, "ost-slow", 0.75,
		"snx-OST0003 was slow for everybody from 0 s to 100 s of the job: it moved 20 GB at 200 MB/s",
		"as much at 800 MB/s (median), and worked 75 s longer")
	// A little longer for as much is not slow, nor is less work at a lower rate.
	noneOf(t, explained(t, striped(func(i, k int) float64 {
		switch {
		case i == 3 && k < 8:
			return 500e6
		case i == 3:
			return 0
		}
		return work(i, k)
	})), "ost-slow")
	noneOf(t, explained(t, striped(func(i, k int) float64 {
		if i == 3 {
			return 100e6
		}
		return work(i, k)
	})), "ost-slow")
	// Too few targets to know what is usual.
	j.Files[0].Targets = j.Files[0].Targets[1:]
	noneOf(t, explained(t, j), "ost-slow")
}

func TestSeveralTargetsAreCounted(t *testing.T) {
	a := explained(t, striped(func(i, _ int) float64 { return 850e6 }))
	if c := reason(t, a, "ost-saturated"); !strings.HasSuffix(c.Text, "; also 3 more of the job's 4 targets.") {
		t.Errorf("%q", c.Text)
	}
}

// Numbers of targets are joined with servers' names only where the file system is certain.
func TestFromAround(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	none := math.NaN()
	l := &iolog.Log{
		Jobs: []iolog.Job{{Start: start, End: start.Add(time.Minute)}},
		JobFiles: []iolog.JobFile{
			{File: 1, BytesWritten: 100, WriteStart: 1, WriteEnd: 9, ReadStart: none, ReadEnd: none, OSTs: []int32{20}},
			{File: 2, BytesWritten: 10, WriteStart: 1, WriteEnd: 9, ReadStart: none, ReadEnd: none, OSTs: []int32{20}},
		},
		Files: []iolog.File{{ID: 1, Path: "/lus/big/a", Mount: "/lus/big"},
			{ID: 2, Path: "/lus/other/b", Mount: "/lus/other"}},
	}
	around := iolog.Around{
		OSTs: []iolog.OST{
			{Time: start.Add(5 * time.Second), Target: "big-OST0014", FS: "big", Seconds: 5, BytesRead: 7,
				BytesWritten: none},
			{Time: start.Add(5 * time.Second), Target: "other-OST0014", FS: "other", Seconds: 5, BytesRead: 8,
				BytesWritten: 1},
		},
		PeakBytesPerSec: map[string]float64{"big": 9, "other": 10},
		Neighbours: []iolog.Neighbour{{JobID: "8", Mount: "/lus/big", OST: 20, Bytes: 5},
			{JobID: "9", Mount: "/lus/other", OST: 20, Bytes: 5}},
	}
	join := func(l *iolog.Log, a iolog.Around) Job {
		j := FromLog(&l.Jobs[0], l.JobFiles, map[int64]string{1: "/lus/big/a", 2: "/lus/other/b"}, Write)
		j.FromAround(l, a)
		return j
	}
	j := join(l, around)
	if len(j.Storage.Loads) != 1 || j.Storage.Loads[0] != (Load{"big-OST0014", 5, 10, 7}) || j.Storage.Peak != 9 ||
		len(j.Storage.Neighbours) != 1 || j.Storage.Neighbours[0].Job != "8" {
		t.Errorf("%+v", j.Storage)
	}
	if j.Files[0].Targets[0] != "big-OST0014" || j.Files[1].Targets[0] != "OST0014" {
		t.Errorf("targets %v %v", j.Files[0].Targets, j.Files[1].Targets)
	}
	l.Files[0].Mount = "/scratch" // no file system is called that, and there are two
	if j := join(l, around); len(j.Storage.Loads) != 0 || j.Files[0].Targets[0] != "OST0014" {
		t.Errorf("joined with one of two file systems: %+v", j.Storage)
	}
	l.Files[0].Mount = "/lus"
	around.OSTs = around.OSTs[1:]
	if j := join(l, around); len(j.Storage.Loads) != 1 || j.Files[0].Targets[0] != "other-OST0014" {
		t.Errorf("the only file system: %+v", j.Storage)
	}
}

// A log of a file on eight targets with a record of 24: every target is found by its number, and what is reported of
// the busiest is in the record.
func TestLogWithRecordOfServers(t *testing.T) {
	b, err := os.ReadFile("../../collector/logs/darshan/testdata/darshan/wave-3.10.darshan")
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) *iolog.Log {
		l, err := logread.Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), 1, logread.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := read(b)
	var rows bytes.Buffer
	rows.WriteString("OST_NAME,TIMESTAMP,READ_BYTES,WRITE_BYTES\n")
	for k := range 30 {
		for i := range 24 {
			fmt.Fprintf(&rows, "snx1-OST%04x,%s,%d,%d\n", i,
				l.Jobs[0].Start.Add(time.Duration(5*k)*time.Second).UTC().Format(
					time.DateTime), k*1e6, k*(i+1)*1e8)
		}
	}
	servers := read(rows.Bytes())
	most, peak := map[string]float64{}, 0.0
	for i := range servers.OSTs {
		o := &servers.OSTs[i]
		most[o.Target] = max(most[o.Target], (o.BytesRead+o.BytesWritten)/o.Seconds)
		peak = max(peak, most[o.Target])
	}
	j := FromLog(&l.Jobs[0], l.JobFiles, map[int64]string{l.Files[0].ID: l.Files[0].Path}, Write)
	j.FromAround(l, iolog.Around{OSTs: servers.OSTs, PeakBytesPerSec: map[string]float64{"snx1": peak}})
	a := explained(t, j)
	for _, s := range a.Verdict {
		t.Log(s)
	}
	c := reason(t, a, "osts")
	if len(most) != 24 || !strings.Contains(c.Text, "knows 8 storage targets") ||
		!strings.Contains(c.Text, "snx1-OST0015") ||
		c.Value <= 0 || c.Value > 1 {
		t.Errorf("%d targets recorded: %+v", len(most), c)
	}
}
