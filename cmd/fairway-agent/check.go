package main

import (
	"cmp"
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
	return printJSON(w, f)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(program.Raw(w))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func newCheck(path *string, privileges drop) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Read every source twice, dial the daemon, and say what works",
		Args:  cobra.NoArgs,
		RunE: settings.With(path, func(c *cobra.Command, _ []string, conf *Config) error {
			if err := privileges(conf, program.Log(c.ErrOrStderr(), conf.LogLevel)); err != nil {
				return err // what works with more power than the agent's would not be true
			}
			found, err := check(c.Context(), *conf)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), found)
			} else {
				err = found.print(c.OutOrStdout())
			}
			return errors.Join(err, found.failed())
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	return c
}

// checked is what the agent's sources and its daemons answered.
type checked struct {
	Sources []sourceCheck `json:"sources"`
	Daemons []daemonCheck `json:"daemons"`
	Metrics []string      `json:"metrics"`
	// Orders is why no order is carried out although they are enabled.
	Orders string `json:"orders,omitempty"`
}

type sourceCheck struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Failed  bool    `json:"failed"`
	// Text is why it failed, or why it has nothing to report.
	Text string `json:"text,omitempty"`
}

type daemonCheck struct {
	URL     string  `json:"url,omitempty"` // empty: the stream to any of them could not be made ready
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// check asks each source twice and each daemon once.
func check(ctx context.Context, c Config) (*checked, error) {
	quiet := slog.New(slog.DiscardHandler)
	f, err := secondFrame(ctx, c, quiet)
	if err != nil {
		return nil, err
	}
	found := &checked{Sources: []sourceCheck{}, Metrics: []string{}, Orders: c.Orders.allowsNone()}
	for _, s := range f.Sources {
		found.Sources = append(found.Sources, sourceCheck{s.Name, s.Duration.Seconds(), s.Failures > 0, s.Err})
	}
	for _, s := range f.Samples {
		found.Metrics = append(found.Metrics, s.Metric.String())
	}
	clients, spool, err := newClients(ctx, c, quiet)
	if err != nil {
		found.Daemons = []daemonCheck{{Error: program.Wording(err)}}
		return found, nil
	}
	defer spool.Close()
	for _, one := range clients {
		d := daemonCheck{URL: one.URL}
		begun := time.Now()
		if err := one.Probe(ctx); err != nil {
			d.Error = program.Wording(err)
		}
		d.Seconds = time.Since(begun).Seconds()
		found.Daemons = append(found.Daemons, d)
	}
	return found, nil
}

// failed names what does not work.
func (k *checked) failed() error {
	var names []string
	for _, s := range k.Sources {
		if s.Failed {
			names = append(names, s.Name)
		}
	}
	if slices.ContainsFunc(k.Daemons, func(d daemonCheck) bool { return d.Error != "" }) {
		names = append(names, "daemon")
	}
	if k.Orders != "" {
		names = append(names, "orders")
	}
	if len(names) > 0 {
		return fmt.Errorf("%s failed", strings.Join(names, ", "))
	}
	return nil
}

// print writes a line for each source and each daemon.
func (k *checked) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what string, seconds float64, failed bool, text string) {
		took := time.Duration(seconds * float64(time.Second)).Round(10 * time.Microsecond)
		if failed {
			text = "FAILED: " + text
		}
		fmt.Fprintf(t, "%s\t%v\t%s\n", what, took, cmp.Or(text, "ok"))
	}
	for _, s := range k.Sources {
		line("source "+s.Name, s.Seconds, s.Failed, s.Text)
	}
	for _, d := range k.Daemons {
		what := "daemon " + d.URL
		if d.URL == "" {
			what = "stream"
		}
		line(what, d.Seconds, d.Error != "", d.Error)
	}
	if k.Orders != "" {
		fmt.Fprintf(t, "orders\t\tFAILED: %s\n", k.Orders)
	}
	fmt.Fprintf(t, "metrics\t%d\t%s\n", len(k.Metrics), strings.Join(k.Metrics, " "))
	return t.Flush()
}
