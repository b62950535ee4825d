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

	"fairway/cmd/program"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// self is this program's file, for the processes that the daemon starts of it; empty in tests.
var self string

func main() {
	self = "/proc/self/exe"
	program.Main(execute)
}

// execute is main without the process, so that tests can call it.
func execute(ctx context.Context, args []string) int {
	return program.Code(program.Run(ctx, newRoot(), args))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "fairwayd",
		Short:   "The daemon: takes frames in, keeps them, shows the machine, and remaps",
		Version: version,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	path := settings.Flag(root)
	root.AddCommand(
		newInit(),
		newRun(path),
		newView(path),
		settings.Command(path),
		newBackup(path),
		newRestore(path),
		newFsck(path),
		newMigrate(path),
		newImport(path),
		newQuery(path),
		newAnswer(),
		newToken(),
		newCertificate(),
		newTokens(path),
		newEnroll(path),
		newHashPassword(),
	)
	return program.Strict(root)
}

func newRun(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon until SIGINT or SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			log, err := program.Log(os.Stderr, conf.LogLevel)
			if err != nil {
				return err
			}
			return run(c.Context(), &conf, log)
		},
	}
}

// run is the daemon's life: until ctx ends or a server fails.
func run(ctx context.Context, conf *Config, log *slog.Logger) error {
	begun := time.Now()
	aimAtMemory(log)
	d, err := openDaemon(conf, log)
	if err != nil {
		return err
	}
	log.Info("ready", "version", version, "took", time.Since(begun).Round(time.Millisecond))
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err = <-d.failed:
	}
	return errors.Join(err, d.Close())
}
