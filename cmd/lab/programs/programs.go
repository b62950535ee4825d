// Package programs has fairway's programs at hand for tests: those that make test has built, else built when one asks.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// built is what this process has had built.
var built struct {
	mu   sync.Mutex // guards everything that follows
	dir  string
	has  map[string]bool
	fail error
}

// Dir is a folder that holds the named programs as they are shipped, for everybody to run: FAIRWAY_BIN where that is
// set, as make test does, else one of this process's own, which Run removes.
func Dir(names ...string) (string, error) {
	if dir := os.Getenv("FAIRWAY_BIN"); dir != "" {
		return dir, nil
	}
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "fairway-bin")
		if err != nil {
			return "", err
		}
		built.dir, built.has = dir, map[string]bool{}
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		if !built.has[name] && built.fail == nil {
			built.has[name], built.fail = true, build(built.dir, name)
		}
	}
	return built.dir, built.fail
}

// Path is one program's.
func Path(name string) (string, error) {
	dir, err := Dir(name)
	return filepath.Join(dir, name), err
}

// build builds one program with the flags of the Makefile.
func build(dir, name string) error {
	c := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags", "netgo,osusergo", "-ldflags", "-s -w",
		"-o", dir+"/", "fairway/cmd/"+name)
	if name != "fairwayd" { // alone it links C
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", name, err, out)
	}
	return nil
}

// Run runs a package's tests and removes what was built for them.
func Run(tests func() int) int {
	code := tests()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" && os.RemoveAll(built.dir) != nil {
		return max(code, 1)
	}
	return code
}
