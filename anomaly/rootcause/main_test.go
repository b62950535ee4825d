package rootcause

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// logRow is a file that some processes wrote from a second to another.
func logRow(file, procs, writes, small, consecutive int64, from, to float64) iolog.JobFile {
	none := math.NaN()
	return iolog.JobFile{File: file, Procs: procs, BytesWritten: 1 << 28, PosixWrites: writes, SmallWrites: small,
		ConsecWrites: consecutive, WriteStart: from, WriteEnd: to, ReadStart: none, ReadEnd: none, ReadSeconds: none,
		WriteSeconds: float64(procs) * (to - from), MetaSeconds: 0.01, Opens: procs}
}

// The main cause of programs as their logs have them, and of what was the matter on their way.
func TestMainCause(t *testing.T) {
	each := func(small, consecutive int64) (rows []iolog.JobFile) {
		for i := range int64(3) {
			rows = append(rows, logRow(i, 1, 100, small, consecutive, 0, 10+float64(i)/10))
		}
		return rows
	}
	storm := make([]iolog.JobFile, 900)
	for i := range storm {
		storm[i] = logRow(int64(i), 1, 0, 0, 0, 1, 0)
		storm[i].WriteSeconds, storm[i].MetaSeconds, storm[i].BytesWritten = math.NaN(), 0.02, 0
	}
	finding := func(kind anomaly.Kind, jobs ...topology.JobID) []anomaly.Finding {
		return []anomaly.Finding{{Node: "fwd1", Kind: kind, State: anomaly.Confirmed, Jobs: jobs}}
	}
	for _, c := range []struct {
		name     string
		rows     []iolog.JobFile
		findings []anomaly.Finding
		want     string
		text     string
	}{
		{"a file for each process, at the same time", each(0, 99), nil, "", ""},
		{"small scattered requests", each(100, 0), nil, "small", "100 % of the requests were small"},
		{"metadata", storm, nil, "metadata", "900 opens of 900 files"},
		{"N-1", []iolog.JobFile{logRow(1, 3, 100, 0, 0, 0, 10)}, nil, "shared-file", ""},
		{"one process writes", []iolog.JobFile{logRow(1, 1, 100, 0, 99, 0, 10)}, nil, "one-process", ""},
		{"N-1 that pins its forwarder", []iolog.JobFile{logRow(1, 3, 100, 0, 99, 0, 10)}, finding(anomaly.N1Pin, "7"),
			"shared-file", ""},
		{"a neighbour", each(0, 99), finding(anomaly.HighBandwidth, "7", "9"), "highbw", "by the bandwidth of job 9"},
		{"a slow forwarder beside a bad pattern", each(100, 0), finding(anomaly.FailSlow, "7"), "fail_slow", "fwd1"},
	} {
		j := FromLog(&iolog.Job{Procs: 3}, c.rows, nil, Write)
		j.Records = FromFindings(c.findings, "7", map[topology.NodeID]bool{"fwd1": true}, time.Time{},
			time.Time{}.Add(time.Minute))
		a := Explain(j, Defaults())
		main := Main(nil, &a)
		if main == nil {
			main = &Clause{}
		}
		if main.Rule != c.want || !strings.Contains(main.Text, c.text) {
			t.Errorf("%s: the main cause is %q (%s), expected %q\n%s", c.name, main.Rule, main.Text, c.want,
				strings.Join(a.Verdict, "\n"))
		}
	}
	j := FromLog(&iolog.Job{Procs: 3}, storm, nil, Write)
	if a := Explain(j, Defaults()); len(j.Files) > 0 || a.Verdict[0] != "No I/O time: no file was read or written." {
		t.Errorf("metadata alone: %d files, %q", len(j.Files), a.Verdict)
	}
}

// A job that read and wrote has one clause about metadata.
func TestMetadataIsNamedOnce(t *testing.T) {
	row := logRow(1, 3, 100, 0, 99, 0, 10)
	row.ReadStart, row.ReadEnd, row.BytesRead, row.MetaSeconds = 0, 5, 1e9, 2
	for _, c := range []struct {
		rows    []iolog.JobFile
		written bool
	}{{[]iolog.JobFile{row}, true}, {[]iolog.JobFile{onlyRead(row)}, false}} {
		read, write := ByDirection(&iolog.Job{Procs: 3}, c.rows, nil)
		if len(read.Files) != 1 || (len(write.Files) == 1) != c.written {
			t.Fatalf("%d files read, %d written", len(read.Files), len(write.Files))
		}
		named := func(j Job) bool {
			return slices.ContainsFunc(Explain(j, Defaults()).Reasons,
				func(c Clause) bool { return c.Rule == "metadata" })
		}
		if named(read) == c.written || c.written && !named(write) {
			t.Errorf("metadata beside the reads: %v, beside the writes: %v", named(read), named(write))
		}
	}
}

func onlyRead(r iolog.JobFile) iolog.JobFile {
	r.WriteStart, r.WriteEnd, r.BytesWritten = math.NaN(), math.NaN(), 0
	return r
}
