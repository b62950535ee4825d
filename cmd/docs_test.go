package cmd

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
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

// TestSecurityNamesItsTests: every test that docs/security.md names as a proof exists, in the package that it says.
func TestSecurityNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, named := "", 0
	for _, word := range regexp.MustCompile("`[a-z-]+(?:/[a-z-]+)*`|\\bTest[A-Z]\\w+").FindAllString(string(text), -1) {
		if strings.HasPrefix(word, "`") {
			dir = strings.Trim(word, "`")
			continue
		}
		named++
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		found := false
		for _, f := range files {
			b, err := os.ReadFile(f)
			found = found || err == nil && strings.Contains(string(b), "func "+word+"(")
		}
		if err != nil || !found {
			t.Errorf("docs/security.md: %s has no %s", dir, word)
		}
	}
	if named < 20 {
		t.Errorf("docs/security.md names %d tests", named)
	}
}
