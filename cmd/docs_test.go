package cmd

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "write what docs have of the tree anew")

// shortest is the most words of a first sentence that docs/design.md has whole.
const shortest = 12

// job is what a package is for, by the first sentence of its comment: all of a short one, else as far as its colon or
// its first comma.
func job(comment string) string {
	_, text, _ := strings.Cut(strings.ReplaceAll(comment, "\n", " "), " ") // Package, Command
	_, text, _ = strings.Cut(text, " ")
	for _, end := range []string{". ", ": ", " (", "; ", ", "} {
		if first, _, ends := strings.Cut(text, end); ends && (end == ". " || len(strings.Fields(text)) > shortest) {
			text = first
		}
	}
	return strings.TrimSuffix(strings.TrimSpace(text), ".")
}

// packageList is the list of docs/design.md: a line a package in the order of the rooms, one for the laboratory.
func packageList(t *testing.T) string {
	t.Helper()
	jobs := map[string]string{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if text := f.Doc.Text(); strings.HasPrefix(text, "Package ") || strings.HasPrefix(text, "Command ") {
			jobs[dir] = job(text)
		} else if _, known := jobs[dir]; !known {
			jobs[dir] = ""
		}
	})
	var b, lab strings.Builder
	for i, room := range rooms {
		for _, dir := range slices.Sorted(maps.Keys(jobs)) {
			switch {
			case roomOf(dir) != i:
			case jobs[dir] == "":
				t.Errorf("%s: no file has a comment that begins with Package and says what it is for", dir)
			case within(dir, "cmd/lab"):
				fmt.Fprintf(&lab, " `%s`", strings.TrimPrefix(dir, "cmd/lab/"))
			case dir == room.name && room.name != "cmd":
				fmt.Fprintf(&b, "\n**%s** %s\n\n", dir, jobs[dir])
			case dir == room.name:
				fmt.Fprintf(&b, "\n**%s**\n\n", dir)
			default:
				fmt.Fprintf(&b, "- `%s` %s\n", dir, jobs[dir])
			}
		}
	}
	fmt.Fprintf(&b, "- `cmd/lab` is the laboratory:%s\n", lab.String())
	return b.String()
}

// TestDesignNamesEveryPackage: docs/design.md has the packages of the tree, each with what its comment says.
func TestDesignNamesEveryPackage(t *testing.T) {
	const begin, end = "<!-- written by go test ./cmd -run Design -update -->\n", "\n<!-- end -->\n"
	const name = "../docs/design.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s: no list between %q and %q", name, begin, end)
	}
	want := head + begin + packageList(t) + end + tail
	if *updateDocs {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s does not list the packages as their comments have them: go test ./cmd -run Design -update", name)
	}
}

// TestDocumentsStayShort: who reads at night reads all of a page; what is new takes the place of something else.
func TestDocumentsStayShort(t *testing.T) {
	const most, mostOfReadme = 45_000, 700
	out, err := exec.Command("git", "-C", "..", "ls-files", "*.md").Output()
	if err != nil {
		t.Skipf("skipped: not a git checkout: %v", err)
	}
	words := 0
	for _, name := range strings.Fields(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		n := len(strings.Fields(string(text)))
		if words += n; name == "README.md" && n > mostOfReadme {
			t.Errorf("README.md has %d words, more than %d", n, mostOfReadme)
		}
	}
	if words > most || words < most/10 {
		t.Errorf("the documents have %d words, more than %d or hardly any", words, most)
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
