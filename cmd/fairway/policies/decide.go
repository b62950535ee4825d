package policies

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
)

// newDecide is `fairway decide`: one case in, one decision out, no daemon.
func newDecide() *cobra.Command {
	var name string
	var harm float64
	c := &cobra.Command{
		Use:   "decide CASE.json",
		Short: "Decide a job's forwarders from a case file, with every rule that was tried",
		Long: "Reads one case (configuration, job, history, forwarders, neighbours) and prints what a\n" +
			"policy decides and why, as JSON. \"-\" reads standard input. It needs no daemon and changes nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := dispatch.PolicyByName(name, harm)
			if err != nil {
				return program.BadUsage(err)
			}
			in, err := cli.OpenInput(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			c, err := dfra.ReadCase(in)
			if err != nil {
				return program.BadUsage(fmt.Errorf("%s: %w", args[0], err))
			}
			return cli.PrintJSON(cmd.OutOrStdout(), policy(c))
		},
	}
	c.Flags().StringVar(&name, "policy", "dfra", "one of "+dispatch.PolicyNames())
	c.Flags().Float64Var(&harm, "harm-bound", 0,
		"how much slower than on its default mapping mckp may make a job; 0.05 is 5 %")
	return c
}
