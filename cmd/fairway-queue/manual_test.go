package main

import (
	"testing"

	"fairway/cmd/lab/conform/manual"
)

// withoutJSON are the commands without --json, and why.
var withoutJSON = map[string]string{
	"fairway-queue": "gives its help", "fairway-queue serve": "runs the queue",
	"fairway-queue share": "changes something", "fairway-queue status": "answers in JSON always",
}

func TestManual(t *testing.T) {
	manual.Write(t, newRoot(), "8")
	manual.Completions(t, newRoot)
	manual.Runs(t, newRoot)
	manual.JSON(t, newRoot(), withoutJSON)
}
