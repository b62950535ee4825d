package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"fairway/collector/p9"
)

// searched is a name that no directory has: walking to it shows whether the directory may be searched.
const searched = ".fairway-no-such-name"

// Access answers access(2) and chdir(2), which alone ask in advance; every operation is decided by the server. What can
// be tried there without an effect is tried, the rest is read off the mode.
func (n *node) Access(ctx context.Context, mask uint32) syscall.Errno {
	if mask &= unix.R_OK | unix.W_OK | unix.X_OK; mask == 0 {
		return 0
	}
	return n.m.do(ctx, opGetattr, func(ctx context.Context, s *session, _ int) error {
		return n.with(ctx, s, func(fid *p9.Fid) error {
			a, err := fid.GetAttr(ctx)
			if err != nil {
				return err
			}
			return n.permits(ctx, fid, a, mask)
		})
	})
}

func (n *node) permits(ctx context.Context, fid *p9.Fid, a p9.Attr, mask uint32) error {
	dir, regular := a.Mode&syscall.S_IFMT == syscall.S_IFDIR, a.Mode&syscall.S_IFMT == syscall.S_IFREG
	if mask&unix.R_OK != 0 && (dir || regular) {
		flags := uint32(syscall.O_RDONLY)
		if dir {
			flags |= syscall.O_DIRECTORY
		}
		if err := opens(ctx, fid, flags); err != nil {
			return err
		}
		mask &^= unix.R_OK
	}
	if mask&unix.W_OK != 0 && regular {
		if err := opens(ctx, fid, syscall.O_WRONLY); err != nil {
			return err
		}
		mask &^= unix.W_OK
	}
	if mask&unix.X_OK != 0 && dir {
		there, err := fid.Walk(ctx, searched)
		if err == nil {
			there.ClunkLater()
		} else if !errors.Is(err, syscall.ENOENT) {
			return err
		}
		mask &^= unix.X_OK
	}
	if mask&^modeFor(ctx, a) != 0 {
		return &p9.Error{Op: "access", Errno: syscall.EACCES}
	}
	return nil
}

// opens tries to open a file and closes it again.
func opens(ctx context.Context, fid *p9.Fid, flags uint32) error {
	try, err := fid.Walk(ctx)
	if err != nil {
		return err
	}
	defer try.ClunkLater()
	return try.Open(ctx, flags)
}

// modeFor is what the mode lets the caller do.
func modeFor(ctx context.Context, a p9.Attr) uint32 {
	c, ok := fuse.FromContext(ctx)
	switch {
	case !ok || c.Uid == 0:
		if a.Mode&syscall.S_IFMT == syscall.S_IFREG && a.Mode&0o111 == 0 {
			return unix.R_OK | unix.W_OK
		}
		return unix.R_OK | unix.W_OK | unix.X_OK
	case c.Uid == a.UID:
		return a.Mode >> 6 & 7
	case c.Gid == a.GID || slices.Contains(groupsOf(c.Pid), a.GID):
		return a.Mode >> 3 & 7
	}
	return a.Mode & 7
}

// groupsOf are a process's supplementary groups; none when it is gone.
func groupsOf(pid uint32) (groups []uint32) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(b) {
		if list, ok := bytes.CutPrefix(line, []byte("Groups:")); ok {
			for _, f := range bytes.Fields(list) {
				if g, err := strconv.ParseUint(string(f), 10, 32); err == nil {
					groups = append(groups, uint32(g))
				}
			}
		}
	}
	return groups
}
