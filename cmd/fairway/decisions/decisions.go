// Package decisions takes what people decide: on plans, beforehand and by rules, on findings and on drained forwarders.
// It also shows who decided what.
package decisions

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newPlans(o), newPlan(o), newStanding(o), newRules(o), newRemap(o), newLimit(o), newFindings(o),
		newDrain(o), newExclusions(o), newReturn(o), newAudit(o), newUndo(o))
}
