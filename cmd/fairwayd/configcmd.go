package main

import (
	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

func newConfig(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, every setting explained",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, text, err := program.ReadSettings(*path, defaultPath)
			if err != nil {
				return err
			}
			conf, meta, err := parseConfig(file, text)
			if err != nil {
				return err
			}
			def := defaultConfig()
			return program.PrintSettings(c.OutOrStdout(), &conf, &def, text, meta)
		},
	}
}
