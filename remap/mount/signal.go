package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return tid == 0 || !errors.Is(err, fs.ErrNotExist)
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(name) {
		case "State":
			if !bytes.HasPrefix(value, []byte("D")) {
				return false
			}
		case "SigPnd", "ShdPnd":
			if mask, err := strconv.ParseUint(string(value), 16, 64); err == nil && mask&sigKill != 0 {
				return false
			}
		}
	}
	return true
}
