package mount

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"

	"fairway/collector/p9"
)

// A forwarder knows files by their names, so a file that is removed while programs have it open would
// be lost to fstat, ftruncate and the next remap. As NFS clients do, the mount gives it another name
// in its directory first and removes that when the last program closes it.

// removedPrefix begins the names of removed files that are still open.
const removedPrefix = ".fairway-removed-"

// spare is the name of a removed file that is still open.
type spare struct {
	dir  *node
	name string
	uid  uint32 // who removed the file, and so may remove this name
}

// opened keeps a handle of the node until it is released.
func (n *node) opened(h *handle) {
	n.mu.Lock()
	n.opens++
	n.mu.Unlock()
	n.m.link.add(h)
}

// released takes note that a handle is gone; the last one takes a removed file's spare name away.
func (n *node) released(ctx context.Context) {
	n.mu.Lock()
	n.opens--
	var gone *spare
	if n.opens == 0 {
		gone, n.spare = n.spare, nil
	}
	n.mu.Unlock()
	if gone != nil {
		gone.dir.remove(asUser(ctx, gone.uid), opUnlink, gone.name, false)
	}
}

// path is the node's present place below the root.
func (n *node) path() []string {
	n.mu.Lock()
	gone := n.spare
	n.mu.Unlock()
	if gone != nil {
		return append(gone.dir.path(), gone.name)
	}
	if p := n.Path(n.m.root.EmbeddedInode()); p != "" {
		return strings.Split(p, "/")
	}
	return nil
}

// keepOpen gives the file behind a name of the directory a spare name if a program has it open; other
// is a node that needs none. back undoes it when the name stays after all. Where the file system has no
// hard links, the file is removed as it is.
func (n *node) keepOpen(ctx context.Context, s *session, dir *p9.Fid, name string, other *node) (back func(),
	err error) {
	back = func() {}
	c := n.childNode(name)
	if c == nil || c == other {
		return back, nil
	}
	c.mu.Lock()
	open, gone := c.opens > 0 && !c.IsDir(), c.spare
	c.mu.Unlock()
	switch {
	case !open || gone != nil && gone.name != name:
		return back, nil
	case gone != nil:
		return back, &p9.Error{Op: "remove " + name, Errno: syscall.EBUSY}
	}
	gone = &spare{n, fmt.Sprintf("%s%016x", removedPrefix, rand.Uint64()), n.m.userOf(ctx)}
	err = c.with(ctx, s, func(file *p9.Fid) error { return dir.Link(ctx, file, gone.name) })
	if errors.As(err, new(*p9.Error)) {
		return back, nil
	}
	if err != nil {
		return back, err
	}
	c.setSpare(gone)
	return func() {
		c.setSpare(nil)
		dir.Unlink(ctx, gone.name, false)
	}, nil
}

// setSpare changes the node's spare name; its fid is walked to again.
func (n *node) setSpare(to *spare) {
	n.mu.Lock()
	n.spare = to
	n.mu.Unlock()
	n.OnForget()
}

// childNode is the node that the kernel knows by a name of the directory, or nil.
func (n *node) childNode(name string) *node {
	if in := n.GetChild(name); in != nil {
		c, _ := in.Operations().(*node)
		return c
	}
	return nil
}
