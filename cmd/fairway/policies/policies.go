// Package policies computes what policies would decide, of a file with a case or a history of jobs.
package policies

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/policy/strictjson"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newBacktest(o), newDecide(), newFiledomain(), newPeriodic(o), newShares())
}

// readCase reads a policy's case of at most most bytes from a file of the command line into what into points to, which
// check completes. Whatever is wrong with it is a usage error.
func readCase(c *cobra.Command, name string, most int64, into any, check func() error) error {
	in, err := cli.OpenInput(c, name)
	if err != nil {
		return program.BadUsage(err)
	}
	defer in.Close()
	if err = strictjson.Read(in, most, into); err == nil {
		err = check()
	}
	if err != nil {
		return program.BadUsage(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}
