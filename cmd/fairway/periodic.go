package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/remap/periodic"
)

// newPeriodic is `fairway periodic`: when periodic applications should do their I/O, with no daemon.
func newPeriodic() *cobra.Command {
	var chart bool
	c := &cobra.Command{
		Use:   "periodic SET.json",
		Short: "Stagger the I/O of periodic applications in a repeated pattern",
		Long: "Reads {\"procs\",\"b\",\"B\",\"kprime\",\"eps\",\"tmin\",\"apps\":[{\"name\",\"w\",\"vol\",\"beta\"}]} (seconds, GB, GB/s) and\n" +
			"prints the best pattern: its length T, SysEfficiency, Dilation, their bounds, what happens without it,\n" +
			"and every instance's I/O as [start, end, bandwidth]. \"-\" reads standard input.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := openInput(cmd, args[0])
			if err != nil {
				return usageError{err}
			}
			defer in.Close()
			s, err := periodic.ReadSet(in)
			if err != nil {
				return usageError{fmt.Errorf("%s: %w", args[0], err)}
			}
			p, err := periodic.Schedule(s)
			if err != nil {
				return fmt.Errorf("%s: %w; a larger kprime tries longer ones", args[0], err)
			}
			if err := p.Check(s); err != nil {
				return fmt.Errorf("%s: the pattern found is not valid, please report this: %w", args[0], err)
			}
			unplanned := periodic.FairShare(s, s.TMin*s.KPrime)
			if chart {
				return drawPattern(cmd.OutOrStdout(), s, p, unplanned)
			}
			return printJSON(cmd.OutOrStdout(), struct {
				periodic.Pattern
				Unplanned periodic.Unplanned `json:"unplanned"`
			}{p, unplanned})
		},
	}
	c.Flags().BoolVar(&chart, "chart", false, "draw the pattern instead of JSON")
	return c
}
