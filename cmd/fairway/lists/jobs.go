package lists

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/tsdb/history"
	"fairway/webui/api"
	"fairway/webui/client"
)

func printJobs(w io.Writer, jobs []api.JobRow) error {
	return cli.PrintRows(w, []string{"JOB", "APPLICATION", "USER", "NODES", "MB/s", "WAIT %", "FOR", "FORWARDERS",
		"STARTED", "ENDED"}, jobs, func(j *api.JobRow) []string {
		moved, wait, cause, fwds := chart.Missing, chart.Missing, "", chart.Missing
		if n := cmp.Or(j.Now, j.Whole); n != nil {
			moved, wait, cause = chart.Mega(n.MovedBytesPerSec), chart.Ratio(n.Wait), cmp.Or(n.Slow, n.Cause)
			fwds = strconv.Itoa(n.Forwarders)
		}
		return []string{string(j.ID), chart.OrMissing(j.App), chart.OrMissing(j.User), strconv.Itoa(j.NodeCount),
			moved, wait, cause, fwds, cli.Stamp(j.Start), cli.Stamp(j.End)}
	})
}

func newJob(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "job ID",
		Short: "Show one job: its forwarders, what was decided for it, what it did, and how it compares with the " +
			"runs like it",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (v jobAndRuns, err error) {
				if v.JobView, err = cl.Job(ctx, topology.JobID(args[0])); err == nil {
					v.Like, err = cl.JobRuns(ctx, v.ID, likeRuns)
				}
				return v, err
			}, printJob)
		},
	}
}

// likeRuns is how many runs a job is compared with.
const likeRuns = 200

// jobAndRuns is a job beside the runs like it.
type jobAndRuns struct {
	api.JobView
	Like api.JobRuns `json:"like"`
}

func printJob(w io.Writer, j jobAndRuns) error {
	fmt.Fprintln(w, j.Answer)
	if j.RunTime != "" {
		fmt.Fprintln(w, j.RunTime)
	}
	fmt.Fprintf(w, "job %s  %s  user %s  %s  started %s  ended %s\n", j.ID, chart.OrMissing(j.App),
		chart.OrMissing(j.User),
		anomaly.Counted(j.NodeCount, "node"), cli.Stamp(j.Start), cli.Stamp(j.End))
	for _, f := range slices.Sorted(maps.Keys(j.Forwarders)) {
		fmt.Fprintf(w, "%s on %s\n", anomaly.Counted(j.Forwarders[f], "node"), f)
	}
	if len(j.Plans) > 0 {
		fmt.Fprintf(w, "plans %s\n", strings.Join(j.Plans, " "))
	}
	if a := j.Decision; a != nil {
		fmt.Fprintf(w, "decision %s by policy %s; forwarders %v, wanted %d %s\n", a.Decision.Action, a.Policy,
			a.Decision.Forwarders, a.Decision.Wanted, a.Refused)
		for _, r := range a.Decision.Reasons {
			mark := "ok"
			if !r.Passed {
				mark = "no"
			}
			fmt.Fprintf(w, "  %s  %s\n", mark, r.Text)
		}
	}
	switch f := j.Profile; {
	case f != nil:
		printProfile(w, "", f)
	case j.SoFar != nil:
		printProfile(w, "so far ", j.SoFar)
	case j.Pending:
		fmt.Fprintln(w, "its profile is being made")
	default:
		fmt.Fprintln(w, "nothing is known of its I/O: none of its nodes reported bytes")
	}
	printComparison(w, &j.Like)
	for _, n := range j.Neighbours {
		fmt.Fprintf(w,
			"neighbour %s %s on %v: %s/s, %s %% of the bytes there; if this job moves, %s %% of them go\n", n.Job,
			n.App, n.On, anomaly.Size(n.ReadBytesPerSec+n.WriteBytesPerSec), chart.Ratio(n.Takes),
			chart.Ratio(n.Relief))
	}
	return printRuns(w, &j.Like)
}

func printProfile(w io.Writer, when string, f *history.Profile) {
	who := "I/O"
	if f.IONodes > 0 {
		who = anomaly.Counted(f.IONodes, "node") + " did I/O"
	}
	fmt.Fprintf(w,
		"%sread %s, wrote %s, %s metadata operations, mode %s, %s for %s, peak %s/s, %s, %.0f %% reported\n",
		when, anomaly.Size(f.ReadBytes), anomaly.Size(f.WriteBytes), chart.Number(f.MetaOps),
		chart.OrMissing(string(f.Mode)), who, remap.Span(f.IOSeconds), anomaly.Size(f.PeakBytesPerSec),
		anomaly.Counted(len(f.Phases), "phase"), 100*f.Coverage)
	for _, one := range f.Waits {
		if one.Share >= 0.005 {
			fmt.Fprintf(w, "waited for %s %.0f %% of its nodes' time\n", one.Forwarder, 100*one.Share)
		}
	}
}

// printComparison says where a job stands among the runs like it.
func printComparison(w io.Writer, v *api.JobRuns) {
	fmt.Fprintf(w, "%s like it (user, application, project and nodes)\n", anomaly.Counted(v.All, "ended run"))
	type spread struct {
		name string
		text func(float64) string
		of   *api.Spread
	}
	rate := spread{"bandwidth while in I/O", func(v float64) string { return anomaly.Size(v) + "/s" }, v.BytesPerSec}
	if v.MetaOnly {
		rate = spread{"metadata operations while in I/O", func(v float64) string { return chart.Number(v) + "/s" },
			v.MetaOpsPerSec}
	}
	for _, one := range []spread{{"I/O time", remap.Span, v.IOSeconds}, rate} {
		if s := one.of; s != nil {
			fmt.Fprintf(w, "%s: least %s, quartiles %s, %s, %s, most %s", one.name, one.text(s.Min), one.text(s.Q1),
				one.text(s.Median), one.text(s.Q3), one.text(s.Max))
			if s.This != nil {
				fmt.Fprintf(w, "; this one %s, above %d and below %d of %d", one.text(*s.This), s.Below, s.Above,
					s.Runs)
			}
			fmt.Fprintln(w)
		}
	}
}

// shownRuns is how many runs are printed; --json has all that were compared with.
const shownRuns = 10

func printRuns(w io.Writer, v *api.JobRuns) error {
	runs, rateOf, title := v.Runs, func(r *api.RunRow) (*float64, float64) { return r.BytesPerSec, 1e6 }, "MB/s"
	if v.MetaOnly {
		rateOf, title = func(r *api.RunRow) (*float64, float64) { return r.MetaOpsPerSec, 1 }, "MD/s"
	}
	if len(runs) == 0 {
		return nil
	}
	return cli.PrintRows(w, []string{"RUN", "STARTED", "GB", "MODE", "I/O s", title, "FORWARDERS", "MOVED BY"},
		runs[:min(len(runs), shownRuns)], func(r *api.RunRow) []string {
			by := "-"
			if r.Remapped != nil {
				by = "no"
				if *r.Remapped {
					by = r.Plan
				}
			}
			rate := "-"
			if v, unit := rateOf(r); v != nil {
				rate = strconv.FormatFloat(*v/unit, 'f', 1, 64)
			}
			return []string{string(r.Job), cli.Stamp(r.Start),
				strconv.FormatFloat((r.ReadBytes+r.WriteBytes)/1e9, 'f', 1, 64), chart.OrMissing(string(r.Mode)),
				strconv.FormatFloat(r.IOSeconds, 'f', 0, 64), rate, strconv.Itoa(len(r.Forwarders)), by}
		})
}
