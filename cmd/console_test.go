package cmd

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// The terminal's packages in layers: each may import those before it, and a screen imports no other screen.
func TestScreensDoNotKnowEachOther(t *testing.T) {
	layer := func(dir string) int {
		switch {
		case dir == "console/chart":
			return 1
		case dir == "console/table":
			return 2
		case dir == "console/screen":
			return 3
		case strings.HasPrefix(dir, "console/screen/"):
			return 4
		case dir == "console":
			return 5
		}
		return 0
	}
	screens := map[string]bool{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if !within(dir, "console") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(path.Base(dir), "test") {
			return
		}
		if layer(dir) == 4 {
			screens[dir] = true
		}
		for _, imp := range f.Imports {
			to, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "fairway/")
			if ours && within(to, "console") && layer(to) >= layer(dir) {
				t.Errorf("%s imports %s: chart and table serve screens, screens serve the console, and a screen opens "+
					"another by its address", file, to)
			}
		}
	})
	if len(screens) < 5 {
		t.Errorf("%d screens were seen: the test looks at the wrong tree", len(screens))
	}
}

// What routes every message stays short enough to be read at once.
func TestTheModelRoutes(t *testing.T) {
	const most, mostMethods, mostFields = 60, 25, 15
	updates, methods := 0, map[string]int{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if !within(dir, "console") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(path.Base(dir), "test") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					break
				}
				methods[dir+"."+receiver(n)]++
				if n.Name.Name == "Update" {
					updates++
					from, to := positions.Position(n.Pos()).Line, positions.Position(n.End()).Line
					if lines := to - from + 1; lines > most {
						t.Errorf("%s: Update has %d lines, more than %d", file, lines, most)
					}
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && s.Fields.NumFields() > mostFields {
					t.Errorf("%s: %s has %d fields, more than %d", file, n.Name.Name, s.Fields.NumFields(), mostFields)
				}
			}
			return true
		})
	})
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods, more than %d", name, n, mostMethods)
		}
	}
	if updates == 0 {
		t.Error("no Update was seen: the test looks at the wrong tree")
	}
}

// receiver is the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
