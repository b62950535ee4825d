package main

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"fairway/anomaly/rootcause"
)

// newRootcause is `fairway rootcause`: why a job's I/O was slow, from its log, with no daemon.
func newRootcause() *cobra.Command {
	return &cobra.Command{
		Use:   "rootcause INTERVALS.json",
		Short: "Explain a job's I/O time: critical files, contributing factors and a verdict",
		Long: "Reads {\"files\":[{\"name\",\"start\",\"end\",\"bytes\",\"small\",\"nonconsec\",\"collective\",\"procs\",\"osts\"}]} (seconds,\n" +
			"bytes, shares from 0 to 1, counts; osts may also list the targets) and prints the critical path, the\n" +
			"five factors weighted by exclusive time and the verdict as JSON. \"-\" reads standard input.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := openInput(cmd, args[0])
			if err != nil {
				return usageError{err}
			}
			defer in.Close()
			job, err := rootcause.ReadJob(bufio.NewReaderSize(in, 1<<20))
			if err != nil {
				return usageError{fmt.Errorf("%s: %w", args[0], err)}
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			if err := json.NewEncoder(out).Encode(rootcause.Explain(job, rootcause.Defaults())); err != nil {
				return err
			}
			return out.Flush()
		},
	}
}
