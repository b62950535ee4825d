package installtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// systemctlCalls stands in for systemctl in a root, and writes down what the packages' scripts want of it.
const systemctlCalls = "#!/bin/sh\necho \"$*\" >>/calls\n"

// rpmRoot is a root with what the scripts use and no more: programs of this system with their libraries.
func rpmRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put := func(name string, text []byte, mode os.FileMode) {
		err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644)
	put("/etc/group", []byte("root:x:0:\n"), 0o644)
	put("/etc/shadow", []byte("root:*:1::::::\n"), 0o600)
	put("/etc/gshadow", []byte("root:*::\n"), 0o600)
	put("/usr/bin/systemctl", []byte(systemctlCalls), 0o755)
	for _, dir := range []string{"/run/systemd/system", "/dev", "/bin"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	library := regexp.MustCompile(`(/\S+) \(0x`)
	for _, name := range []string{"sh", "sed", "grep", "mkdir", "chmod", "chown", "systemd-sysusers",
		"systemd-tmpfiles",
		"useradd"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue // either of those that make users is enough
		}
		files := []string{path}
		for _, m := range library.FindAllStringSubmatch(run(t, "ldd", path), -1) {
			files = append(files, m[1])
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			put(file, text, 0o755)
		}
		if name == "sh" && path != "/bin/sh" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			put("/bin/sh", text, 0o755)
		}
	}
	return root
}

// laterRPMs are the packages of a version after all others, with the same files.
func laterRPMs(t *testing.T, debs []string) (rpms []string) {
	t.Helper()
	dir := t.TempDir()
	stage := filepath.Join(dir, "stage")
	for _, deb := range debs {
		run(t, "dpkg-deb", "-x", deb, stage)
	}
	for _, p := range []string{"fairway", "fairway-agent", "fairwayd"} {
		cmd := exec.Command(nfpm(), "package", "-f", "packaging/"+p+".yaml", "-p", "rpm", "-t", dir)
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "STAGE="+stage, "VERSION=99.0.0", "ARCH="+runtime.GOARCH)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nfpm: %v\n%s", err, out)
		}
	}
	rpms, err := filepath.Glob(filepath.Join(dir, "*.rpm"))
	if err != nil || len(rpms) != 3 {
		t.Fatal(rpms, err)
	}
	return rpms
}

// TestRPMPackages installs the packages of the other kind into a root of their own, updates and removes them, each with
// its scripts: they bring the same files and leave as much behind.
func TestRPMPackages(t *testing.T) {
	need(t, "rpm", "dpkg", "make")
	rpms, debs := packages(t, "rpm"), packages(t, "deb")
	root := rpmRoot(t)
	rpm := func(args ...string) {
		out := run(t, "rpm", append([]string{"--root", root, "--nodeps"}, args...)...)
		if strings.Contains(out, "scriptlet failed") { // rpm exits with 0 nevertheless
			t.Errorf("rpm %s says:\n%s", strings.Join(args, " "), out)
		}
	}
	calls := func(after string, want ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, "calls"))
		if err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "daemon-reload" {
				got = append(got, line)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) || !strings.Contains(string(text), "daemon-reload") {
			t.Errorf("after %s systemd was asked\n%s, want daemon-reload and %q", after, text, want)
		}
		if err := os.Remove(filepath.Join(root, "calls")); err != nil {
			t.Fatal(err)
		}
	}
	restarts := []string{"try-restart fairway-agent.service", "try-restart fairwayd.service"}
	rpm(append([]string{"-i"}, rpms...)...)
	wantInstalled(t, root)
	calls("the installation", restarts...)
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^fairway:x:(\d+):(\d+):`).FindSubmatch(users)
	if m == nil {
		t.Fatalf("no user fairway in:\n%s", users)
	}
	for dir, want := range map[string]string{"/var/lib/fairway": fmt.Sprintf("%s %s 700", m[1], m[2]),
		"/var/lib/fairway-agent": "0 0 700"} {
		if got := strings.TrimSpace(run(t, "stat", "-c", "%u %g %a", root+dir)); got != want {
			t.Errorf("%s has owner, group and mode %s, want %s", dir, got, want)
		}
	}
	writeKept(t, root)
	rpm(append([]string{"-U"}, laterRPMs(t, debs)...)...)
	wantInstalled(t, root)
	wantKept(t, root, "an update")
	calls("an update", restarts...)
	rpm("-e", "fairway", "fairwayd", "fairway-agent")
	wantGone(t, root, "the removal")
	wantKept(t, root, "the removal")
	calls("the removal", "disable --now fairway-agent.service", "disable --now fairwayd.service")
	for i := range rpms {
		inRPM := strings.Fields(run(t, "rpm", "-qlp", rpms[i]))
		slices.Sort(inRPM)
		if inDeb := debFiles(t, debFor(t, debs, rpms[i])); !slices.Equal(inRPM, inDeb) {
			t.Errorf("%s has %v\nthe deb has %v", rpms[i], inRPM, inDeb)
		}
	}
}
