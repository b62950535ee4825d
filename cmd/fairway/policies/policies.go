// Package policies computes what policies would decide, of a file with a case or a history of jobs.
package policies

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newBacktest(o), newDecide(), newFiledomain(), newPeriodic(o), newShares())
}
