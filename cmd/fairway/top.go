package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"fairway/console"
)

func newTop(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Show the console (also what fairway does without a command)",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.show(c, console.Address{Page: "overview"}) },
	}
}

func newOpen(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "open ADDRESS",
		Short:   "Show the console on a copied address",
		Example: "  fairway open /forwarders/fwd113\n  fairway open 'https://fairway.site/overview?metric=queue'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := console.ParseAddress(args[0])
			if err != nil {
				return err
			}
			return o.show(c, a)
		},
	}
}

// show runs the console on the terminal; with --json it prints the overview instead.
func (o *options) show(c *cobra.Command, a console.Address) error {
	cl, err := o.connect()
	if err != nil {
		return err
	}
	defer cl.Close()
	if o.json {
		v, err := cl.Overview(c.Context())
		if err != nil {
			return err
		}
		return printJSON(c.OutOrStdout(), v)
	}
	if fi, err := os.Stdout.Stat(); err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		return usageError{errors.New("the console needs a terminal; use --json, or a command such as 'fairway nodes'")}
	}
	return console.Run(c.Context(), cl, a, console.ColorsOf(os.Getenv))
}
