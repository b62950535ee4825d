package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector"
)

// errNoFrame says that the runner ended early.
var errNoFrame = errors.New("no frame was made before the end")

// secondFrame runs the sources for two ticks, because rates need two, and returns the second frame
// as JSON would: the runner's own is reused.
func secondFrame(ctx context.Context, c Config, log *slog.Logger) (f collector.Frame, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newRunner(c, log)
	n := 0
	r.Emit = func(got *collector.Frame) {
		if n++; n == 2 {
			f = *got
			f.Samples, f.Jobs = slices.Clone(got.Samples), slices.Clone(got.Jobs)
			f.Routes, f.Sources = slices.Clone(got.Routes), slices.Clone(got.Sources)
			f.Targets = slices.Clone(got.Targets)
			cancel()
		}
	}
	if err := r.Run(ctx); err != nil {
		return f, err
	}
	if n < 2 {
		return f, errNoFrame
	}
	return f, nil
}

func printOnce(ctx context.Context, c Config, log *slog.Logger, w io.Writer) error {
	f, err := secondFrame(ctx, c, log)
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

func newCheck(path *string, privileges drop) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Read every source twice, dial the daemon, and say what works",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			log, err := program.Log(c.ErrOrStderr(), conf.LogLevel)
			if err != nil {
				return err
			}
			if err := privileges(&conf, log); err != nil {
				return err // what works with more power than the agent's would not be true
			}
			return check(c.Context(), conf, c.OutOrStdout())
		},
	}
}

// check prints a line for each source and one for the daemon; it fails when one of them does.
func check(ctx context.Context, c Config, w io.Writer) error {
	quiet := slog.New(slog.DiscardHandler)
	f, err := secondFrame(ctx, c, quiet)
	if err != nil {
		return err
	}
	var failed []string
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range f.Sources {
		state := "ok"
		switch {
		case s.Failures > 0:
			state = "FAILED: " + s.Err
			failed = append(failed, s.Name)
		case s.Err != "":
			state = s.Err
		}
		fmt.Fprintf(t, "source %s\t%v\t%s\n", s.Name, s.Duration.Round(10*time.Microsecond), state)
	}
	clients, spool, err := newClients(ctx, c, quiet)
	if err == nil {
		defer spool.Close()
		for _, one := range clients {
			begun := time.Now()
			perr := one.Probe(ctx)
			fmt.Fprintf(t, "daemon %s\t%v\t%s\n", one.URL, time.Since(begun).Round(10*time.Microsecond), outcome(perr))
			err = errors.Join(err, perr)
		}
	} else {
		fmt.Fprintf(t, "stream\t\t%s\n", outcome(err))
	}
	if err != nil {
		failed = append(failed, "daemon")
	}
	names := make([]string, len(f.Samples))
	for i, s := range f.Samples {
		names[i] = s.Metric.String()
	}
	fmt.Fprintf(t, "metrics\t%d\t%s\n", len(names), strings.Join(names, " "))
	if err := t.Flush(); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s failed", strings.Join(failed, ", "))
	}
	return nil
}

func outcome(err error) string {
	if err != nil {
		return "FAILED: " + err.Error()
	}
	return "ok"
}
