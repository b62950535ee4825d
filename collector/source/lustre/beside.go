package lustre

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// beside reads tables that may take longer than a tick: one reading at a time, which ends with the source.
type beside[T any] struct {
	done  chan struct{} // closed when the reading under way has ended; nil: none is
	found T
	took  time.Duration // of a processor, by the last one that has ended

	mu     sync.Mutex // guards what follows: a source may be closed while it reads
	stop   context.CancelFunc
	closed bool
}

// way says that a reading is under way.
func (b *beside[T]) way() bool { return b.done != nil }

// begin starts a reading, which may take up to longestReading; after close it finds itself ended. Its processor time is
// that of its own thread, the kernel's work for it included.
func (b *beside[T]) begin(ctx context.Context, read func(context.Context) T) {
	reading, stop := context.WithTimeout(context.WithoutCancel(ctx), longestReading)
	b.mu.Lock()
	if b.stop = stop; b.closed {
		stop()
	}
	b.mu.Unlock()
	done := make(chan struct{})
	b.done = done
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began := threadTime()
		b.found = read(reading)
		b.took = threadTime() - began
	}()
}

// take returns what a reading found that has ended, once.
func (b *beside[T]) take() (found T, ended bool) {
	select {
	case <-b.done: // never where none is under way
	default:
		return found, false
	}
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	found, b.done = b.found, nil
	return found, true
}

// close ends a reading that is under way, and lets none begin.
func (b *beside[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed = true; b.stop != nil {
		b.stop()
	}
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
