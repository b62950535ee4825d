// Package site checks a site: its installation, what a canary takes, what its nodes' files say, and how it behaved in a
// recorded trace or in the metrics of its exporters.
package site

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newAccept(o), newDoctor(o), newCanary(o), newRecord(), newDetect(o), newLook(o))
}
