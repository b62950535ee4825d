package main

import (
	"testing"

	"fairway/cmd/lab/conform/manual"
)

const always = "answers in JSON always"

// withoutJSON are the commands without --json, and why.
var withoutJSON = map[string]string{
	"fairway-mount": "gives its help", "fairway-mount mount": "runs the mount",
	"fairway-mount remap": always, "fairway-mount force": always, "fairway-mount status": always,
}

func TestManual(t *testing.T) {
	manual.Write(t, newRoot(), "8")
	manual.Completions(t, newRoot)
	manual.Runs(t, newRoot)
	manual.JSON(t, newRoot(), withoutJSON)
}
