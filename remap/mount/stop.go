package mount

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

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
