// Package decisions takes what people decide: on plans, beforehand and by rules, on findings and on drained forwarders.
// It also shows who decided what.
package decisions

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/client"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(cli.NewList(o, "plans", "List plans, the newest first", (*client.Client).Plans, printPlans),
		newPlan(o), newStanding(o), newRules(o), newRemap(o), newLimit(o), newFindings(o),
		newDrain(o), cli.NewList(o, "exclusions",
			"List the drained forwarders, what became of their traffic, and maintenance to come",
			(*client.Client).Exclusions, printExclusions), newReturn(o), newAudit(o), newUndo(o))
}

// newReasoned makes a command that does something, for a reason, to what its argument names.
func newReasoned[K ~string, T any](o *cli.Options, use, short string,
	act func(*client.Client, context.Context, K, string) (T, error),
	write func(w io.Writer, named string, v T) error) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (T, error) {
				return act(cl, ctx, K(args[0]), reason)
			}, func(w io.Writer, v T) error { return write(w, args[0], v) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; kept in the audit")
	return c
}
