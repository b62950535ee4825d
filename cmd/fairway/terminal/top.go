package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/console"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newTop(o *cli.Options) *cobra.Command {
	demo := ""
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the console (also what fairway does without a command)",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return open(o, c, screen.Address{Page: "overview"}, false, demo)
		},
	}
	c.Flags().StringVar(&demo, "demo", "", "where the browser of the demo is, whose end this console's is")
	c.Flags().Lookup("demo").Hidden = true
	return c
}

func newTour(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "tour",
		Short: "Show the console with a guide: six steps from \"something is slow\" to \"it helped\"",
		Long: "Show the console with a guide: six steps from \"something is slow\" to \"it helped\", the next key " +
			"named " +
			"on each screen. It changes nothing by itself. Best seen beside a demo (make demo, or make demo SIM=1).",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return open(o, c, screen.Address{Page: "overview"}, true, "")
		},
	}
}

func newOpen(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:     "open ADDRESS",
		Short:   "Show the console on a copied address",
		Example: "  fairway open /forwarders/fwd113\n  fairway open 'https://fairway.site/overview?metric=queue'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := screen.ParseAddress(args[0])
			if err != nil {
				return err
			}
			return show(o, c, a)
		},
	}
}

func newReplay(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:     "replay [TIME | AGE]",
		Short:   "Show the console on a second of the past, a minute ago without one",
		Example: "  fairway replay 2026-11-21T11:42:00Z\n  fairway replay 20m",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := pastMoment(args, time.Now())
			if err != nil {
				return program.BadUsage(err)
			}
			return show(o, c, screen.Address{Page: "overview", At: at.UTC().Format(time.RFC3339)})
		},
	}
}

// pastMoment reads a time, or how long before now it was.
func pastMoment(args []string, now time.Time) (time.Time, error) {
	if len(args) == 0 {
		return now.Add(-time.Minute), nil
	}
	at, err := time.Parse(time.RFC3339, args[0])
	if err != nil {
		age, bad := time.ParseDuration(args[0])
		if bad != nil {
			return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-11-21T11:42:00Z nor an age such as 20m",
				args[0])
		}
		at = now.Add(-age)
	}
	if at.After(now) {
		return time.Time{}, fmt.Errorf("%s is not past", args[0])
	}
	return at, nil
}

// show runs the console on the terminal; with --json it prints the overview instead.
func show(o *cli.Options, c *cobra.Command, a screen.Address) error { return open(o, c, a, false, "") }

func open(o *cli.Options, c *cobra.Command, a screen.Address, guided bool, demo string) error {
	if o.JSON {
		return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.Overview, error) {
			if at, err := time.Parse(time.RFC3339, a.At); err == nil {
				return cl.OverviewAt(ctx, at)
			}
			return cl.Overview(ctx)
		}, nil)
	}
	cl, err := o.Connect()
	if err != nil {
		return err
	}
	defer cl.Close()
	if !program.IsTerminal(os.Stdout) {
		return program.BadUsage(errors.New(
			"the console needs a terminal; use --json, or a command such as 'fairway nodes'"))
	}
	keys, _, err := readKeys()
	if err != nil {
		return err
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1) // a screen a second is a few milliseconds of work, which threads would only hand around
	}
	return console.Run(c.Context(), cl, a, chart.ColorsOf(os.Getenv), keys, guided, demo)
}
