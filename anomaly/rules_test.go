package anomaly_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// parsed are the files of a folder and those below it that are no tests, by path.
func parsed(t *testing.T, dir string) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files[path], err = parser.ParseFile(fset, path, nil, parser.ParseComments)
		return err
	}); err != nil || len(files) == 0 {
		t.Fatal(dir, len(files), err)
	}
	return fset, files
}

// TestConditionsHoldNoNumbers: what a detector compares with has a name and a reason; a condition holds no number but 0
// and 1.
func TestConditionsHoldNoNumbers(t *testing.T) {
	for _, dir := range []string{"failslow", "clientslow", "targetslow"} {
		fset, files := parsed(t, dir)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				b, ok := n.(*ast.BinaryExpr)
				if !ok || b.Op.Precedence() != token.LSS.Precedence() {
					return true
				}
				ast.Inspect(b, func(n ast.Node) bool {
					if x, ok := n.(*ast.BasicLit); ok && isNumber(x) && x.Value != "0" && x.Value != "1" {
						t.Errorf("%s: a condition with %s", fset.Position(x.Pos()), x.Value)
					}
					return true
				})
				return true
			})
		}
	}
}

func isNumber(x *ast.BasicLit) bool { return x.Kind == token.INT || x.Kind == token.FLOAT }

// TestThresholdsHaveReasons: each constant of a detector's rules, and each field of them, says what it is for.
func TestThresholdsHaveReasons(t *testing.T) {
	count := 0
	for _, dir := range []string{"failslow", "clientslow", "targetslow"} {
		fset, files := parsed(t, dir)
		ast.Inspect(files[filepath.Join(dir, "rules.go")], func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ValueSpec:
				if count++; x.Doc == nil || !strings.HasPrefix(x.Doc.Text(), x.Names[0].Name) {
					t.Errorf("%s: %s has no reason", fset.Position(x.Pos()), x.Names[0].Name)
				}
			case *ast.StructType:
				count += len(x.Fields.List)
			}
			return true
		})
	}
	if count < 50 {
		t.Errorf("of %d rules only: they were not found", count)
	}
}

// TestNoMutableVariables: detectors share nothing that one of them, or a test, may change: no init, and no assignment
// to a package's variable.
func TestNoMutableVariables(t *testing.T) {
	fset, files := parsed(t, ".")
	variables := map[string]bool{}
	for path, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: init", fset.Position(d.Pos()))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						for _, name := range v.Names {
							variables[filepath.Dir(path)+"."+name.Name] = true
						}
					}
				}
			}
		}
	}
	for path, f := range files {
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			local := namesIn(function)
			changes := func(e ast.Expr) {
				if x, ok := e.(*ast.IndexExpr); ok {
					e = x.X
				}
				x, ok := e.(*ast.Ident)
				if ok && variables[filepath.Dir(path)+"."+x.Name] && !local[x.Name] {
					t.Errorf("%s: %s of the package is changed", fset.Position(x.Pos()), x.Name)
				}
			}
			ast.Inspect(function, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.AssignStmt:
					for _, e := range x.Lhs {
						changes(e)
					}
				case *ast.IncDecStmt:
					changes(x.X)
				case *ast.UnaryExpr:
					if x.Op == token.AND {
						changes(x.X)
					}
				}
				return true
			})
		}
	}
}

// namesIn are those that a function declares for itself.
func namesIn(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(all ...ast.Expr) {
		for _, e := range all {
			if x, ok := e.(*ast.Ident); ok {
				names[x.Name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				add(x.Lhs...)
			}
		case *ast.RangeStmt:
			add(x.Key, x.Value)
		case *ast.Field:
			for _, name := range x.Names {
				add(name)
			}
		case *ast.ValueSpec:
			for _, name := range x.Names {
				add(name)
			}
		}
		return true
	})
	return names
}
