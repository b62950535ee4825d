package testbed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/collector/topology"
)

// startMounts mounts the file system on every compute node, through its default forwarder.
func (tb *Testbed) startMounts(ctx context.Context) error {
	if tb.cfg.MountProgram == "" {
		return nil
	}
	return eachNode(tb.computeNodes(), func(n *node) error { return tb.startMount(ctx, n) })
}

// startMount starts a node's mount and waits until a look at the mount point goes through it.
func (tb *Testbed) startMount(ctx context.Context, n *node) error {
	f := tb.cfg.Mapping[n.id]
	p, err := tb.launch(n, "fairway-mount", tb.cfg.MountProgram, "mount", "--forwarder", string(f),
		"--control", tb.MountSocket(n.id), tb.entryAddr(f), tb.Attach(), MountPoint)
	if err != nil {
		return err
	}
	return p.AwaitReady(ctx, readyWithin, func(context.Context) error {
		return n.enter(func() error {
			var there, above unix.Stat_t
			if err := errors.Join(unix.Stat(MountPoint, &there), unix.Stat("/", &above)); err != nil {
				return fmt.Errorf("look at %s: %w", MountPoint, err)
			}
			if there.Dev == above.Dev {
				return fmt.Errorf("%s is not mounted yet", MountPoint)
			}
			return nil
		})
	})
}

// MountSocket is the control socket of a compute node's mount.
func (tb *Testbed) MountSocket(id topology.NodeID) string {
	return filepath.Join(tb.NodeDir(id), "mount.sock")
}

// computeNodes returns the compute nodes in order.
func (tb *Testbed) computeNodes() []*node {
	var out []*node
	for i := range tb.cfg.ComputeNodes {
		if n, err := tb.find(tb.cfg.compute(i)); err == nil {
			out = append(out, n)
		}
	}
	return out
}
