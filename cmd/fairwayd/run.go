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
