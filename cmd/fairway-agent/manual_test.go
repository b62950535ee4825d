package main

import (
	"testing"

	"github.com/spf13/cobra"

	"fairway/cmd/manual"
)

func TestManual(t *testing.T) {
	root := func() *cobra.Command { return newRoot(keepAll) }
	manual.Write(t, root(), "8")
	manual.Completions(t, root)
}
