// Package manual writes the man pages of fairway's programs from their commands. Only tests use it, so
// that no program carries the generator.
package manual

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"fairway/cmd/program"
)

// Env names the directory that the pages are written to when a program's tests run; without it they
// are written to a temporary one and checked.
const Env = "FAIRWAY_MAN"

// Write writes a page for a program and each of its commands, and checks that every command says in
// one line what it does, starts it with a capital letter, and does not end it with a full stop.
func Write(t *testing.T, root *cobra.Command, section string) {
	t.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	check(t, root)
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: section, Source: "fairway", Manual: "fairway"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, root.Name()+"."+section)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".SH NAME", ".SH OPTIONS", root.Name()} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q", page, want)
		}
	}
}

func check(t *testing.T, c *cobra.Command) {
	t.Helper()
	name := c.CommandPath()
	switch {
	case c.Short == "":
		t.Errorf("%s does not say what it does", name)
	case strings.HasSuffix(c.Short, "."), c.Short[:1] != strings.ToUpper(c.Short[:1]):
		t.Errorf("%s: %q: want a capital letter at the start and no full stop at the end", name, c.Short)
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "completion" && sub.Name() != "help" {
			check(t, sub)
		}
	}
}

// Completions checks that a program writes a completion script for each shell.
func Completions(t *testing.T, newRoot func() *cobra.Command) {
	t.Helper()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out strings.Builder
		root := newRoot()
		root.SetOut(&out)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), root.Name()) {
			t.Error(fmt.Errorf("%s completion %s: %w: %.80q", root.Name(), shell, err, out.String()))
		}
	}
}

// Call runs a command line and returns what it printed, what it complained of, and why it failed.
func Call(t *testing.T, root *cobra.Command, stdin string, args ...string) (out, errs string, err error) {
	t.Helper()
	var printed, complained strings.Builder
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&printed)
	root.SetErr(&complained)
	err = program.Run(t.Context(), root, args)
	return printed.String(), complained.String(), err
}

// JSON checks that every command that prints a table or a state can do so as JSON: it has a flag --json, or the table
// says why not. Commands without an act of their own, help and completion aside.
func JSON(t *testing.T, root *cobra.Command, without map[string]string) {
	t.Helper()
	left := maps.Clone(without)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "completion" && sub.Name() != "help" {
				walk(sub)
			}
		}
		path := c.CommandPath()
		why := left[path]
		delete(left, path)
		has := c.Flag("json") != nil
		switch {
		case has && why != "":
			t.Errorf("%s has --json, and the table says %q", path, why)
		case !has && why == "" && c.Runnable():
			t.Errorf("%s has no --json, and no reason why not", path)
		}
	}
	walk(root)
	for path := range left {
		t.Errorf("%s is in the table and no command", path)
	}
}
