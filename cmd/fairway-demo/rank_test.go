package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/cmd/lab/darshanlog"
	"fairway/cmd/lab/testbed/workload"
)

func TestRankArgvSaysTheWholeSpec(t *testing.T) {
	dir, profile := t.TempDir(), t.TempDir()
	s := workload.Spec{Mode: workload.FilePerProcess, Name: "app", BurstBytes: 3000, BlockBytes: 1000, BytesPerSec: 1e9,
		BurstFiles: 7, FilesPerSec: 2.5, ReadBack: true, Period: time.Minute, Duration: 300 * time.Millisecond}
	t.Setenv("SLURM_PROCID", "1")
	t.Setenv("SLURM_NTASKS", "2")
	t.Setenv("SLURM_JOB_ID", "4711")
	c := newRank()
	c.SetArgs(append(s.Argv("fairway-demo")[2:], "--dir", dir, "--profile", profile))
	c.SetContext(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Execute() }()
	largest := int64(0)
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		case <-time.After(5 * time.Millisecond):
			if fi, err := os.Stat(filepath.Join(dir, "app.0001")); err == nil {
				largest = max(largest, fi.Size())
			}
		}
	}
	if largest != s.BurstBytes {
		t.Errorf("rank 1's file grew to %d bytes, want %d", largest, s.BurstBytes)
	}
	left, err := darshanlog.Gather(profile, "4711")
	if err != nil || len(left) != 1 || left[0].Rank != 1 || left[0].Ranks != 2 ||
		left[0].Files["app.0001"].Write.Bytes < s.BurstBytes {
		t.Errorf("for the job's Darshan log it left %+v, %v", left, err)
	}
}
