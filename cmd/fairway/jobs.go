package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/collector/topology"
	"fairway/console"
	"fairway/webui/client"
)

func newJobs(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "jobs",
		Short: "List the running jobs and those that ended last",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(o, c, func(ctx context.Context, cl *client.Client) ([]console.JobRow, error) { return cl.Jobs(ctx) }, printJobs)
		},
	}
}

func printJobs(w io.Writer, jobs []console.JobRow) error {
	rows := make([][]string, 0, len(jobs))
	for _, j := range jobs {
		rows = append(rows, []string{string(j.ID), orDash(j.App), orDash(j.User), strconv.Itoa(j.NodeCount), stamp(j.Start), stamp(j.End)})
	}
	return printTable(w, []string{"JOB", "APPLICATION", "USER", "NODES", "STARTED", "ENDED"}, rows)
}

// stamp is a time as tables show it; "-" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func newJob(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "job ID",
		Short: "Show one job: its forwarders, what was decided for it, what it did",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return show(o, c, func(ctx context.Context, cl *client.Client) (console.JobView, error) {
				return cl.Job(ctx, topology.JobID(args[0]))
			}, printJob)
		},
	}
}

func printJob(w io.Writer, j console.JobView) error {
	fmt.Fprintf(w, "job %s  %s  user %s  %d nodes  started %s  ended %s\n", j.ID, orDash(j.App), orDash(j.User), j.NodeCount, stamp(j.Start), stamp(j.End))
	for _, f := range slices.Sorted(maps.Keys(j.Forwarders)) {
		fmt.Fprintf(w, "%d nodes on %s\n", j.Forwarders[f], f)
	}
	if len(j.Plans) > 0 {
		fmt.Fprintf(w, "plans %s\n", strings.Join(j.Plans, " "))
	}
	if a := j.Decision; a != nil {
		fmt.Fprintf(w, "decision %s by policy %s; forwarders %v, wanted %d %s\n", a.Decision.Action, a.Policy, a.Decision.Forwarders, a.Decision.Wanted, a.Refused)
		for _, r := range a.Decision.Reasons {
			mark := "ok"
			if !r.Passed {
				mark = "no"
			}
			fmt.Fprintf(w, "  %s  %s\n", mark, r.Text)
		}
	}
	var err error
	switch f := j.Profile; {
	case f != nil:
		_, err = fmt.Fprintf(w, "read %.3g B, wrote %.3g B, %.0f metadata operations, mode %s, %d nodes did I/O for %.0f s, peak %.3g B/s, %d phases, %.0f %% reported\n",
			f.ReadBytes, f.WriteBytes, f.MetaOps, orDash(string(f.Mode)), f.IONodes, f.IOSeconds, f.PeakBytesPerSec, len(f.Phases), 100*f.Coverage)
	case j.Pending:
		_, err = fmt.Fprintln(w, "its profile is being made")
	case !j.End.IsZero():
		_, err = fmt.Fprintln(w, "nothing is known of its I/O")
	}
	return err
}
