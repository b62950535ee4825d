package webui

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypesOfThePages has TypeScript check the modules of the browser, whose types stand in JSDoc
// comments. The compiler is that of testdata/types/package-lock.json; .ci/deps installs it outside of the
// repository.
func TestTypesOfThePages(t *testing.T) {
	if testing.Short() {
		t.Skip("the compiler takes some seconds")
	}
	node, tsc := typeScript(t)
	dir := t.TempDir()
	args := []string{tsc, "--noEmit", "--allowJs", "--checkJs", "--strict", "--noImplicitAny", "false",
		"--noUnusedLocals", "--noImplicitReturns",
		"--target", "es2024", "--module", "esnext",
		"--moduleResolution", "bundler", "--lib", "es2024,dom,dom.iterable,dom.asynciterable", "--pretty", "false"}
	names, err := fs.Glob(staticFS, "static/*.js")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d modules: %v", len(names), err)
	}
	for _, name := range names {
		b, err := staticFS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// The compiler looks for files, which have no version in their names.
		text := strings.ReplaceAll(string(b), "?v="+versionMark, "")
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Base(name))
	}
	cmd := exec.CommandContext(t.Context(), node, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("types of webui/static: %v\n%s", err, out)
	}
}

// typeScript finds the compiler. Without it the test is skipped; with CI=true, as root and with npm
// there, it fails, because .ci/deps has installed it then.
func typeScript(t *testing.T) (node, tsc string) {
	t.Helper()
	missing := func(why string) {
		_, npm := exec.LookPath("npm")
		if os.Getenv("CI") == "true" && os.Geteuid() == 0 && npm == nil {
			t.Fatalf("CI=true, but %s: run .ci/deps test", why)
		}
		t.Skipf("skipped: %s (.ci/deps test installs it where there is npm)", why)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is not installed")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing("no cache directory: " + err.Error())
	}
	home := filepath.Join(cache, "fairway", "types", "node_modules", "typescript")
	var have, want struct {
		Version string            `json:"version"`
		Dev     map[string]string `json:"devDependencies"`
	}
	readInto := func(path string, v any) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, v)
	}
	if err := readInto("testdata/types/package.json", &want); err != nil {
		t.Fatal(err)
	}
	if err := readInto(filepath.Join(home, "package.json"), &have); err != nil {
		missing("TypeScript is not installed: " + err.Error())
	}
	if have.Version != want.Dev["typescript"] {
		missing("TypeScript is version " + have.Version + ", want " + want.Dev["typescript"])
	}
	return node, filepath.Join(home, "bin", "tsc")
}
