package main

import (
	"testing"

	"fairway/cmd/manual"
)

func TestManual(t *testing.T) {
	manual.Write(t, newRoot(), "8")
	manual.Completions(t, newRoot)
}
