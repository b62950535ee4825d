package anomaly_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
)

var judging = map[string][]failslow.Rule{
	"failslow": failslow.Rules(), "clientslow": clientslow.Rules(),
}

// structure are the constants that a condition may hold: sizes of tables, places in them, the clock of the blocks and
// the least values of settings; no thresholds.
var structure = map[string]bool{"classes": true, "own": true, "least": true, "absoluteToSigma": true,
	"blockSeconds": true, "longSeconds": true, "metaSeconds": true, "blockPoints": true,
	"levels": true, "utilBins": true, "amongMost": true, "offsetFast": true, "loadedFor": true, "stateVersion": true}

// TestConditionsHoldNoNumbers: what a detector compares with is a row of its table of rules, with a reason; a condition
// holds no number itself but 0 and 1, and no constant that stands for one.
func TestConditionsHoldNoNumbers(t *testing.T) {
	for dir := range judging {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		fset, constants, parsed := token.NewFileSet(), map[string]bool{}, []*ast.File{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
			ast.Inspect(f, func(n ast.Node) bool {
				if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
					for _, s := range d.Specs {
						for i, v := range s.(*ast.ValueSpec).Values {
							if holdsNumber(v) {
								constants[s.(*ast.ValueSpec).Names[i].Name] = true
							}
						}
					}
				}
				return true
			})
		}
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				b, ok := n.(*ast.BinaryExpr)
				if !ok || b.Op.Precedence() != token.LSS.Precedence() {
					return true
				}
				ast.Inspect(b, func(n ast.Node) bool {
					switch x := n.(type) {
					case *ast.BasicLit:
						if isNumber(x) && x.Value != "0" && x.Value != "1" {
							t.Errorf("%s: a condition with %s", fset.Position(x.Pos()), x.Value)
						}
					case *ast.Ident:
						if constants[x.Name] && !structure[x.Name] {
							t.Errorf("%s: a condition with the constant %s", fset.Position(x.Pos()), x.Name)
						}
					}
					return true
				})
				return true
			})
		}
	}
}

func isNumber(x *ast.BasicLit) bool { return x.Kind == token.INT || x.Kind == token.FLOAT }

// holdsNumber reports whether an expression has a number in it; iota has none.
func holdsNumber(e ast.Expr) (some bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		x, ok := n.(*ast.BasicLit)
		some = some || ok && isNumber(x)
		return true
	})
	return some
}

// TestRulesHaveReasons: every rule has a name of its own, a unit, a reason and the value that its variable has.
func TestRulesHaveReasons(t *testing.T) {
	count := 0
	for dir, rules := range judging {
		seen := map[string]bool{}
		for _, r := range rules {
			if seen[r.Name] || r.Name == "" || r.Why == "" || *r.At != r.Value || r.Without == r.Value {
				t.Errorf("%s: %+v, now %g", dir, r, *r.At)
			}
			seen[r.Name] = true
			count++
		}
	}
	if _, err := os.Stat("failslow/ruletable.go"); err != nil || count < 100 {
		t.Error("not all rules were found:", count, err)
	}
}
