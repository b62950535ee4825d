package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/tsdb/engine"
)

func newBackup(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store into a new directory, also while the daemon runs",
		Long: "Copies the store into DIR, which must not exist or be empty. The copy has everything that was " +
			"acknowledged\n" +
			"before the command; to use it, make it the directory \"store\" of a state_dir.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			conf, _, err := loadConfig(*path)
			if err != nil {
				return err
			}
			if conf.Store.Kind != storeEmbedded {
				return fmt.Errorf("store.kind is %s: the samples are on its server and are backed up there",
					conf.Store.Kind)
			}
			from := filepath.Join(conf.StateDir, "store")
			if err := engine.Backup(c.Context(), from, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is copied to %s\n", from, args[0])
			return nil
		},
	}
}
