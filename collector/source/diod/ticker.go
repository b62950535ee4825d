package diod

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ticker says when to look at the gauge. It is a timer of the kernel's behind the runtime's poller: a
// timer of the runtime's own wakes two threads each time, since the runtime's monitor sleeps until the
// next one too, and most of what a look costs is waking up.
type ticker struct {
	file *os.File
	conn syscall.RawConn
}

func newTicker(every time.Duration) (*ticker, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a timer for the queue samples: %w", err)
	}
	t := &ticker{file: os.NewFile(uintptr(fd), "timer")}
	each := unix.NsecToTimespec(int64(every))
	err = unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: each, Value: each}, nil)
	if err == nil {
		t.conn, err = t.file.SyscallConn()
	}
	if err != nil {
		t.file.Close()
		return nil, fmt.Errorf("a timer for the queue samples: %w", err)
	}
	return t, nil
}

// wait returns when it is time again; false says that the ticker is closed. Ticks that nobody waited
// for are one.
func (t *ticker) wait() bool {
	var passed uint64
	return t.conn.Read(func(fd uintptr) (due bool) {
		// It never blocks, so the runtime need not know of it.
		_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&passed)), unsafe.Sizeof(passed))
		return errno != unix.EAGAIN
	}) == nil
}

// close ends a wait, too.
func (t *ticker) close() error { return t.file.Close() }
