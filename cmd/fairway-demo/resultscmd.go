package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/papers"
)

// newResults measures what the papers report.
func newResults() *cobra.Command {
	l := &papers.Lab{}
	var page string
	c := &cobra.Command{
		Use:   "results [EXPERIMENT...]",
		Short: "Measure on real I/O the effects that the papers behind the policies report (needs root)",
		Long: "Each experiment starts a testbed of its own with links of a set rate, runs real jobs on it and " +
			"compares\n" +
			"what they wrote; its table goes into the page. Without a name all of them run.",
		ValidArgs: papers.Names(),
		RunE: func(c *cobra.Command, names []string) (err error) {
			if l.Self, err = os.Executable(); err != nil {
				return err
			}
			if l.Programs == "" {
				l.Programs = filepath.Dir(l.Self)
			}
			if l.Programs, err = filepath.Abs(l.Programs); err != nil {
				return err
			}
			l.Out = c.OutOrStdout()
			return papers.Run(c.Context(), l, names, page)
		},
	}
	f := c.Flags()
	f.StringVar(&page, "page", "", "file whose tables are replaced (docs/results.md); empty: they are only printed")
	f.BoolVar(&l.Quick, "quick", false, "small and once, to see that it works; nothing is written to the page")
	f.StringVar(&l.Programs, "programs", "", "folder of fairway's other programs (default: that of this one)")
	return c
}
