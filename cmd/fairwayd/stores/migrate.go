package stores

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/tsdb/migrate"
)

// Migrate is fairwayd migrate.
func Migrate(path *string) *cobra.Command {
	var from, to string
	var restart bool
	cmd := &cobra.Command{
		Use:   "migrate --from KIND --to KIND",
		Short: "Copy every sample from one store into another",
		Long: "Copies from one kind of store (embedded, influx or prometheus, as the configuration describes them) " +
			"into another,\n" +
			"oldest hour first. It may be interrupted: the next run goes on where it stopped. To move without a gap, " +
			"set\n" +
			"store.kind to the new one, restart the daemon, and copy the old one while the daemon runs.",
		Args: cobra.NoArgs,
		RunE: config.File.With(path, func(c *cobra.Command, _ []string, conf *config.Config) error {
			var source, target bool
			from, source = config.KnownKind(from)
			to, target = config.KnownKind(to)
			if !source || !target || from == to {
				return program.BadUsage(fmt.Errorf("--from %q --to %q: want two of embedded, influx and prometheus",
					from, to))
			}
			state := filepath.Join(conf.StateDir, fmt.Sprintf("migrate-%s-%s.json", from, to))
			if restart {
				if err := os.Remove(state); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
			return runMigrate(c, conf, from, to, state)
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "store to read: embedded, influx or prometheus")
	cmd.Flags().StringVar(&to, "to", "", "store to write")
	cmd.Flags().BoolVar(&restart, "restart", false, "begin with the first hour again")
	return cmd
}

func runMigrate(c *cobra.Command, conf *config.Config, from, to, state string) (err error) {
	conf.Store.Sync = time.Nanosecond // each slice is waited for: with nothing to gather, a sync at once is faster
	log := slog.New(slog.NewTextHandler(program.Raw(c.ErrOrStderr()), nil))
	var stores [2]Opened
	for i, kind := range []string{from, to} {
		if err := conf.Store.ValidateServer(kind); err != nil {
			return fmt.Errorf("%w: %w", program.ErrSettings, err)
		}
		if stores[i], err = Open(conf, kind, log); err != nil {
			return fmt.Errorf("open the %s store: %w", kind, err)
		}
		defer func() { err = errors.Join(err, stores[i].Close()) }()
	}
	p, err := migrate.Copy(c.Context(), stores[0].Source, stores[1].Source,
		migrate.Options{State: state, Report: func(p migrate.Progress) {
			left := time.Duration(0)
			if p.HoursDone > 0 {
				left = p.Elapsed / time.Duration(p.HoursDone) * time.Duration(p.Hours-p.HoursDone)
			}
			fmt.Fprintf(c.ErrOrStderr(), "%s  %d of %d hours, %d samples, about %s left\n",
				p.At.UTC().Format(time.RFC3339), p.HoursDone, p.Hours, p.Samples, left.Round(time.Second))
		}})
	if err != nil {
		return fmt.Errorf("%w (the same command goes on from here)", err)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s is copied to %s: %d hours, %d samples in %s\n", from, to, p.Hours, p.Samples,
		p.Elapsed.Round(time.Millisecond))
	return nil
}
