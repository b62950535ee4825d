// Command fairway-queue stands in front of a forwarding node's 9P2000.L service and serves jobs'
// requests by a sharing policy.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { program.Main(execute) }

// execute is main without the process, so that tests can call it.
func execute(ctx context.Context, args []string) int {
	return program.Code(program.Run(ctx, newRoot(), args))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "fairway-queue",
		Short:   "Serve a forwarder's requests by a sharing policy",
		Version: version,
		Args:    cobra.NoArgs,
	}
	root.AddCommand(newServe(), newShare(), newStatus())
	return program.Strict(root)
}
