package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.json {
				return printJSON(c.OutOrStdout(), map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "fairway %s (%s)\n", version, runtime.Version())
			return err
		},
	}
}
