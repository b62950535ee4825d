package main

import (
	"testing"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/conform/manual"
)

// withoutJSON are the commands without --json, and why.
var withoutJSON = map[string]string{
	"fairway-agent": "runs the agent", "fairway-agent config": "prints the file of settings",
}

func TestManual(t *testing.T) {
	root := func() *cobra.Command { return newRoot(keepAll) }
	manual.Write(t, root(), "8")
	manual.Completions(t, root)
	manual.Runs(t, root)
	manual.JSON(t, root(), withoutJSON)
}
