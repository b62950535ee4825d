// Command fairway-agent runs on every node: it reads the node's sources once a second, streams the frames to the
// daemon through a spool on disk, and carries out the daemon's orders where that is allowed.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/topology"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// memoryLimit keeps the collector of garbage at work before the agent grows: it shares its node with
// jobs. The live heap is about 2 MB. A storage server's agent remembers its tables of jobs, 21 MB of 100,000.
const memoryLimit, serversLimit = 12 << 20, 160 << 20

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
	root := &cobra.Command{
		Use:     "fairway-agent",
		Short:   "Reads a node's I/O once a second and streams it to fairwayd",
		Version: version,
		Args:    cobra.NoArgs,
	}
	path := settings.Flag(root)
	once := root.Flags().Bool("once", false, "print one frame as JSON and end; nothing is sent")
	root.RunE = settings.With(path, func(c *cobra.Command, _ []string, conf *Config) error {
		log := program.Log(c.ErrOrStderr(), conf.LogLevel)
		if err := privileges(conf, log); err != nil {
			return err
		}
		if role, _ := topology.ParseRole(conf.Role); os.Getenv("GOMEMLIMIT") == "" &&
			(role == topology.Storage || role == topology.Metadata) {
			debug.SetMemoryLimit(serversLimit)
		}
		if *once {
			return printOnce(c.Context(), *conf, log, c.OutOrStdout())
		}
		return run(c.Context(), *conf, log)
	})
	root.AddCommand(settings.Command(path), newCheck(path, privileges))
	return program.Strict(root)
}
