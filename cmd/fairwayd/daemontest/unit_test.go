package daemontest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDaemonUnderItsUnit runs the daemon with what its unit leaves it: another user, no capability, no way to gain one,
// a file system that is read-only but for its own directory.
func TestDaemonUnderItsUnit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: gives root's power up")
	}
	dir, err := os.MkdirTemp("", "unit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "fairwayd")
	if out, err := exec.Command("cp", binary(t, "fairwayd"), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const user = 65534
	socket := filepath.Join(dir, "s")
	conf := filepath.Join(dir, "conf")
	write(t, conf, fmt.Sprintf("state_dir = %q\n[listen]\nsocket = %q\nhttp = \"\"\n", filepath.Join(dir, "state"),
		socket))
	for _, p := range []string{dir, conf} {
		if err := os.Chown(p, user, user); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "sh", "-ec",
		`mount --bind "$1" "$1"; mount -o remount,bind,ro /
		exec prlimit --nofile=1024 setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
			--inh-caps=-all --no-new-privs "$1/fairwayd" run -c "$1/conf"`, "sh", dir)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { stop(); <-ended }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	for {
		res, err := client.Get("http://unix/readyz")
		if err == nil {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
			t.Logf("not ready yet: %s", body)
		}
		select {
		case <-ended:
			t.Fatalf("it ended: %s", &log)
		case <-time.After(20 * time.Millisecond):
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
		"Uid:\t65534"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its status is not %q:\n%s", want, status)
		}
	}
}
