package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The kernel ends the reading of requests when a mount is gone from every mount name space. A container, or a service
// with private mounts, that began while the mount was there has a copy of it, so that after an unmount requests may
// still come, for as long as that lives. Then the reading must be ended from this side.

// errStopped ends the loops of a device that was stopped.
var errStopped = errors.New("no more requests are wanted")

// wakeEvery is how often the threads that wait for requests are woken until they have ended.
const wakeEvery = 50 * time.Millisecond

// stop takes no further requests and returns when those that were taken are answered and the device is closed: whoever
// still sees the mount finds it not connected (ENOTCONN).
func (d *device) stop() error {
	if err := d.readNothing(); err != nil {
		return err
	}
	for {
		if err := wakeThreads(); err != nil {
			return err
		}
		select {
		case <-d.ended:
			return nil
		case <-time.After(wakeEvery):
		}
	}
}

// readNothing puts a file without content where requests were read from. A read that has begun goes on in the device.
func (d *device) readNothing() error {
	nothing, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", os.DevNull, err)
	}
	defer unix.Close(nothing)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if err := unix.Dup3(nothing, d.from, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("ending the reading of requests: %w", err)
	}
	return nil
}

// wakeThreads makes this process's threads begin again the system calls they wait in, and so look again at what a
// descriptor stands for. The signal is the one with which Go's runtime stops its threads for a moment, at any time.
func wakeThreads() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("this process's threads: %w", err)
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // a thread that is gone needs none
		}
	}
	return nil
}

// The kernel reports every signal of a waiting program, once, a timer's as well as a kill. Programs
// expect of a file system that only a signal which ends them ends their I/O.

// lookEvery is how often the caller of an interrupted operation is looked at again.
const lookEvery = 50 * time.Millisecond

// uninterrupted returns a context that a signal does not end unless it is the caller's end: the caller
// is being killed, or does not wait any more because the mount was aborted. done releases it.
func uninterrupted(ctx context.Context) (waits context.Context, done context.CancelFunc) {
	caller, ok := fuse.FromContext(ctx)
	if !ok {
		return ctx, func() {}
	}
	waits, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		for gone := 0; gone < 2; { // a thread on its way to sleep is not gone at the second look
			select {
			case <-waits.Done():
				return
			case <-time.After(lookEvery):
			}
			if gone++; waiting(caller.Pid) {
				gone = 0
			}
		}
		cancel()
	})
	return waits, func() { stop(); cancel() }
}

// sigKill is SIGKILL's bit in the masks of /proc/PID/status. The kernel also marks with it the threads
// of a process that another signal ends.
const sigKill = 1 << 8

// waiting reports whether a thread that was interrupted still waits in the kernel: its sleep can only
// be ended by a kill then. A thread that cannot be seen from here counts as waiting.
func waiting(tid uint32) bool {
	status, err := statusOf(tid)
	if err != nil {
		return tid == 0 || !errors.Is(err, fs.ErrNotExist)
	}
	killed := func(name string) bool {
		mask, err := strconv.ParseUint(status[name], 16, 64)
		return err == nil && mask&sigKill != 0
	}
	return strings.HasPrefix(status["State"], "D") && !killed("SigPnd") && !killed("ShdPnd")
}

// statusOf reads what the kernel says of a process or thread, by name.
func statusOf(pid uint32) (map[string]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	values := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		values[name] = strings.TrimSpace(value)
	}
	return values, err
}
