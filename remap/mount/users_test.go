package mount

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// needRoot skips where programs cannot be run as other users, and lets those into the test's directories.
func needRoot(t *testing.T, m *Mount, dir string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: runs programs as other users")
	}
	for _, at := range []string{m.opt.MountPoint, dir} {
		for p := filepath.Dir(at); p != filepath.Clean(os.TempDir()) && p != "/"; p = filepath.Dir(p) {
			if err := os.Chmod(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(dir, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	return m.opt.MountPoint
}

// as runs a shell script as another user, who is in no groups but his own and those given.
func as(uid int, groups []int, script string, args ...string) error {
	group := "--clear-groups"
	if len(groups) > 0 {
		group = "--groups=" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(groups)), ","), "[]")
	}
	cmd := exec.Command("setpriv", append([]string{fmt.Sprint("--reuid=", uid), fmt.Sprint("--regid=", uid), group,
		"sh", "-ec", script, "sh"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("user %d: %s: %w: %s", uid, script, err, bytes.TrimSpace(out))
	}
	return nil
}

// setACL gives a file an access list (acl(5)) that lets its owner do everything, the named user what perm says, and
// everybody else what others says.
func setACL(t *testing.T, path string, uid uint32, perm, others uint16) {
	t.Helper()
	const anyID = 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 7, anyID}, {2, perm, uid}, {4, others, anyID}, {0x10, 7, anyID}, {0x20, others, anyID}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); errors.Is(err, unix.ENOTSUP) {
		t.Skipf("the file system of %s has no access lists", path)
	} else if err != nil {
		t.Fatal(err)
	}
}

// TestAccessListsAreTheServers: the mode of a file says one thing, its access list another about one user.
func TestAccessListsAreTheServers(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	at := needRoot(t, m, dir)
	for name, text := range map[string]string{"denied": "not for 60001", "granted": "for 60001 alone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	setACL(t, filepath.Join(dir, "denied"), 60001, 0, 4)
	setACL(t, filepath.Join(dir, "granted"), 60001, 6, 0)
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "closed", "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	setACL(t, filepath.Join(dir, "closed"), 60001, 0, 5)
	for round := range 2 {
		for _, c := range []struct {
			uid    int
			script string
			may    bool
		}{
			{60001, "cat $0/denied", false}, {60002, "cat $0/denied", true},
			{60001, "cat $0/granted", true}, {60002, "cat $0/granted", false},
			{60001, "echo more >> $0/granted", true}, {60002, "echo more >> $0/granted", false},
			{60002, "cat $0/closed/f", true}, {60001, "cat $0/closed/f", false}, {60001, "stat $0/closed/f", false},
			{60001, "ls $0/closed", false}, {60001, "cd $0/closed", false}, {60002, "cd $0/closed", true},
			{60001, "test -r $0/denied", false}, {60001, "test -w $0/granted", true},
			{60002, "test -r $0/granted", false},
			{60002, "rm -f $0/granted", false}, {60002, "chmod 777 $0/granted", false},
			{60002, "chown 60002 $0/granted", false},
		} {
			if err := as(c.uid, nil, strings.ReplaceAll(c.script, "$0", "$1"), at); (err == nil) != c.may {
				t.Errorf("round %d: user %d: %s: may is %v: %v", round, c.uid, c.script, c.may, err)
			}
		}
		if _, err := m.Remap(t.Context(), fwd[1].Target, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGroupsAreTheServers: a server that knows a user as member of no group lets him read nothing as one, whatever
// groups he has on the node.
func TestGroupsAreTheServers(t *testing.T) {
	m, dir, _ := startMount(t, 1) // its diod knows of each user only the group of the same number
	at := needRoot(t, m, dir)
	for gid, name := range map[int]string{60001: "own", 60077: "second"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), 0, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := as(60001, []int{60077}, "cat $1/own", at); err != nil {
		t.Error(err)
	}
	if err := as(60001, []int{60077}, "cat $1/second", at); err == nil {
		t.Error("a group of which the server knows nothing was believed")
	}
}

// TestSecondGroup: groups that the server's own user table gives a user count.
func TestSecondGroup(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	at := needRoot(t, m, dir)
	user, uid, gid := "", 0, 0
	for _, line := range fields(t, "/etc/group") { // name:x:gid:member,member
		for member := range strings.SplitSeq(line[3], ",") {
			for _, p := range fields(t, "/etc/passwd") {
				if p[0] == member && p[2] != "0" {
					fmt.Sscan(p[2], &uid)
					fmt.Sscan(line[2], &gid)
					user = member
				}
			}
		}
	}
	if user == "" {
		t.Skip("no user of this host is in a second group")
	}
	known := startDiodWith(t, dir, "fwd9", true)
	if err := os.WriteFile(filepath.Join(dir, "second"), []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "second"), 0, gid); err != nil {
		t.Fatal(err)
	}
	if err := as(uid, []int{gid}, "cat $1/second", at); err == nil {
		t.Error("read at a server without a user table")
	}
	if _, err := m.Remap(t.Context(), known.Target, false); err != nil {
		t.Fatal(err)
	}
	if err := as(uid, []int{gid}, "cat $1/second", at); err != nil {
		t.Errorf("%s is in group %d at the server: %v", user, gid, err)
	}
	if err := as(61234, nil, "cat $1/second; ls $1", at); err == nil {
		t.Error("a user whom the server does not know was let in")
	}
}

// fields are the lines of a table like /etc/passwd.
func fields(t *testing.T, path string) (lines [][]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 3 {
			lines = append(lines, f)
		}
	}
	return lines
}

// TestSquashedRoot: a server that takes root for nobody gives root nothing more.
func TestSquashedRoot(t *testing.T) {
	other, dir, _ := startMount(t, 1)
	needRoot(t, other, dir)
	fwd := startDiodWith(t, dir, "squash", true, "-S", "-U", "nobody")
	m, err := Start(t.Context(), Options{MountPoint: t.TempDir(), Target: fwd.Target, Tree: dir,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Unmount(true) })
	at := needRoot(t, m, dir)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("cat", filepath.Join(at, "secret")).Run(); err == nil {
		t.Error("root of the node read what the server gives root alone")
	}
	run(t, at, "sh", "-ec", "echo x > mine; test $(stat -c %U mine) = nobody")
}

// TestManyUsers has 64 users work at once, with files open through remaps.
func TestManyUsers(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	at := needRoot(t, m, dir)
	const many = 64
	if err := os.WriteFile(filepath.Join(dir, "all"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	errs := make(chan error, 2*many)
	for i := range many {
		wait.Go(func() {
			uid := 60001 + i
			// The file is open and written to until the test says so; its mode denies even its owner to open it anew.
			errs <- as(uid, nil,
				`cd $1; umask 077; exec 3> open-$2; chmod 0 open-$2; mkdir d-$2; echo secret-$2 > d-$2/f
				touch ready-$2; while [ ! -e go ]; do echo line-$2 >&3; cat all d-$2/f; sleep 0.5; done > /dev/null
				echo last >&3; ls -l >/dev/null; ! cat d-$3/f 2>/dev/null`, at, fmt.Sprint(uid),
				fmt.Sprint(60001+(i+1)%many))
		})
	}
	go func() { wait.Wait(); close(done) }()
	ready := func() int {
		list, _ := filepath.Glob(filepath.Join(dir, "ready-*"))
		return len(list)
	}
	for ready() < many {
		select {
		case <-done:
			t.Fatal(<-errs)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for i := range 4 {
		r, err := m.Remap(t.Context(), fwd[(i+1)%2].Target, false)
		if err != nil || r.LostFiles != 0 {
			t.Errorf("remap %d: %d files lost, %v", i, r.LostFiles, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-done
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for i := range many {
		path := filepath.Join(dir, fmt.Sprint("open-", 60001+i))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != 60001+i || info.Mode().Perm() != 0 {
			t.Errorf("%s: user %d, mode %v", path, st.Uid, info.Mode())
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.HasSuffix(b, []byte("last\n")) {
			t.Errorf("%s does not end with the last line: %v", path, err)
		}
	}
}

// TestIdleUsersAreDropped lets users go whom nobody has been for a while, and those idle longest for new ones.
func TestIdleUsersAreDropped(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	at := needRoot(t, m, dir)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	look := func(uid int) {
		t.Helper()
		if err := as(uid, nil, "cat $1/f", at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		look(60001 + i)
	}
	u := m.link.cur.users
	attached := func() int {
		u.mu.Lock()
		defer u.mu.Unlock()
		return len(u.by)
	}
	refs := func() (n int) {
		c := m.root
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.refs)
	}
	if n := attached(); n != 11 {
		t.Errorf("%d attaches of 10 users and root", n)
	}
	u.sweep(time.Now().Add(-time.Hour))
	if n := attached(); n != 11 {
		t.Errorf("%d attaches left of users who were just here", n)
	}
	u.sweep(time.Now().Add(time.Hour))
	if n := attached(); n != 1 || refs() > 1 {
		t.Errorf("%d attaches and %d fids of the root left, want root's alone", n, refs())
	}
	look(60001)
	// At the bound the one idle longest gives way; where nobody is idle, the server's users are enough.
	for i := range maxUsers + 5 {
		if _, err := u.enter(t.Context(), uint32(100000+i)); (err != nil) != (i >= maxUsers-1) {
			t.Fatalf("user %d of %d: %v", i, maxUsers, err)
		} else if err != nil && !errors.Is(err, syscall.EUSERS) {
			t.Fatal(err)
		}
	}
	if n := attached(); n != maxUsers {
		t.Errorf("%d attaches, at most %d", n, maxUsers)
	}
}
