package leash

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Thread is one operating system thread that runs functions one at a time. Processes started on it
// with a parent-death signal die when it ends, which is when this process does or at close.
type Thread struct {
	work chan func()
	done chan struct{}
}

// NewThread starts a thread with its own working directory and root (CLONE_FS), so that it can
// enter mount namespaces.
func NewThread() (*Thread, error) {
	t := &Thread{work: make(chan func()), done: make(chan struct{})}
	ready := make(chan error, 1)
	go OnOwnThread(func() {
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

// Do runs f on the thread.
func (t *Thread) Do(f func() error) error {
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

// Close ends the thread, and with it the processes that asked to die with it.
func (t *Thread) Close() {
	close(t.work)
	<-t.done
}

// OnOwnThread runs f on a thread that is thrown away afterwards, since f changes what the thread
// may see. The process's first thread is spared: the process is known by it in /proc.
func OnOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return // still locked: the runtime ends the thread
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		OnOwnThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

// Start starts a command that is killed, or gets its own Pdeathsig, when the thread ends.
func (t *Thread) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	cmd.SysProcAttr.Setsid = true // a terminal's interrupt is for this process, not for its children
	return t.Do(cmd.Start)
}
