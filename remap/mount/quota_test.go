package mount

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// quotaDir is the root of a file system whose quota is 8 MB: Btrfs's of a subvolume, which Linux has without the quotas
// of users.
func quotaDir(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: mounts a file system with quotas")
	}
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
		t.Skip("no mkfs.btrfs on this machine (Debian package btrfs-progs)")
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 256<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.btrfs", "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.btrfs: %v\n%s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("no Btrfs in a loop device here: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v\n%s", dir, err, out)
		}
	})
	for _, args := range [][]string{{"quota", "enable", dir}, {"qgroup", "limit", "8M", dir}} {
		if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
			t.Fatalf("btrfs %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// TestQuotaIsTheServers: a user who has used up what the server's file system grants gets the error of a
// quota, by the write or by its fsync; what was written before stays, and room that is made is there. It is the same
// after a move to another forwarder.
func TestQuotaIsTheServers(t *testing.T) {
	dir := quotaDir(t)
	needFUSE(t)
	a, b := startDiod(t, dir, "fwd000"), startDiod(t, dir, "fwd001")
	m, err := Start(t.Context(), Options{MountPoint: t.TempDir(), Target: a.Target, Tree: dir,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(true); err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	})
	at := needRoot(t, m, dir)
	for round, forwarder := range []string{"the first forwarder", "the one after a move"} {
		if round == 1 {
			if _, err := m.Remap(t.Context(), b.Target, false); err != nil {
				t.Fatal(err)
			}
		}
		const script = `cd $1; echo before > kept
			! got=$(dd if=/dev/zero of=f bs=1M count=16 conv=fsync 2>&1)
			case $got in *"quota exceeded"*) ;; *) echo "$got"; exit 1;; esac
			test "$(cat kept)" = before; rm f`
		if err := as(60001, nil, script, at); err != nil {
			t.Errorf("%s: %v", forwarder, err)
		}
		if out, err := exec.Command("sync", "-f", dir).CombinedOutput(); err != nil { // Btrfs makes room by a commit
			t.Fatalf("sync: %v\n%s", err, out)
		}
		if err := as(60001, nil, `cd $1; dd if=/dev/zero of=g bs=1M count=2 conv=fsync; rm g`, at); err != nil {
			t.Errorf("%s: room that was made is not there: %v", forwarder, err)
		}
	}
}
