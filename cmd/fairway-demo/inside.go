package main

import (
	"github.com/spf13/cobra"

	"fairway/cmd/lab/knfs"
)

// newInside is what runs in the guests of a site of kernel NFS.
func newInside() *cobra.Command {
	return &cobra.Command{Use: "inside", Short: "What runs in a guest", Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error { return knfs.Inside(c.Context(), args) }}
}
