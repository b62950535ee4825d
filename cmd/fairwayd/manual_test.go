package main

import (
	"testing"

	"fairway/cmd/lab/conform/manual"
)

const (
	changes = "changes something"
	secret  = "prints a secret for a file or a person"
)

// withoutJSON are the commands without --json, and why.
var withoutJSON = map[string]string{
	"fairwayd": "runs the daemon", "fairwayd run": "runs the daemon", "fairwayd view": "runs the daemon",
	"fairwayd backup": changes, "fairwayd restore": changes, "fairwayd migrate": changes, "fairwayd init": changes,
	"fairwayd tokens revoke": changes,
	"fairwayd token":         secret, "fairwayd hash-password": secret, "fairwayd enroll": secret,
	"fairwayd certificate": "writes files",
	"fairwayd config":      "prints the file of settings",
}

func TestManual(t *testing.T) {
	manual.Write(t, newRoot(), "8")
	manual.Completions(t, newRoot)
	manual.Runs(t, newRoot)
	manual.JSON(t, newRoot(), withoutJSON)
}
