package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// node is one machine of the testbed: network, mount, host name and process namespaces whose first
// process only waits. When that process dies the kernel kills every other one and takes the
// namespaces with it.
type node struct {
	id   topology.NodeID
	addr netip.Addr
	port uint16 // of the file service; forwarders only
	root bool   // false: the node is only a name, programs start beside this process

	base *leash.Thread
	init *exec.Cmd
	ns   []*os.File // the namespaces to enter, in this order
}

// namespaces of a node, and how they are entered.
var namespaces = []struct {
	file string
	flag uintptr
}{
	{"net", unix.CLONE_NEWNET}, {"uts", unix.CLONE_NEWUTS}, {"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS},
}

// startNode powers a node on.
func startNode(base *leash.Thread, id topology.NodeID) (*node, error) {
	n := &node{id: id, root: true, base: base}
	env, err := leash.Look("env")
	if err != nil {
		return nil, err
	}
	// With SIGCHLD ignored the kernel reaps what is orphaned to the node's first process.
	n.init = exec.Command(env, "--ignore-signal=CHLD", "sleep", "infinity")
	n.init.Dir = "/"
	n.init.SysProcAttr = &syscall.SysProcAttr{}
	for _, ns := range namespaces {
		n.init.SysProcAttr.Cloneflags |= ns.flag
	}
	if err := base.Start(n.init); err != nil {
		return nil, fmt.Errorf("make the namespaces of node %s: %w", id, err)
	}
	for _, ns := range namespaces {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(n.pid()), "ns", ns.file))
		if err != nil {
			n.kill()
			n.wait()
			return nil, err
		}
		n.ns = append(n.ns, f)
	}
	return n, nil
}

// pid is the node's first process as this process sees it.
func (n *node) pid() int { return n.init.Process.Pid }

// kill ends every process of the node at once.
func (n *node) kill() {
	if n.root {
		_ = n.init.Process.Kill() // the only error is that it is dead
	}
}

// wait returns when the last process of a killed node is gone.
func (n *node) wait() {
	if !n.root {
		return
	}
	_ = n.init.Wait() // "signal: killed", as asked
	for _, f := range n.ns {
		f.Close()
	}
}

// enter runs f on a thread inside the node. Processes that f starts are the node's; sockets that f
// opens stay in the node's network.
func (n *node) enter(f func() error) error {
	if !n.root {
		return f()
	}
	result := make(chan error, 1)
	go leash.OnOwnThread(func() {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- fmt.Errorf("enter node %s: %w", n.id, err)
			return
		}
		for i, ns := range namespaces {
			if err := unix.Setns(int(n.ns[i].Fd()), int(ns.flag)); err != nil {
				result <- fmt.Errorf("enter the %s namespace of node %s: %w", ns.file, n.id, err)
				return
			}
		}
		result <- f()
	})
	return <-result
}

// setUp gives the node its name, its own /proc and the testbed's hosts and nsswitch files. Only a node that serves
// the file system itself keeps it; the others have to go through one.
func (n *node) setUp(ctx context.Context, etc string, hasFiles bool) error {
	err := n.enter(func() error {
		if err := unix.Sethostname([]byte(n.id)); err != nil {
			return err
		}
		for _, file := range []string{"hosts", "nsswitch.conf"} {
			if err := unix.Mount(filepath.Join(etc, file), filepath.Join("/etc", file), "", unix.MS_BIND,
				""); err != nil {
				return fmt.Errorf("give node %s its /etc/%s: %w", n.id, file, err)
			}
		}
		if hasFiles {
			return nil
		}
		return unix.Unmount(exportDir, unix.MNT_DETACH)
	})
	if err != nil {
		return err
	}
	// A program, because only a new process is in the node's process namespace.
	_, err = n.exec(ctx, "mount", "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc")
	return err
}

// NodeCommand is an exec.Cmd whose process belongs to a node.
type NodeCommand struct {
	*exec.Cmd
	node *node
}

func (n *node) command(ctx context.Context, argv ...string) (*NodeCommand, error) {
	program, err := leash.Look(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &NodeCommand{Cmd: cmd, node: n}, nil
}

// Start starts the command on its node.
func (c *NodeCommand) Start() error {
	if c.node.root {
		return c.node.enter(c.Cmd.Start)
	}
	return c.node.base.Start(c.Cmd)
}

// Run starts the command on its node and waits for it.
func (c *NodeCommand) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Exec runs a command on a node and returns what it wrote on standard output; an error holds the
// end of its standard error.
func (tb *Testbed) Exec(ctx context.Context, id topology.NodeID, argv ...string) ([]byte, error) {
	n, err := tb.find(id)
	if err != nil {
		return nil, err
	}
	return n.exec(ctx, argv...)
}

// privateRoot gives the calling thread a mount namespace and a root directory of its own in it:
// everything of the machine's, plus the mount point, plus the file system at exportDir.
func privateRoot(at string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w (is the machine a container without CAP_SYS_ADMIN?)", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount a root at %s: %w", at, err)
	}
	if err := bindTopFolders(at); err != nil {
		return err
	}
	export := filepath.Join(at, exportDir)
	if err := errors.Join(os.MkdirAll(filepath.Join(at, MountPoint), 0o755), os.MkdirAll(export, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", export, "tmpfs", 0, "mode=1777,size=2g"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	// pivot_root(".", "."): the old root ends up above the new one and is let go.
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root to %s: %w", at, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// bindTopFolders shows every folder of / below at, with what is mounted there; links are copied.
func bindTopFolders(at string) error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join("/", e.Name()), filepath.Join(at, e.Name())
		switch {
		case from == MountPoint || from == exportDir:
		case e.Type() == os.ModeSymlink:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
		case e.IsDir():
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("show %s in the nodes' root: %w", from, err)
			}
		}
	}
	return nil
}
