package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func newRun(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon until SIGINT or SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, _, err := loadConfig(*path)
			if err != nil {
				return err
			}
			level, err := conf.logLevel()
			if err != nil {
				return err
			}
			return run(c.Context(), &conf, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
		},
	}
}

// run is the daemon's life: until ctx ends or a server fails.
func run(ctx context.Context, conf *Config, log *slog.Logger) error {
	begun := time.Now()
	aimAt(conf.Memory, log)
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

func (c *Config) logLevel() (l slog.Level, err error) {
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return l, fmt.Errorf("log_level = %q: want debug, info, warn or error", c.LogLevel)
	}
	return l, nil
}
