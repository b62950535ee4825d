package cmd

import (
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fairway/cmd/lab/conform/manual"
)

// page is a document of the repository.
type page struct{ name, text string }

func pages(t *testing.T) (all []page) {
	t.Helper()
	names, err := filepath.Glob("../docs/*.md")
	if err != nil || len(names) < 20 {
		t.Fatalf("pages are %q: %v", names, err)
	}
	for _, name := range append(names, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{strings.TrimPrefix(name, "../"), string(text)})
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unlinked is what GitHub leaves out of a heading's address.
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the addresses of a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinksLeadSomewhere: every link of a page leads to a file of the repository, and to a heading that is there.
func TestLinksLeadSomewhere(t *testing.T) {
	seen := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			seen++
			target := path.Join(path.Dir(p.name), file)
			if file == "" {
				target = p.name
			}
			text, err := os.ReadFile("../" + target)
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
			} else if anchor != "" && !anchors(string(text))[anchor] {
				t.Errorf("%s: %s has no heading %s", p.name, target, anchor)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}

// TestReadmeLeadsToEveryPage: the map by role names each page.
func TestReadmeLeadsToEveryPage(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		if p.name != "README.md" && !strings.Contains(string(readme), "]("+p.name+")") &&
			!strings.Contains(string(readme), "]("+p.name+"#") {
			t.Errorf("README.md does not lead to %s", p.name)
		}
	}
}

// functions are the tests and benchmarks of each package.
func functions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		all[dir] = append(all[dir], "") // a package without tests is one, too
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasSuffix(file, "_test.go") {
				all[dir] = append(all[dir], fn.Name.Name)
			}
		}
	})
	return all
}

// chosen returns what a flag of go test chooses, by its first level.
func chosen(words []string, flag string) *regexp.Regexp {
	for i, w := range words[:len(words)-1] {
		if w == flag {
			first, _, _ := strings.Cut(strings.ReplaceAll(words[i+1], `\|`, "|"), "/")
			if re, err := regexp.Compile(first); err == nil {
				return re
			}
		}
	}
	return nil
}

// TestGoCommandsOfThePages: each go test that a page or the Makefile names has its packages, and in them a test and a
// benchmark that it chooses.
func TestGoCommandsOfThePages(t *testing.T) {
	all, seen := functions(t), 0
	for _, n := range manual.Pages(t, "..", "go") {
		if len(n.Words) < 2 || n.Words[1] != "test" {
			continue
		}
		run, bench := chosen(n.Words, "-run"), chosen(n.Words, "-bench")
		tests, benchmarks, packages := false, false, 0
		for _, w := range n.Words[2:] {
			if !strings.HasPrefix(w, "./") {
				continue
			}
			packages++
			below := strings.TrimSuffix(strings.TrimPrefix(w, "./"), "/...")
			found := false
			for dir, names := range all {
				if dir != below && !(strings.HasSuffix(w, "/...") && within(dir, below)) {
					continue
				}
				found = true
				for _, name := range names {
					tests = tests || run != nil && strings.HasPrefix(name, "Test") && run.MatchString(name)
					benchmarks = benchmarks || bench != nil && strings.HasPrefix(name, "Benchmark") &&
						bench.MatchString(name)
				}
			}
			if !found {
				t.Errorf("%s: %q: no package %s", n.Page, n.Words, w)
			}
		}
		if packages == 0 {
			continue
		}
		seen++
		if run != nil && !tests && bench == nil {
			t.Errorf("%s: %q: no test is called %s", n.Page, n.Words, run)
		}
		if bench != nil && !benchmarks {
			t.Errorf("%s: %q: no benchmark is called %s", n.Page, n.Words, bench)
		}
	}
	if seen < 30 {
		t.Errorf("only %d commands of go were found", seen)
	}
}

// TestMakeCommandsOfThePages: each target and variable that a page gives to make is in the Makefile.
func TestMakeCommandsOfThePages(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, n := range manual.Pages(t, "..", "make") {
		for _, w := range n.Words[1:] {
			if n.Page == "Makefile" || strings.HasPrefix(w, "-") {
				continue
			}
			seen++
			name, _, variable := strings.Cut(w, "=")
			is := `(?m)^(\w+ )*` + regexp.QuoteMeta(name) + `( \w+)*:`
			if variable {
				is = `\$\([^()]*\b` + regexp.QuoteMeta(name) + `\b`
			}
			if !regexp.MustCompile(is).Match(makefile) {
				t.Errorf("%s: %q: the Makefile has no %s", n.Page, n.Words, name)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d words of make were found", seen)
	}
}

// TestVariablesOfThePages: each variable of the environment that a page names is read somewhere.
func TestVariablesOfThePages(t *testing.T) {
	named := regexp.MustCompile(`\bFAIRWAY_[A-Z_]*[A-Z]\b`)
	out, err := exec.Command("git", "-C", "..", "grep", "-ohE", `FAIRWAY_[A-Z_]*[A-Z]`, "--", "*.go", "Makefile", ".ci",
		"packaging").Output()
	if err != nil {
		t.Skipf("skipped: not a git checkout: %v", err)
	}
	read := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		read[name] = true
	}
	for _, p := range pages(t) {
		for _, name := range named.FindAllString(p.text, -1) {
			if !read[name] {
				t.Errorf("%s: no program reads %s", p.name, name)
			}
		}
	}
}

// TestSettingsOfThePages: each setting that a page names by its table is one of a program's.
func TestSettingsOfThePages(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "grep", "-ohE", `toml:"[a-z0-9_]+`, "--", "*.go").Output()
	if err != nil {
		t.Skipf("skipped: not a git checkout: %v", err)
	}
	known := map[string]bool{}
	for _, tag := range strings.Fields(string(out)) {
		known[strings.TrimPrefix(tag, `toml:"`)] = true
	}
	tables := "access|alert|archive|cluster|daemon|desk|detector|dispatch|driver|feed|findings|keep|limits|" +
		"listen|orders|probe|queue|routes|slurm|spool|store|tbf"
	named := regexp.MustCompile("`(?:" + tables + `)((?:\.[a-z0-9_]+)+)[` + "` ]")
	seen := 0
	for _, p := range pages(t) {
		if p.name == "CHANGELOG.md" {
			continue // what went is named there
		}
		for _, m := range named.FindAllStringSubmatch(p.text, -1) {
			if seen++; m[1] == ".conf" {
				continue // Slurm's own file
			}
			for key := range strings.SplitSeq(m[1][1:], ".") {
				if !known[key] {
					t.Errorf("%s: %s: no program has a setting %s", p.name, m[0], key)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d settings were found", seen)
	}
}

// TestEndpointsOfThePages: each address of the API that a page names is in docs/access.md, which the server's own table
// is compared with, and each counter is made somewhere.
func TestEndpointsOfThePages(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "grep", "-ohE", `fairway_[a-z_]+`, "--", "*.go", ":!*_test.go").Output()
	if err != nil {
		t.Skipf("skipped: not a git checkout: %v", err)
	}
	made := string(out)
	all, seen := pages(t), 0
	var known []string
	variable := regexp.MustCompile(`\\{.*?\\}`)
	for _, p := range all {
		if p.name == "docs/access.md" {
			for _, m := range regexp.MustCompile(`(?m)^[A-Z]+ +(/api/\S+)`).FindAllStringSubmatch(p.text, -1) {
				known = append(known, variable.ReplaceAllString(regexp.QuoteMeta(m[1]), `[^/]+`))
			}
		}
	}
	is := regexp.MustCompile("^(" + strings.Join(known, "|") + ")$")
	named := regexp.MustCompile("(?m)(?:^|[ `])(/api/v[12]/[A-Za-z0-9/_{}.-]*[A-Za-z0-9}])")
	counter := regexp.MustCompile(`\bfairway_[a-z_]*[a-z]`)
	for _, p := range all {
		if p.name == "CHANGELOG.md" {
			continue // what went is named there
		}
		for _, m := range named.FindAllStringSubmatch(p.text, -1) {
			if seen++; !is.MatchString(m[1]) {
				t.Errorf("%s: the API has no %s", p.name, m[1])
			}
		}
		for _, name := range counter.FindAllString(p.text, -1) {
			if seen++; !strings.Contains(made, name) {
				t.Errorf("%s: nothing counts %s", p.name, name)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d addresses and counters were found", seen)
	}
}

// TestDriversOfThePages: docs/drivers.md has the kinds of driver that the setting's help has, and no other.
func TestDriversOfThePages(t *testing.T) {
	settings, err := os.ReadFile("../docs/fairwayd.toml")
	if err != nil {
		t.Fatal(err)
	}
	help := regexp.MustCompile(`# How compute nodes are moved: .*`).FindString(string(settings))
	page, err := os.ReadFile("../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| `driver.kind` |")
	table, _, _ = strings.Cut(table, "\n\n")
	kinds := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1)
	for _, k := range kinds {
		if !regexp.MustCompile(`\b` + k[1] + `\b`).MatchString(help) {
			t.Errorf("docs/drivers.md has the driver %s, the setting %q", k[1], help)
		}
	}
	if named := len(regexp.MustCompile(`none|agents|exec|ces`).FindAllString(help, -1)); len(kinds) != named {
		t.Errorf("docs/drivers.md has %d kinds of driver, the setting %d: %q", len(kinds), named, help)
	}
}
