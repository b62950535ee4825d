// Package terminal opens the console: on now, on a copied address, on the past or with a guide. It prints its keys,
// too.
package terminal

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/console/screen"
)

// Add adds the room's commands; without a command the console is opened.
func Add(root *cobra.Command, o *cli.Options) {
	root.RunE = func(c *cobra.Command, _ []string) error { return show(o, c, screen.Address{Page: "overview"}) }
	root.AddCommand(newTop(o), newOpen(o), newTour(o), newReplay(o), newKeys(o))
}
