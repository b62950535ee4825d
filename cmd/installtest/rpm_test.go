package installtest

import (
	"bytes"
	"context"
	"crypto/x509"
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

// rpmRoot is a system whose packages are rpm's, with what the scripts use and no more: programs of this one with their
// libraries, none that fairway's programs would need, in a package that provides the shell.
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
	dir := t.TempDir()
	conf := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(conf, []byte("name: system\narch: all\nversion: 1.0.0\nprovides: [/bin/sh]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nfpm(), "package", "-f", conf, "-p", "rpm", "-t", filepath.Join(dir, "system.rpm"))
	run(t, "rpm", "--root", root, "-i", filepath.Join(dir, "system.rpm"))
	return root
}

// startIn starts the daemon of a root as its user, asks it, and ends it.
func startIn(t *testing.T, root, user, port string) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(root, "etc/fairway/tls/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	var log bytes.Buffer
	ended, end := context.WithCancel(t.Context())
	daemon := exec.Command("chroot", "--userspec="+user, root, "/usr/bin/fairwayd", "run")
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer end()
		err = daemon.Wait()
	}()
	answer := askUntil(ended, "https://127.0.0.1:"+port+"/readyz", trusted)
	_ = daemon.Process.Signal(os.Interrupt)
	<-ended.Done()
	if !strings.Contains(answer, `"ready":true`) || err != nil {
		t.Fatalf("the daemon answers %s; it ended with %v:\n%s", answer, err, &log)
	}
}

// state is every file that init, the daemon and an agent have written below a root, with owner, mode and content.
func state(t *testing.T, root string) string {
	return run(t, "sh", "-c", `cd "$1" && find etc/fairway var/lib/fairway var/lib/fairway-agent -type f |
		sort | xargs stat -c '%n %U:%G %a' && find etc/fairway var/lib/fairway var/lib/fairway-agent -type f |
		sort | xargs sha256sum`, "sh", root)
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
		cmd.Env = append(os.Environ(), "STAGE="+stage, "VERSION=99.0.0", "ARCH="+runtime.GOARCH,
			"MAINTAINER=the site <site@example.org>")
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

// TestRPMPackages installs the packages of the other kind on a system of its own, starts the daemon, updates and
// removes them, each with its scripts: they bring the same files, need nothing but a shell, and leave as much behind.
func TestRPMPackages(t *testing.T) {
	need(t, "rpm", "dpkg", "make")
	rpms, debs := packages(t, "rpm"), packages(t, "deb")
	root := rpmRoot(t)
	rpm := func(args ...string) {
		out := run(t, "rpm", append([]string{"--root", root}, args...)...)
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
	owner, port := fmt.Sprintf("%s:%s", m[1], m[2]), freePort(t)
	run(t, "chroot", root, "/usr/bin/fairwayd", "init", "--layer", "diod", "--forwarders", "fwd0", "--compute",
		"cn[0-1]", "--port", port)
	run(t, "install", "-d", "-o", string(m[1]), root+"/run/fairway") // as systemd does
	startIn(t, root, owner, port)
	for _, name := range []string{"token", "spool"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/fairway-agent", name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := state(t, root)
	unchanged := func(after string) {
		t.Helper()
		if now := state(t, root); now != was || !strings.Contains(was, "var/lib/fairway/journal") {
			t.Errorf("after %s the state is\n%swas\n%s", after, now, was)
		}
	}
	rpm(append([]string{"-U"}, laterRPMs(t, debs)...)...)
	wantInstalled(t, root)
	unchanged("an update")
	calls("an update", restarts...)
	startIn(t, root, owner, port)
	was = state(t, root)
	rpm("-e", "fairway", "fairwayd", "fairway-agent")
	wantGone(t, root, "the removal")
	unchanged("the removal")
	calls("the removal", "disable --now fairway-agent.service", "disable --now fairwayd.service")
	for i := range rpms {
		inRPM := strings.Fields(run(t, "rpm", "-qlp", rpms[i]))
		slices.Sort(inRPM)
		if inDeb := debFiles(t, debFor(t, debs, rpms[i])); !slices.Equal(inRPM, inDeb) {
			t.Errorf("%s has %v\nthe deb has %v", rpms[i], inRPM, inDeb)
		}
	}
}
