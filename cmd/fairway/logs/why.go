package logs

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/cmd/fairway/cli"
	"fairway/collector/topology"
	"fairway/console/screen/job"
	"fairway/webui/api"
	"fairway/webui/client"
)

// newWhy is `fairway why`: the daemon's explanation of a job from its archived logs, as a table.
func newWhy(o *cli.Options) *cobra.Command {
	var page bool
	c := &cobra.Command{
		Use:   "why JOB",
		Short: "Explain why a job's I/O took as long as it did, from its logs in the archive",
		Long: "Shows, for each program of the job and each direction, the critical path as a strip, the verdict (a " +
			"cause is\n" +
			"marked !!) and the critical files that took longest. The log comes into the archive by 'fairway " +
			"import'.\n" +
			"With --html the same is one page that needs nothing else, to keep or to send.",
		Example: "  fairway why 88231\n  fairway why --html 88231 > 88231.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			printed := printCause
			if page {
				printed = writeCausePage
			}
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.JobCause, error) {
				return cl.Cause(ctx, topology.JobID(args[0]))
			}, printed)
		},
	}
	c.Flags().BoolVar(&page, "html", false, "write one self-contained HTML page")
	return c
}

// Widths of the strip and the number of critical files shown.
const (
	stripCells    = 72
	shownCritical = 10
)

func printCause(w io.Writer, v api.JobCause) error {
	if len(v.Forwarders) > 0 {
		fmt.Fprintf(w, "forwarders: %v\n", v.Forwarders)
	}
	for _, l := range v.Logs {
		fmt.Fprintf(w, "%s  %s  %s\n", l.App, anomaly.Counted(l.Procs, "process"), cli.Stamp(l.Start))
		if l.Main != nil {
			fmt.Fprintf(w, "main cause: %s\n", l.Main.Text)
		}
		for _, d := range []struct {
			name string
			a    *rootcause.Answer
		}{{"reads", l.Read}, {"writes", l.Write}} {
			if d.a == nil {
				fmt.Fprintf(w, "\nno %s\n", d.name)
				continue
			}
			if err := printDirection(w, d.name, d.a); err != nil {
				return err
			}
		}
	}
	return nil
}

func printDirection(w io.Writer, name string, a *rootcause.Answer) error {
	fmt.Fprintf(w, "\n%s\n%s\n", name, job.CriticalStrip(a.Critical, stripCells))
	for _, r := range a.Reasons {
		mark := "  "
		if r.Cause {
			mark = "!!"
		}
		fmt.Fprintf(w, "%s %s\n", mark, r.Text)
		if help := r.Advice(); help != "" {
			fmt.Fprintf(w, "     %s\n", help)
		}
	}
	fmt.Fprintln(w)
	return cli.PrintRows(w, []string{"CRITICAL FILE", "FROM s", "EXCLUSIVE s", "OF I/O TIME"},
		job.LongestCritical(a.Critical, shownCritical), func(c *rootcause.Critical) []string {
			return []string{c.Name, fmt.Sprintf("%.1f", c.Start), fmt.Sprintf("%.1f", c.Exclusive),
				fmt.Sprintf("%.0f %%", 100*c.Exclusive/a.IOTime)}
		})
}
