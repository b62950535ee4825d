package cmd

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// limited are the rooms that keep every limit of this file; a room is added when it does.
var limited = []string{"remap", "cmd/fairway-queue", "cmd/fairway-mount"}

func isLimited(dir string) bool {
	return slices.ContainsFunc(limited, func(room string) bool { return within(dir, room) })
}

const (
	lineColumns = 120 // a tab is four
	roomLines   = 500
	typeMethods = 25
	typeFields  = 15
)

// manyFields are the types that may have more fields than typeFields, and why.
var manyFields = map[string]string{
	"remap.Plan":     "one JSON object of the API and the journal: its fields are its format",
	"journal.Record": "one line of the journal: its fields are its format",
}

// manyMethods are the types that may have more methods than typeMethods, and why.
var manyMethods = map[string]string{
	"remap/mount.node": "the kernel's operations on a file, a method each, as go-fuse wants them",
}

func TestLinesAndFilesOfLimitedRooms(t *testing.T) {
	seen := 0
	goFiles(t, func(dir, file string, lines int, _ *ast.File) {
		if !isLimited(dir) {
			return
		}
		seen++
		if lines > roomLines && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s has %d lines, more than %d: it is two things", file, lines, roomLines)
		}
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")
			if c := len([]rune(line)); c > lineColumns {
				t.Errorf("%s:%d has %d columns, more than %d", file, n, c, lineColumns)
			}
		}
	})
	if seen == 0 {
		t.Fatal("no file of a limited room was seen")
	}
}

func TestTypesOfLimitedRooms(t *testing.T) {
	methods := map[string]int{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if !isLimited(dir) || strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[dir+"."+receiver(d)]++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					st, ok := ts.Type.(*ast.StructType)
					name := f.Name.Name + "." + ts.Name.Name
					if ok && st.Fields.NumFields() > typeFields && manyFields[name] == "" {
						t.Errorf("%s: %s has %d fields, more than %d: it is two nouns", file, name,
							st.Fields.NumFields(), typeFields)
					}
				}
			}
		}
	})
	if len(methods) == 0 {
		t.Fatal("no method of a limited room was seen")
	}
	for name, n := range methods {
		if n > typeMethods && manyMethods[name] == "" {
			t.Errorf("%s has %d methods, more than %d: it is two nouns", name, n, typeMethods)
		}
	}
}
