package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
)

// openInput opens a file named on the command line; "-" is standard input.
func openInput(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	return os.Open(name)
}
