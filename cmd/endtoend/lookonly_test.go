package endtoend

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sshHere stands for ssh: each node has a host name and a /tmp of its own, for the kernel as an ordinary user.
const sshHere = `#!/bin/sh
mkdir -p "$NODES/$1"
exec unshare --map-root-user --mount --uts sh -c 'mount --bind "$NODES/$1" /tmp; hostname "$1"; eval "$2"' sh "$1" "$2"
`

// TestLookingOnlyNeedsNoRoot runs the first page of docs/install.md as it is written, as an ordinary user: every node
// reports, no plan can be applied, and what is removed is gone.
func TestLookingOnlyNeedsNoRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: needs root, to become an ordinary user")
	}
	prepare(t)
	asUser := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	if out, err := exec.Command(asUser[0], append(asUser[1:], "unshare", "--map-root-user", "--mount", "--uts",
		"true")...).CombinedOutput(); err != nil {
		t.Skipf("skipped: no name spaces for ordinary users here: %s", out)
	}
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of commands that look, want those that start, ask and remove", len(blocks))
	}
	home, err := os.MkdirTemp("/var/tmp", "fairway-look") // nodes have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	tools := filepath.Join(home, "tools")
	for _, dir := range []string{filepath.Join(home, "fairway", "bin"), tools, filepath.Join(home, "nodes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tools, "ssh"), []byte(sshHere), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"fairwayd", "fairway", "fairway-agent"} {
		if out, err := exec.Command("cp", filepath.Join(bin, p), filepath.Join(home, "fairway", "bin")).
			CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := exec.Command("chown", "-R", "65534:65534", home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	start := strings.Replace(blocks[0][1], "fairwayd init", "fairwayd init --address 127.0.0.1 --port "+port, 1)
	// The page's reader waits as long as a node needs; doctor's last answer is what is judged.
	const removing = "=removing="
	script := "set -e\n" + start + strings.Replace(blocks[1][1], "bin/fairway doctor",
		"for i in $(seq 300); do bin/fairway doctor >doctor.txt 2>&1 || true; "+
			"if grep -q '6 of 6 nodes reported' doctor.txt; then break; fi; sleep 0.3; done; cat doctor.txt\n"+
			"bin/fairway remap cn1 --to gw2 --reason 'looking only, not moving'\necho "+removing, 1) +
		blocks[2][1] + "ls ~ $NODES/*"
	c := exec.CommandContext(t.Context(), asUser[0], append(asUser[1:], "bash", "-c", script)...)
	c.Env = []string{"HOME=" + home, "NODES=" + filepath.Join(home, "nodes"), "PATH=" + tools + ":" + os.Getenv("PATH")}
	c.WaitDelay = 10 * time.Second
	begun := time.Now()
	out, err := c.CombinedOutput()
	t.Logf("the page took %s", time.Since(begun).Round(time.Second))
	text := string(out)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, want := range []string{"6 of 6 nodes reported", "remaps can be proposed, not applied",
		"no driver configured"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q:\n%s", want, text)
		}
	}
	_, left, removed := strings.Cut(text, removing)
	if !removed {
		t.Errorf("nothing was removed:\n%s", text)
	}
	for _, gone := range []string{"fairway\n", "fairway-agent", "cannot remove", "No such"} {
		if strings.Contains(left, gone) {
			t.Errorf("after the removal there is %q:\n%s", gone, left)
		}
	}
}
