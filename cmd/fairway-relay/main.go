// Command fairway-relay stands in front of a forwarding node's 9P2000.L service and serves jobs'
// requests by a sharing policy.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// Exit codes, as everywhere in fairway.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 7
)

// usageError marks a command line or a table that cannot be understood.
type usageError struct{ error }

// unreachable marks a relay that does not answer.
type unreachable struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// execute is main without the process, so that tests can call it.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "fairway-relay:", err)
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, new(unreachable)):
		return exitUnreachable
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "fairway-relay",
		Short:         "Serve a forwarder's requests by a sharing policy",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newShare(), newStatus())
	return root
}

func args(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := cobra.ExactArgs(n)(c, a); err != nil {
			return usageError{fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())}
		}
		return nil
	}
}
