// Command fairway-agent runs on every node: it reads the node's sources once a second, streams the
// frames to the daemon through a spool on disk, and carries out the daemon's orders where that is
// allowed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
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

// memoryLimit keeps the collector of garbage at work before the agent grows: it shares its node with
// jobs. The live heap is about 2 MB.
const memoryLimit = 12 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1) // handing a few microseconds of work between threads costs more than the work
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is main without the process, so that tests can call it.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(errs, "fairway-agent:", err)
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
		Use:           "fairway-agent",
		Short:         "Reads a node's I/O once a second and streams it to fairwayd",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.PersistentFlags().StringVarP(&path, "config", "c", "", "configuration file (default "+defaultPath+" if it exists)")
	once := root.Flags().Bool("once", false, "print one frame as JSON and end; nothing is sent")
	root.RunE = func(c *cobra.Command, _ []string) error {
		conf, err := loadConfig(path)
		if err != nil {
			return err
		}
		log, err := newLog(c.ErrOrStderr(), conf.LogLevel)
		if err != nil {
			return err
		}
		if *once {
			return printOnce(c.Context(), conf, log, c.OutOrStdout())
		}
		return run(c.Context(), conf, log)
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())}
	})
	root.AddCommand(newConfig(&path), newCheck(&path))
	return root
}

func newLog(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("%w: log_level = %q: want debug, info, warn or error", errConfig, level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
