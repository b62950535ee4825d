package cmd

import (
	"go/ast"
	"os"
	"strings"
	"testing"
)

// TestDesignNamesEveryPackage: docs/design.md has a line for each package of the tree and for no other.
func TestDesignNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		first, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if name := strings.Trim(first, "*"); found && strings.HasPrefix(line, "| ") && roomOf(name) >= 0 {
			named[name] = true
		}
	}
	packages := map[string]bool{}
	goFiles(t, func(dir, file string, _ int, _ *ast.File) { packages[dir] = true })
	for dir := range packages {
		if !named[dir] && dir != "cmd" {
			t.Errorf("docs/design.md does not name the package %s", dir)
		}
	}
	for name := range named {
		if !packages[name] && name != "webui/static" {
			t.Errorf("docs/design.md names %s, which is not a package", name)
		}
	}
}
