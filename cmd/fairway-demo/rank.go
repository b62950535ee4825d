package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/darshanlog"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

// newRank is one rank of a demo job: what sbatch and srun start on a compute node.
func newRank() *cobra.Command {
	s := workload.Spec{Ranks: 1}
	var dir, mode, profile string
	var report bool
	var streams int
	c := &cobra.Command{
		Use:    "rank",
		Short:  "Be one rank of a program that does I/O (rank and size from SLURM_PROCID and SLURM_NTASKS)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s.Mode = workload.Mode(mode)
			for name, field := range map[string]*int{"SLURM_PROCID": &s.Rank, "SLURM_NTASKS": &s.Ranks} {
				if v := os.Getenv(name); v != "" {
					n, err := strconv.Atoi(v)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					*field = n
				}
			}
			var mu sync.Mutex // guards the output
			if report {
				out := json.NewEncoder(c.OutOrStdout())
				s.Report = func(b workload.Burst) {
					mu.Lock()
					defer mu.Unlock()
					_ = out.Encode(b) // a job's output may be lost
				}
			}
			first := s.Rank * streams
			s.Ranks *= streams
			ended := make(chan error, streams)
			for i := range streams {
				s.Rank = first + i
				go func(s workload.Spec) { ended <- runRank(c.Context(), s, workload.Dir(dir), profile) }(s)
			}
			var err error
			for range streams {
				err = errors.Join(err, <-ended)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&dir, "dir", testbed.MountPoint, "where the files are")
	f.StringVar(&profile, "profile", "", "folder to leave the rank's part of the job's Darshan log in")
	f.StringVar(&mode, "mode", string(workload.FilePerProcess), fmt.Sprintf("one of %v", workload.Modes))
	f.StringVar(&s.Name, "name", "demo", "name of the files")
	f.Int64Var(&s.BurstBytes, "burst", 32<<20, "bytes a rank moves in a burst")
	f.IntVar(&s.BlockBytes, "block", 256<<10, "bytes of one read or write")
	f.Float64Var(&s.BytesPerSec, "rate", 0, "bytes/s of a rank in a burst; 0: as fast as it goes")
	f.BoolVar(&s.ReadBack, "read-back", false, "read what was written")
	f.IntVar(&s.BurstFiles, "files", 500, "files a rank makes in a burst (mode meta)")
	f.Float64Var(&s.FilesPerSec, "files-rate", 0, "files/s of a rank in a burst; 0: as fast as it goes")
	f.DurationVar(&s.Period, "period", 10*time.Second, "from the start of one burst to that of the next")
	f.DurationVar(&s.Duration, "for", time.Hour, "how long to run")
	f.IntVar(&s.Bursts, "bursts", 0, "after how many bursts to end before that; 0: never")
	f.IntVar(&streams, "streams", 1, "how many ranks this process is")
	f.BoolVar(&s.Keep, "keep", false, "leave the files")
	f.BoolVar(&report, "report", false, "print a line of JSON after each burst")
	return c
}

// runRank runs one rank, and leaves what it did where profile says, for the job's Darshan log.
func runRank(ctx context.Context, s workload.Spec, fs workload.FS, profile string) error {
	if profile == "" {
		return workload.Run(ctx, s, fs)
	}
	r := darshanlog.NewRecorder(fs, s.Rank, s.Ranks)
	return errors.Join(workload.Run(ctx, s, r), r.Leave(profile, topology.JobID(os.Getenv("SLURM_JOB_ID"))))
}
