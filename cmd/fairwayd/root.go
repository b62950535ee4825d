// Command fairwayd is the daemon: it takes frames in, keeps them, shows the machine and carries the
// desk where remaps are decided.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/certify"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/enrol"
	"fairway/cmd/fairwayd/host"
	"fairway/cmd/fairwayd/iologs"
	"fairway/cmd/fairwayd/setup"
	"fairway/cmd/fairwayd/state"
	"fairway/cmd/fairwayd/stores"
	"fairway/cmd/fairwayd/view"
	"fairway/cmd/program"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// self is this program's file, for the processes that the daemon starts of it; empty in tests.
var self string

func main() {
	self = "/proc/self/exe"
	program.Main(func(ctx context.Context, args []string) int {
		return program.Code(program.Run(ctx, newRoot(), args))
	})
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "fairwayd",
		Short:   "The daemon: takes frames in, keeps them, shows the machine, and remaps",
		Version: version,
		Args:    cobra.NoArgs,
	}
	path := config.File.Flag(root)
	root.AddCommand(
		setup.Command(),
		newRun(path),
		view.Command(path, version, run),
		config.File.Command(path),
		state.Backup(path, version),
		state.Restore(path),
		stores.Fsck(path),
		stores.Migrate(path),
		iologs.Import(path),
		iologs.Query(path),
		iologs.Answer(),
		enrol.Token(),
		certify.Command(),
		enrol.List(path),
		enrol.Enroll(path),
		enrol.HashPassword(),
	)
	return program.Strict(root)
}

func newRun(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon until SIGINT or SIGTERM",
		Args:  cobra.NoArgs,
		RunE: config.File.With(path, func(c *cobra.Command, _ []string, conf *config.Config) error {
			return run(c.Context(), conf, program.Log(os.Stderr, conf.LogLevel))
		}),
	}
}

// run is the daemon's life: until ctx ends or a server fails.
func run(ctx context.Context, conf *config.Config, log *slog.Logger) error {
	begun := time.Now()
	host.AimAtMemory(log)
	d, err := openDaemon(conf, log)
	if err != nil {
		return err
	}
	log.Info("ready", "version", version, "took", time.Since(begun).Round(time.Millisecond))
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err = <-d.listeners.Failed():
	}
	return errors.Join(err, d.Close())
}
