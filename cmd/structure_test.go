// Package cmd holds the programs; this package itself holds only the tests of the tree's shape.
package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestTopLevelFiles: a program that was built at the top is not kept by mistake.
func TestTopLevelFiles(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "ls-files").Output()
	if err != nil {
		t.Skipf("skipped: not a git checkout: %v", err)
	}
	want := strings.Fields(".gitignore CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md go.mod go.sum")
	for file := range strings.Lines(string(out)) {
		if file = strings.TrimSpace(file); !strings.Contains(file, "/") && !slices.Contains(want, file) {
			t.Errorf("%s stands at the top of the tree", file)
		}
	}
}

// rooms lists the top-level rooms in the direction of the data; a room may import only itself and
// rooms before it.
var rooms = []struct{ name, why string }{
	{"collector", "sensing knows nothing of who reads it"},
	{"tsdb", "the store keeps what was sensed, it judges nothing"},
	{"anomaly", "a judge reads series and says findings; it never acts"},
	{"remap", "the only room that acts; it does not know who shows it"},
	{"webui", "the API serves every room before it; it knows no terminal"},
	{"console", "a face is a client of the API; only a program starts it"},
	{"cmd", "programs wire the rooms; nothing imports a program"},
}

// bans are the narrower rules inside and between rooms; tests are free of them.
var bans = []struct{ from, banned, why string }{
	{"collector/topology", "fairway/", "identifiers are for everybody, so they need nobody"},
	{"collector/p9", "fairway/", "a protocol client is a leaf: mounts, probes and collectors share it"},
	{"remap/policy/dfra", "fairway/tsdb", "a policy reads a Situation, not a store"},
	{"remap/policy/mckp", "fairway/tsdb", "a policy reads a case, not a store"},
	{"remap/policy/avoid", "fairway/tsdb", "a policy reads a case, not a store"},
	{"remap/advise", "fairway/remap/desk", "advice is a pure function of a situation and its plans"},
	{"remap/policy/share", "fairway/", "a policy is a pure function of its input"},
	{"remap/policy/periodic", "fairway/", "a policy is a pure function of its input"},
	{"remap/policy/filedomain", "fairway/", "a policy is a pure function of its input"},
	{"remap/journal", "fairway/remap/desk", "the record is read by programs that have no desk"},
	{"remap/node", "fairway/tsdb", "a mover runs in the agent: it stores nothing"},
	{"remap/node", "fairway/anomaly", "a mover runs in the agent: it judges nothing"},
	{"remap/node", "fairway/remap/desk", "a mover gets orders; the desk gives them"},
	{"remap/policy", "fairway/remap/desk", "a policy proposes; it does not know who decides"},
	{"remap/mount", "fairway/tsdb", "the mount runs on compute nodes and stores nothing"},
	{"remap/mount", "fairway/anomaly", "the mount runs on compute nodes and judges nothing"},
	{"cmd/fairway-agent", "fairway/tsdb", "the agent is a small static binary: it senses and sends"},
	{"cmd/fairway-agent", "fairway/webui", "the agent is a small static binary: it senses and sends"},
	{"cmd/fairway-mount", "fairway/tsdb", "the mount is a small static binary"},
	{"cmd/fairway-mount", "fairway/webui", "the mount is a small static binary"},
	{"remap/queue", "fairway/tsdb", "the queue is in the way of every byte: it stores nothing"},
	{"cmd/fairway-queue", "fairway/tsdb", "the queue is a small static binary"},
	{"cmd/fairway-queue", "fairway/webui", "the queue is a small static binary"},
	{"console", "net/http", "a face asks webui/client, which speaks HTTP"},
	{"webui", "fairway/tsdb/history/archive", "DuckDB is the daemon's; the API asks an interface"},
	{"anomaly", "fairway/tsdb/history/archive", "a judge gets rows, not a database"},
	{"anomaly", "fairway/remap", "a judge hands findings to a recorder; it excludes nothing itself"},
	{"anomaly", "fairway/tsdb/engine", "live readers read tsdb/window, others the contract of tsdb"},
	{"remap", "fairway/tsdb/engine", "live readers read tsdb/window, others the contract of tsdb"},
	{"webui", "fairway/tsdb/engine", "live readers read tsdb/window, others the contract of tsdb"},
	{"remap/situation", "fairway/remap/desk", "a situation shows what the desk knows; it decides nothing"},
	{"tsdb/history/iolog", "fairway/", "the schema is rows; who makes and who keeps them import it"},
}

// clockless packages get the time as an argument; the loop that asks a policy has a clock.
var clockless, clocked = []string{"cmd/lab/simmachine", "remap/policy", "anomaly"}, "remap/policy/evacuate/loop.go"

func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

func roomOf(pkg string) int {
	for i, r := range rooms {
		if within(pkg, r.name) {
			return i
		}
	}
	return -1
}

// programOf returns the name of the program that a folder below cmd belongs to.
func programOf(pkg string) string {
	rest, _ := strings.CutPrefix(pkg, "cmd/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// goFile is a Go file of the module, by its folder and its path below the root.
type goFile struct {
	dir, path string
	lines     int
	parsed    *ast.File
}

// positions are those of what parseAll parsed.
var positions = token.NewFileSet()

// parseAll parses every Go file of the module, once for all tests.
var parseAll = sync.OnceValues(func() (files []goFile, _ error) {
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && p != ".." && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(positions, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(strings.TrimPrefix(p, ".."+string(filepath.Separator)))
		files = append(files, goFile{path.Dir(file), file, positions.File(f.Pos()).LineCount(), f})
		return nil
	})
	return files, err
})

// goFiles calls visit with every Go file of the module.
func goFiles(t *testing.T, visit func(dir, file string, lines int, f *ast.File)) {
	t.Helper()
	files, err := parseAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		visit(f.dir, f.path, f.lines, f.parsed)
	}
}

func TestImportsPointUpstream(t *testing.T) {
	ours := 0
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if roomOf(dir) < 0 {
			t.Errorf("%s: Go code outside the rooms", file)
		}
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, imp := range f.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bans {
				if within(dir, b.from) && strings.HasPrefix(p, b.banned) && !within(p, "fairway/"+b.from) {
					t.Errorf("%s imports %s: %s", file, p, b.why)
				}
			}
			to, found := strings.CutPrefix(p, "fairway/")
			if !found {
				continue
			}
			ours++
			if here := roomOf(dir); roomOf(to) > here {
				t.Errorf("%s imports %s, which comes after it: %s", file, p, rooms[here].why)
			}
			// The demo is the laboratory with a terminal before it: it is not shipped.
			if within(to, "cmd/lab") && !within(dir, "cmd/lab") && dir != "cmd/fairway-demo" {
				t.Errorf("%s imports the laboratory's %s: nothing that ships may", file, p)
			}
			if within(to, "cmd") && to != "cmd/program" && !within(to, "cmd/lab") && programOf(to) != programOf(dir) {
				t.Errorf("%s imports the program %s", file, p)
			}
			if strings.HasPrefix(dir, "cmd/fairway/") && within(to, "cmd/fairway") && to != "cmd/fairway/cli" {
				t.Errorf("%s imports %s: the command's rooms share cli and nothing else", file, p)
			}
		}
	})
	if ours == 0 {
		t.Fatal("no import of ours was seen: the test looks at the wrong tree")
	}
}

// TestFairwaydNeedsNoCompiler: a machine without a C++ compiler builds every program.
func TestFairwaydNeedsNoCompiler(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./fairway", "./fairwayd", "./fairway-agent", "./fairway-mount",
		"./fairway-queue", "./fairway-demo")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "fairway/cmd/fairwayd\n") || strings.Contains(string(out), "duckdb") {
		t.Errorf("without cgo the programs still import DuckDB, or are not listed:\n%s", out)
	}
}

// DuckDB is C++ and weighs 60 MB: the daemon may carry it, the tools that go to every node stay static.
func TestImportsOfDuckDB(t *testing.T) {
	imports := map[string]map[string]bool{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if imports[dir] == nil {
			imports[dir] = map[string]bool{}
		}
		for _, imp := range f.Imports {
			if p := strings.Trim(imp.Path.Value, `"`); !strings.HasSuffix(file, "_test.go") {
				imports[dir][p] = true
			}
		}
	})
	var linkers []string
	for dir := range imports {
		if !strings.HasPrefix(dir, "cmd/") {
			continue
		}
		seen, todo := map[string]bool{}, []string{dir}
		for len(todo) > 0 {
			next := todo[0]
			todo = todo[1:]
			for p := range imports[next] {
				if strings.HasPrefix(p, "github.com/duckdb/") && !slices.Contains(linkers, dir) {
					linkers = append(linkers, dir)
				}
				if to, ours := strings.CutPrefix(p, "fairway/"); ours && !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	for _, dir := range linkers {
		if !within(dir, "cmd/fairwayd") {
			t.Errorf("%s links DuckDB: only fairwayd may", dir)
		}
	}
	if !imports["tsdb/history/archive"]["github.com/duckdb/duckdb-go/v2"] {
		t.Error("tsdb/history/archive does not import DuckDB: the test looks at the wrong tree")
	}
}

func TestPoliciesHaveNoClock(t *testing.T) {
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		in := slices.ContainsFunc(clockless, func(p string) bool { return within(dir, p) })
		if !in || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, clocked) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since") {
					t.Errorf("%s calls time.%s: it gets the time as an argument", file, s.Sel.Name)
				}
			}
			return true
		})
	})
}

func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if strings.HasSuffix(f.Name.Name, "_test") {
			return
		}
		key := dir + " (" + f.Name.Name + ")"
		comments[key] = append(comments[key], nil...)
		if f.Doc != nil {
			comments[key] = append(comments[key], file)
		}
	})
	for key, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %s has %d package comments, want 1: %v", key, len(files), files)
		}
	}
}

// fileLines is the longest a source file may be before it is two things.
const fileLines = 500

func TestFilesStayShort(t *testing.T) {
	goFiles(t, func(_, file string, lines int, _ *ast.File) {
		if lines > fileLines && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s has %d lines, more than %d: it is two things", file, lines, fileLines)
		}
	})
}

// packageFiles is the most files that a package may have before it is two rooms.
const packageFiles = 15

func TestPackagesStaySmall(t *testing.T) {
	files := map[string]int{}
	goFiles(t, func(dir, file string, _ int, _ *ast.File) {
		if !strings.HasSuffix(file, "_test.go") {
			files[dir]++
		}
	})
	for dir, n := range files {
		if n > packageFiles {
			t.Errorf("%s has %d files, more than %d: it is two rooms", dir, n, packageFiles)
		}
	}
}

// methodsOf and fieldsOf are the most that a type may have before it is two things.
const (
	methodsOf = 25
	fieldsOf  = 15
)

// largeTypes may have more, for the reason given.
var largeTypes = map[string]string{
	"collector/logs/slurm.Job":   "a job as the batch system describes it",
	"collector/logs/darshan.IO":  "Darshan's record of a file, field by field",
	"collector/p9.Attr":          "9P2000.L's Rgetattr",
	"cmd/lab/simmachine.Machine": "the state of a model that every part of a second changes",
	"collector/p9.Fid":           "a method for each message of 9P2000.L",
	"tsdb/history/iolog.Job":     "a table's columns",
	"tsdb/history/iolog.JobFile": "a table's columns",
	"webui/client.Client":        "a method for each route of the API",
	"remap/journal.Record":       "what a line of the journal may hold",
	"remap.Plan":                 "a plan as data",
	"anomaly.Finding":            "a finding as data",
	"remap/mount.node":           "a method for each operation of the kernel on a file",
	"cmd/lab/testbed.Testbed": "a machine of many parts, each started and ended by a file of its own; 77 " +
		"methods are " +
		"too many",
	"cmd/lab/testbed.Config": "what a testbed is made of, a setting each",
	"collector/p9.Client":    "a method for each message of 9P2000.L, and the connection's bookkeeping",
}

func TestTypesAreOneThing(t *testing.T) {
	methods, fields := map[string]int{}, map[string]int{}
	goFiles(t, func(dir, file string, _ int, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				if x.Recv != nil {
					recv := x.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					switch of := recv.(type) {
					case *ast.IndexExpr:
						recv = of.X
					case *ast.IndexListExpr:
						recv = of.X
					}
					methods[dir+"."+recv.(*ast.Ident).Name]++
				}
				return false
			case *ast.TypeSpec:
				if s, ok := x.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						fields[dir+"."+x.Name.Name] += max(1, len(field.Names))
					}
				}
			}
			return true
		})
	})
	for name, n := range methods {
		if _, known := largeTypes[name]; n > methodsOf && !known {
			t.Errorf("%s has %d methods, more than %d: it is two things", name, n, methodsOf)
		}
	}
	for name, n := range fields {
		if _, known := largeTypes[name]; n > fieldsOf && !known {
			t.Errorf("%s has %d fields, more than %d: it is two things", name, n, fieldsOf)
		}
	}
	for name := range largeTypes {
		if methods[name] <= methodsOf && fields[name] <= fieldsOf {
			t.Errorf("%s is not large any more: take it out of largeTypes", name)
		}
	}
}
