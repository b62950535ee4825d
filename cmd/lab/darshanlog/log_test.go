package darshanlog_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/darshanlog"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/logs/darshan"
)

// TestWhatRanksDidIsInTheLog: three ranks of each kind of program leave one log that a reader of Darshan logs
// understands, with every byte and operation in it.
func TestWhatRanksDidIsInTheLog(t *testing.T) {
	for _, c := range []struct {
		spec          workload.Spec
		files         int
		written, read int64
		opens, small  int64
	}{
		{workload.Spec{Mode: workload.FilePerProcess, ReadBack: true}, 3, 6 << 20, 6 << 20, 6, 24},
		{workload.Spec{Mode: workload.SharedFile}, 1, 6 << 20, 0, 6, 24},
		{workload.Spec{Mode: workload.MetadataStorm}, 15, 0, 0, 30, 0},
	} {
		t.Run(string(c.spec.Mode), func(t *testing.T) {
			dir, left, begun := t.TempDir(), t.TempDir(), time.Now()
			for rank := range 3 {
				s := c.spec
				s.Name, s.Rank, s.Ranks, s.BurstBytes, s.BlockBytes, s.BurstFiles = "climate", rank, 3, 1<<20, 256<<10,
					5
				s.Period, s.Duration, s.Bursts = time.Millisecond, time.Hour, 2
				r := darshanlog.NewRecorder(workload.Dir(dir), rank, 3)
				s.Keep = true
				if err := workload.Run(t.Context(), s, r); err != nil {
					t.Fatal(err)
				}
				if err := r.Leave(left, "4711"); err != nil {
					t.Fatal(err)
				}
			}
			ranks, err := darshanlog.Gather(left, "4711")
			if err != nil || len(ranks) != 3 {
				t.Fatalf("%d ranks, %v", len(ranks), err)
			}
			var log bytes.Buffer
			job := darshanlog.Job{ID: "4711", UID: 1000, Exe: "climate --steps 9", FS: "fuse", MountPoint: "/pfs"}
			if err := darshanlog.Write(&log, &job, ranks); err != nil {
				t.Fatal(err)
			}
			l, err := darshan.Read(bytes.NewReader(log.Bytes()), int64(log.Len()))
			if err != nil {
				t.Fatal(err)
			}
			j := l.Header.Job
			if j.JobID != 4711 || j.UID != 1000 || j.NProcs != 3 || j.Exe != "climate --steps 9" ||
				j.Start.Before(begun.Add(-time.Second)) || j.RunSeconds <= 0 || len(l.Files) != c.files {
				t.Errorf("%+v, %d files", j, len(l.Files))
			}
			var written, read, opens, small int64
			for _, f := range l.Files {
				p := f.POSIX
				if p == nil || !strings.HasPrefix(f.Name, "/pfs/climate.") || f.Mount != "/pfs" {
					t.Fatalf("%+v", f)
				}
				if p.BytesWritten > 0 && (!p.Write.Known() || p.WriteSeconds <= 0 || p.Write.End > j.RunSeconds+1) {
					t.Errorf("%s: %+v", f.Name, p)
				}
				written, read, opens, small = written+p.BytesWritten, read+p.BytesRead, opens+p.Opens,
					small+p.SmallWrites()
			}
			if written != c.written || read != c.read || opens != c.opens || small != c.small {
				t.Errorf("%d bytes written, %d read, %d opens, %d small writes", written, read, opens, small)
			}
			if parser, err := exec.LookPath("darshan-parser"); err == nil {
				file := filepath.Join(t.TempDir(), job.FileName("wei", "climate", begun))
				if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(parser, "--total", file).CombinedOutput()
				if err != nil || !strings.Contains(string(out), "# nprocs: 3") {
					t.Errorf("darshan-parser: %v\n%s", err, out)
				}
				t.Logf("darshan-parser: %d bytes", len(out))
			}
		})
	}
}
