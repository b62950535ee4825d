package main

import (
	"os"

	"github.com/spf13/cobra"
)

func newConfig(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, every setting explained",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, meta, err := loadConfig(*path)
			if err != nil {
				return err
			}
			file := *path
			if file == "" {
				file = defaultPath
			}
			text, _ := os.ReadFile(file) // only for line numbers
			return printConfig(c.OutOrStdout(), &conf, text, meta)
		},
	}
}
