package main

import (
	"testing"

	"fairway/cmd/lab/conform/manual"
)

func TestManual(t *testing.T) {
	manual.Write(t, newRoot(), "1")
	manual.Completions(t, newRoot)
	manual.Runs(t, newRoot)
}
