package cmd

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbidden are the words that the glossary replaces, with what is said instead.
var forbidden = []struct{ words, instead string }{
	{`tells?|told|heard|said`, "reports, reported, last seen"},
	{`is none|is no [a-z]+|what is no[t ]? ?known`, "no X, not known, unknown, missing, not a X"},
	{`must be said`, "is required"},
	{`stands? there twice`, "is listed twice"},
	{`calls nobody|nobody says`, "does not alert"},
	{`middle`, "median"},
	{`capital`, "wealth"},
	{`withh(old|olds|eld|olding)`, "drain, exclude"},
	{`doors?`, "listener"},
	{`the how manieth`, "the Nth"},
}

// allowed are the places where such a word is the right one.
var allowed = regexp.MustCompile(`(?i)capital letters?|lower or capital|CAPITAL|` +
	`(in|from|into) the middle|'middle'|\bs\.Heard|\bHeard( +map|:)`)

// lines calls visit with every line of the Go, JavaScript and Markdown files of the tree.
func lines(t *testing.T, visit func(file string, n int, line string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" ||
			name == "uplot") {
			return filepath.SkipDir
		}
		switch filepath.Ext(name) {
		case ".go", ".js", ".md":
		default:
			return nil
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		file := filepath.ToSlash(strings.TrimPrefix(p, ".."+string(filepath.Separator)))
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for n := 1; s.Scan(); n++ {
			visit(file, n, s.Text())
		}
		return s.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWordsOfTheGlossary(t *testing.T) {
	expression := func(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + words + `)\b`) }
	var all []string
	rules := map[string]*regexp.Regexp{}
	for _, f := range forbidden {
		all = append(all, f.words)
		rules[f.instead] = expression(f.words)
	}
	anyOf := expression(strings.Join(all, "|")) // most lines have none of them
	seen := 0
	lines(t, func(file string, n int, line string) {
		seen++
		if file == "cmd/words_test.go" || file == "CHANGELOG.md" || !anyOf.MatchString(line) {
			return
		}
		line = allowed.ReplaceAllString(line, "")
		for instead, words := range rules {
			for _, word := range words.FindAllString(line, -1) {
				t.Errorf("%s:%d: %s (say: %s)", file, n, word, instead)
			}
		}
	})
	if seen == 0 {
		t.Fatal("no line was read: the test looks at the wrong tree")
	}
}

// namedFile is a file of the tree as comments and pages name it.
var namedFile = regexp.MustCompile(`\b(?:[a-z0-9_-]+/)+[a-z0-9_]+\.(?:go|js)\b`)

// TestFilesThatAreNamedAreThere: who follows a comment or a page to a file finds it, also after files have moved.
func TestFilesThatAreNamedAreThere(t *testing.T) {
	var all []string
	named := map[string]string{} // file: where
	lines(t, func(file string, n int, line string) {
		if n == 1 {
			all = append(all, "/"+file)
		}
		if strings.HasSuffix(file, "_test.go") {
			return // they make files up
		}
		for _, name := range namedFile.FindAllString(line, -1) {
			named[name] = fmt.Sprintf("%s:%d", file, n)
		}
	})
	for name, where := range named {
		if !slices.ContainsFunc(all, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
			t.Errorf("%s: there is no %s", where, name)
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d files are named", len(named))
	}
}

// columns is the widest that a line may be; a tab counts four.
const columns = 120

func TestLinesFitTheScreen(t *testing.T) {
	lines(t, func(file string, n int, line string) {
		if filepath.Ext(file) == ".md" {
			return // tables
		}
		if w := len([]rune(line)) + 3*strings.Count(line, "\t"); w > columns {
			t.Errorf("%s:%d has %d columns, more than %d", file, n, w, columns)
		}
	})
}
