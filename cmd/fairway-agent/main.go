// Command fairway-agent runs on every node: it reads the node's sources once a second, streams the
// frames to the daemon through a spool on disk, and carries out the daemon's orders where that is
// allowed.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
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
	program.Main(func(ctx context.Context, args []string) int {
		return execute(ctx, args, os.Stdout, os.Stderr, dropPrivileges)
	})
}

// drop gives up what the settings do not need.
type drop func(*Config, *slog.Logger) error

// execute is main without the process, so that tests can call it; they keep their privileges.
func execute(ctx context.Context, args []string, out, errs io.Writer, privileges drop) int {
	root := newRoot(privileges)
	root.SetOut(out)
	root.SetErr(errs)
	return program.Code(program.Run(ctx, root, args))
}

func newRoot(privileges drop) *cobra.Command {
	var path string
	root := &cobra.Command{
		Use:     "fairway-agent",
		Short:   "Reads a node's I/O once a second and streams it to fairwayd",
		Version: version,
		Args:    cobra.NoArgs,
	}
	root.PersistentFlags().StringVarP(&path, "config", "c", "",
		"configuration file (default "+defaultPath+" if it exists)")
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
		if err := privileges(&conf, log); err != nil {
			return err
		}
		if *once {
			return printOnce(c.Context(), conf, log, c.OutOrStdout())
		}
		return run(c.Context(), conf, log)
	}
	root.AddCommand(newConfig(&path), newCheck(&path, privileges))
	return program.Strict(root)
}

func newLog(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("%w: log_level = %q: want debug, info, warn or error", program.ErrSettings, level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
