package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/console"
)

// newWhy is `fairway why`: the daemon's explanation of a job from its archived logs, as a table.
func newWhy(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "why JOB",
		Short: "Explain why a job's I/O took as long as it did, from its logs in the archive",
		Long: "Shows, for each program of the job and each direction, the critical path as a strip, the verdict (a cause is\n" +
			"marked !!) and the critical files that took longest. The log comes into the archive by 'fairway import'.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := o.connect()
			if err != nil {
				return err
			}
			defer cl.Close()
			v, err := cl.Cause(c.Context(), topology.JobID(args[0]))
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(c.OutOrStdout(), v)
			}
			return printCause(c.OutOrStdout(), &v)
		},
	}
}

// Widths of the strip and the number of critical files shown.
const (
	stripCells    = 72
	shownCritical = 10
)

func printCause(w io.Writer, v *console.JobCause) error {
	if len(v.Forwarders) > 0 {
		fmt.Fprintf(w, "forwarders: %v\n", v.Forwarders)
	}
	for _, l := range v.Logs {
		fmt.Fprintf(w, "%s  %d processes  %s\n", printable(l.App), l.Procs, stamp(l.Start))
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
	fmt.Fprintf(w, "\n%s\n%s\n", name, strip(a.Critical))
	for _, r := range a.Reasons {
		mark := "  "
		if r.Cause {
			mark = "!!"
		}
		fmt.Fprintf(w, "%s %s\n", mark, printable(r.Text))
	}
	longest := slices.Clone(a.Critical)
	slices.SortStableFunc(longest, func(x, y rootcause.Critical) int { return cmp.Compare(y.Exclusive, x.Exclusive) })
	rows := [][]string{}
	for _, c := range longest[:min(shownCritical, len(longest))] {
		rows = append(rows, []string{printable(c.Name), fmt.Sprintf("%.1f", c.Start), fmt.Sprintf("%.1f", c.Exclusive), fmt.Sprintf("%.0f %%", 100*c.Exclusive/a.IOTime)})
	}
	fmt.Fprintln(w)
	return printTable(w, []string{"CRITICAL FILE", "FROM s", "EXCLUSIVE s", "OF I/O TIME"}, rows)
}

// strip draws the critical path: one letter a critical file, in turn, and a dot where nothing was read or
// written.
func strip(path []rootcause.Critical) string {
	if len(path) == 0 {
		return ""
	}
	from, to := path[0].Start, path[len(path)-1].End
	cells := []byte(strings.Repeat(".", stripCells))
	for i, c := range path {
		first := int((c.Start - from) / (to - from) * stripCells)
		last := int((c.End - from) / (to - from) * stripCells)
		for k := first; k < max(last, first+1) && k < stripCells; k++ {
			cells[k] = 'a' + byte(i%26)
		}
	}
	return fmt.Sprintf("%.1f s [%s] %.1f s", from, cells, to)
}

// printable keeps escape sequences of users' file names from the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
