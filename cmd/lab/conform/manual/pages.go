package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Named is a command that a page names.
type Named struct {
	Page  string
	Words []string // of the command, the program first
	// Whole is whether the page gives it to be run, in a block; in a sentence it may lack arguments.
	Whole bool
}

var (
	inline   = regexp.MustCompile("`([^`\n]+)`")
	behind   = regexp.MustCompile(`\s{3,}.*|\s#.*|\s?[|;]\s.*|\s[|;<>&\\].*|\s2>.*|\)$`)
	setFirst = regexp.MustCompile(`^(?:[A-Z_]+=\S* )+`)
	assigned = regexp.MustCompile(`\$\([^()]*\)`) // innermost first
	// standIn is a word in place of a value, such as PID.
	standIn = regexp.MustCompile(`^[A-Z]+$`)
	// message is what a page quotes of a program's answer.
	message = "fairwayd does not answer"
)

// Pages returns the commands of a program that README, CONTRIBUTING, docs and the Makefile below root name.
func Pages(t *testing.T, root, program string) (named []Named) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages below %s: %v", root, err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "Makefile"} {
		pages = append(pages, filepath.Join(root, name))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasPrefix(line, "```"):
				fenced = !fenced
			case fenced, strings.HasPrefix(line, "    "), strings.HasPrefix(line, "\t"):
				if words := command(line, program); words != nil {
					named = append(named, Named{filepath.Base(page), words, true})
				}
			default:
				for _, m := range inline.FindAllStringSubmatch(line, -1) {
					if words := command(m[1], program); words != nil {
						named = append(named, Named{filepath.Base(page), words, false})
					}
				}
			}
		}
	}
	return named
}

// command returns the words of a line that starts the program, as far as they are the program's.
func command(line, program string) []string {
	line = strings.TrimLeft(line, " \t@")
	line = setFirst.ReplaceAllString(line, "")
	line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "exec ")
	first, rest, _ := strings.Cut(line, " ")
	if strings.Trim(filepath.Base(first), "()") != program || strings.Contains(first, "=") || line == message {
		return nil
	}
	for assigned.MatchString(rest) {
		rest = assigned.ReplaceAllString(rest, "")
	}
	return append([]string{program}, split(behind.ReplaceAllString(" "+rest, ""))...)
}

// split divides a command line at its blanks as a shell does, without what is optional or left out.
func split(line string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	end := func() {
		if w := strings.Trim(word.String(), "[]"); begun && w != "..." {
			words = append(words, w)
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			end()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	return words
}

// word is one that a program's command could have.
var word = regexp.MustCompile(`^[a-z][a-z-]+$`)

// Runs fails for each command of the program in the pages whose subcommand or flags the program does not have, or
// which it would refuse for its arguments.
func Runs(t *testing.T, newRoot func() *cobra.Command) {
	t.Helper()
	name := newRoot().Name()
	all := Pages(t, filepath.Join("..", ".."), name)
	if len(all) == 0 {
		t.Errorf("no page names a command of %s", name)
	}
	for _, n := range all {
		for _, words := range alternatives(n.Words) {
			root := newRoot()
			root.InitDefaultHelpFlag()
			root.InitDefaultVersionFlag()
			for i, w := range words {
				if standIn.MatchString(w) {
					words[i] = "1"
				}
			}
			c, rest, err := root.Find(words[1:])
			if err != nil {
				t.Errorf("%s: %q: %v", n.Page, words, err)
				continue
			}
			if c.DisableFlagParsing {
				continue
			}
			c.InitDefaultHelpFlag()
			if err := c.ParseFlags(rest); err != nil {
				if n.Whole || !strings.Contains(err.Error(), "needs an argument") {
					t.Errorf("%s: %q: %v", n.Page, words, err)
				}
				continue
			}
			args := c.Flags().Args()
			if c.HasSubCommands() && len(args) > 0 && word.MatchString(args[0]) && !c.HasParent() {
				t.Errorf("%s: %q: %s has no command %s", n.Page, words, c.CommandPath(), args[0])
			}
			if err := c.ValidateArgs(args); err != nil && (n.Whole || len(args) > 0) {
				t.Errorf("%s: %q: %v", n.Page, words, err)
			}
		}
	}
}

// alternatives are the commands that one with a word such as ack|silence stands for.
func alternatives(words []string) [][]string {
	for i, w := range words {
		if strings.Contains(w, "|") && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz-|") == "" {
			var all [][]string
			for one := range strings.SplitSeq(w, "|") {
				all = append(all, append(append(append([]string{}, words[:i]...), one), words[i+1:]...))
			}
			return all
		}
	}
	return [][]string{words}
}
