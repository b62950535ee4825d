package installtest

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// made is where TestMain has the packages built when a test asks for them.
var made string

func TestMain(m *testing.M) {
	if helper() {
		return
	}
	var err error
	if made, err = os.MkdirTemp("", "fairway-install"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(made)
	os.Exit(code)
}

// makePackages is `make packages`, once, of the tree's own build.
var makePackages = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("make", "packages", "OUT="+filepath.Join(made, "packages"))
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	return string(out), err
})

// need skips the test without a program, and fails it where CI says that it must be there.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root: packages give files to users")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI=true, but not installed: %s", p)
		}
		t.Skipf("skipped: needs %s", p)
	}
}

// packages returns the files of the packages of a kind, the command's, the daemon's and the agent's.
func packages(t *testing.T, kind string) []string {
	t.Helper()
	if _, err := os.Stat(nfpm()); err != nil && os.Getenv("CI") != "true" {
		t.Skip("skipped: needs nfpm; '.ci/deps packages' builds it")
	}
	if out, err := makePackages(); err != nil {
		t.Fatalf("make packages: %v\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(made, "packages", "*."+kind))
	if err != nil || len(found) != 3 {
		t.Fatalf("make packages made %v (%v), want three of %s", found, err, kind)
	}
	return found
}

// nfpm is the program that makes the packages.
func nfpm() string {
	if path, err := exec.LookPath("nfpm"); err == nil {
		return path
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	return filepath.Join(cache, "fairway/bin/nfpm")
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestDepsBuildsWhatIsMissing: a function of .ci/deps with the name of a program that it looks for would be found in
// the program's place, and the program never be built.
func TestDepsBuildsWhatIsMissing(t *testing.T) {
	text, err := os.ReadFile("../../.ci/deps")
	if err != nil {
		t.Fatal(err)
	}
	sought := map[string]bool{}
	for _, m := range regexp.MustCompile(`command -v (\w+)`).FindAllSubmatch(text, -1) {
		sought[string(m[1])] = true
	}
	functions := regexp.MustCompile(`(?m)^(\w+)\(\) \{`).FindAllSubmatch(text, -1)
	if !sought["nfpm"] || len(functions) == 0 {
		t.Fatalf("sought are %v, functions %q", sought, functions)
	}
	for _, m := range functions {
		if sought[string(m[1])] {
			t.Errorf("the function %s hides the program of that name", m[1])
		}
	}
}

// installed are files that the packages must bring, with their modes.
var installed = map[string]fs.FileMode{
	"/usr/bin/fairway": 0o755, "/usr/bin/fairwayd": 0o755, "/usr/bin/fairway-agent": 0o755,
	"/usr/bin/fairway-mount": 0o755, "/usr/bin/fairway-queue": 0o755,
	"/usr/lib/systemd/system/fairwayd.service":       0o644,
	"/usr/lib/systemd/system/fairway-agent.service":  0o644,
	"/usr/lib/systemd/system/fairway-mount@.service": 0o644,
	"/usr/lib/systemd/system/fairway-queue.service":  0o644,
	"/usr/lib/sysusers.d/fairwayd.conf":              0o644,
	"/usr/lib/tmpfiles.d/fairwayd.conf":              0o644,
	"/usr/lib/tmpfiles.d/fairway-agent.conf":         0o644,
	"/usr/share/man/man1/fairway.1.gz":               0o644, "/usr/share/man/man1/fairway-doctor.1.gz": 0o644,
	"/usr/share/man/man8/fairwayd.8.gz": 0o644, "/usr/share/man/man8/fairwayd-enroll.8.gz": 0o644,
	"/usr/share/man/man8/fairway-agent.8.gz": 0o644, "/usr/share/man/man8/fairway-mount.8.gz": 0o644,
	"/usr/share/man/man8/fairway-queue.8.gz":                  0o644,
	"/usr/share/bash-completion/completions/fairway":          0o644,
	"/usr/share/zsh/site-functions/_fairwayd":                 0o644,
	"/usr/share/fish/vendor_completions.d/fairway-agent.fish": 0o644,
	"/usr/share/doc/fairwayd/fairwayd.toml":                   0o644,
	"/usr/share/doc/fairway-agent/fairway-agent.toml":         0o644,
	"/usr/share/doc/fairway/docs/install.md":                  0o644,
	"/usr/share/doc/fairway/docs/grafana/alerts.yml":          0o644,
	"/usr/share/doc/fairway-agent/fairway-mount.conf":         0o644,
	"/usr/share/doc/fairway-agent/fairway-queue.conf":         0o644,
	"/usr/share/doc/fairway-agent/fairway-agent-ces.conf":     0o644,
	"/usr/share/doc/fairway-agent/fairway-agent-remount.conf": 0o644,
	"/usr/share/bash-completion/completions/fairway-agent":    0o644,
	"/usr/share/fish/vendor_completions.d/fairway-mount.fish": 0o644,
	"/usr/share/zsh/site-functions/_fairway-queue":            0o644,
	"/usr/share/bash-completion/completions/fairwayd":         0o644,
	"/usr/share/fish/vendor_completions.d/fairway.fish":       0o644,
	"/usr/share/doc/fairway/LICENSE":                          0o644,
	"/usr/share/doc/fairwayd/LICENSE":                         0o644,
	"/usr/share/doc/fairway-agent/LICENSE":                    0o644,
}

func wantInstalled(t *testing.T, root string) {
	t.Helper()
	for name, mode := range installed {
		info, err := os.Stat(root + name)
		switch {
		case err != nil:
			t.Error(err)
		case info.Mode().Perm() != mode:
			t.Errorf("%s has the mode %v, want %v", name, info.Mode().Perm(), mode)
		case mode == 0o755:
			wantStatic(t, root+name)
		}
	}
}

// wantStatic: a program that needs this system's libraries fails where they are older, or not there.
func wantStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		libs, err := f.ImportedLibraries()
		t.Errorf("%s needs %v (%v), want a static program", path, libs, err)
	}
}

// kept are what a site and its daemon have written: no update and no removal may touch it.
var kept = []string{"/etc/fairway/fairwayd.toml", "/etc/fairway/enroll.secret", "/var/lib/fairway/journal",
	"/var/lib/fairway/store/blocks/1", "/var/lib/fairway-agent/token", "/var/lib/fairway-agent/spool/1"}

func writeKept(t *testing.T, root string) {
	t.Helper()
	for _, name := range kept {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func wantKept(t *testing.T, root, after string) {
	t.Helper()
	for _, name := range kept {
		if b, err := os.ReadFile(root + name); err != nil || string(b) != name {
			t.Errorf("after %s: %s: %q, %v", after, name, b, err)
		}
	}
}

func wantGone(t *testing.T, root, after string) {
	t.Helper()
	for name := range installed {
		if _, err := os.Stat(root + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %s: %s is still there (%v)", after, name, err)
		}
	}
}

// TestDebianPackages installs the packages into an empty root, updates, removes and purges them.
func TestDebianPackages(t *testing.T) {
	need(t, "dpkg", "make")
	debs := packages(t, "deb")
	root := t.TempDir()
	for _, dir := range []string{"etc", "var/lib/dpkg/updates", "var/lib/dpkg/info"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":  "root:x:0:\n",
		"etc/shadow": "root:*:1::::::\n", "etc/gshadow": "root:*::\n", "var/lib/dpkg/status": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dpkg := func(args ...string) string {
		return run(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-depends"},
			args...)...)
	}
	dpkg(append([]string{"-i"}, debs...)...)
	wantInstalled(t, root)
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^fairway:x:(\d+):\d+:fairway daemon:/var/lib/fairway:.*nologin$`).FindSubmatch(users)
	if m == nil {
		t.Fatalf("no user fairway in:\n%s", users)
	}
	if owner := strings.TrimSpace(run(t, "stat", "-c", "%u %a", root+"/var/lib/fairway")); owner != string(m[1])+
		" 700" {
		t.Errorf("/var/lib/fairway has owner and mode %s, want %s 700", owner, m[1])
	}
	writeKept(t, root)
	dpkg(append([]string{"-i"}, debs...)...) // an update, as far as dpkg and the scripts know
	wantKept(t, root, "an update")
	dpkg("-r", "fairway", "fairwayd", "fairway-agent")
	wantGone(t, root, "the removal")
	wantKept(t, root, "the removal")
	dpkg(append([]string{"-i"}, debs...)...)
	dpkg("--purge", "fairway", "fairwayd", "fairway-agent")
	wantKept(t, root, "the purge")
}

// debFor returns the package of the same name.
func debFor(t *testing.T, debs []string, rpm string) string {
	name := strings.TrimSpace(run(t, "rpm", "-qp", "--qf", "%{NAME}", rpm))
	i := slices.IndexFunc(debs, func(d string) bool { return strings.HasPrefix(filepath.Base(d), name+"_") })
	if i < 0 {
		t.Fatalf("no deb of %s among %v", name, debs)
	}
	return debs[i]
}

func debFiles(t *testing.T, deb string) (files []string) {
	for line := range strings.Lines(run(t, "dpkg-deb", "-c", deb)) {
		// What only Debian's packages have says nothing of the others.
		if f := strings.Fields(line); !strings.HasPrefix(f[0], "d") && !strings.Contains(line, "/share/lintian/") &&
			!strings.HasSuffix(line, "/changelog.Debian.gz\n") {
			files = append(files, strings.TrimPrefix(f[5], "."))
		}
	}
	slices.Sort(files)
	return files
}
