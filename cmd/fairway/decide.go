package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/remap/dfra"
)

// newDecide is `fairway decide`: one case in, one decision out, no daemon.
func newDecide() *cobra.Command {
	return &cobra.Command{
		Use:   "decide CASE.json",
		Short: "Decide a job's forwarders from a case file, with every rule that was tried",
		Long: "Reads one case (configuration, job, history, forwarders, neighbours) and prints what the DFRA\n" +
			"policy decides and why, as JSON. \"-\" reads standard input. It needs no daemon and changes nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := openInput(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			c, err := dfra.ReadCase(in)
			if err != nil {
				return usageError{fmt.Errorf("%s: %w", args[0], err)}
			}
			return printJSON(cmd.OutOrStdout(), dfra.Decide(c))
		},
	}
}
