package main

import (
	"testing"

	"fairway/cmd/lab/conform/manual"
)

func TestCommandsOfThePages(t *testing.T) { manual.Runs(t, newRoot) }
