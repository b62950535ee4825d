// Command fairwayd is the daemon: it takes frames in, keeps them, shows the machine and carries the
// desk where remaps are decided.
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

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // also: the configuration cannot be used
)

// version is set by the linker (-X main.version=...).
var version = "dev"

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
		return exitDone
	}
	fmt.Fprintln(os.Stderr, "fairwayd:", err)
	if usage := (usageError{}); errors.As(err, &usage) || errors.Is(err, errConfig) {
		return exitUsage
	}
	return exitFailed
}

// usageError marks a command line that cannot be understood.
type usageError struct{ error }

func newRoot() *cobra.Command {
	var path string
	root := &cobra.Command{
		Use:           "fairwayd",
		Short:         "The daemon: takes frames in, keeps them, shows the machine, and remaps",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVarP(&path, "config", "c", "", "configuration file (default "+defaultPath+" if it exists)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())}
	})
	root.AddCommand(
		newRun(&path),
		newConfig(&path),
		newBackup(&path),
		newFsck(&path),
		newMigrate(&path),
		newImport(&path),
		newQuery(&path),
		newDemo(),
		newDemoIO(),
		newToken(),
		newHashPassword(),
	)
	return root
}
