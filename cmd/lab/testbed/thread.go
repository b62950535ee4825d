package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// thread is one operating system thread that runs functions one at a time. Processes started on it
// with a parent-death signal die when it ends, which is when this process does or at close.
type thread struct {
	work chan func()
	done chan struct{}
}

// newThread starts a thread with its own working directory and root (CLONE_FS), so that it can
// enter mount namespaces.
func newThread() (*thread, error) {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	ready := make(chan error, 1)
	go onOwnThread(func() {
		defer close(t.done)
		err := unix.Unshare(unix.CLONE_FS)
		ready <- err
		if err != nil {
			return
		}
		for f := range t.work {
			f()
		}
	})
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("separate a thread's root directory: %w", err)
	}
	return t, nil
}

// do runs f on the thread.
func (t *thread) do(f func() error) error {
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

// close ends the thread, and with it the processes that asked to die with it.
func (t *thread) close() {
	close(t.work)
	<-t.done
}

// onOwnThread runs f on a thread that is thrown away afterwards, since f changes what the thread
// may see. The process's first thread is spared: the process is known by it in /proc.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return // still locked: the runtime ends the thread
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		onOwnThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

// startDying starts a command that is killed when the thread ends.
func (t *thread) startDying(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setsid = true // a terminal's interrupt is for this process, not for its children
	return t.do(cmd.Start)
}

// privateRoot gives the calling thread a mount namespace and a root directory of its own in it:
// everything of the machine's, plus the mount point, plus the file system at exportDir.
func (c *Config) privateRoot(at string) error {
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
	if err := errors.Join(mkdirAll(filepath.Join(at, MountPoint)), mkdirAll(export)); err != nil {
		return err
	}
	if err := c.mountFilesystem(export); err != nil {
		return err
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

// mountFilesystem puts the configured directory, or memory, at the export.
func (c *Config) mountFilesystem(export string) error {
	if c.Dir != "" {
		if err := unix.Mount(c.Dir, export, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("use %s as the file system: %w", c.Dir, err)
		}
		return nil
	}
	if err := unix.Mount("tmpfs", export, "tmpfs", 0, fmt.Sprintf("mode=1777,size=%d", c.SizeBytes)); err != nil {
		return fmt.Errorf("mount a file system of %d bytes in memory: %w", c.SizeBytes, err)
	}
	return nil
}

func mkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }
