package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func (tb *Testbed) slowData(ctx context.Context, n *node, p *process, seconds float64) (func(context.Context) error,
	error) {
	if !tb.cfg.hasFiles(n.id) {
		return nil, errNoFiles
	}
	return tb.slowCalls(ctx, n, p, "pread64,pwrite64,preadv,pwritev", seconds)
}

func (tb *Testbed) slowMeta(ctx context.Context, n *node, p *process, seconds float64) (func(context.Context) error,
	error) {
	if !tb.cfg.hasFiles(n.id) {
		return nil, errNoFiles
	}
	calls := "openat,lstat,newfstatat,unlink,mkdir,rmdir"
	if tb.cfg.Layer == NFS { // by file handle, and relative to directories
		calls += ",open_by_handle_at,unlinkat,mkdirat,fstat,statx"
	}
	return tb.slowCalls(ctx, n, p, calls, seconds)
}

var errNoFiles = fmt.Errorf("%w: a gateway has no file system (slow its back end, or what it sends)",
	errors.ErrUnsupported)

func (tb *Testbed) slowSend(ctx context.Context, n *node, p *process, seconds float64) (func(context.Context) error,
	error) {
	return tb.slowCalls(ctx, n, p, "sendmsg,sendto,write,writev", seconds)
}

// slowCalls delays the named system calls of a file service: strace stops each at its entry. Nothing else
// of the program changes, and the end of strace ends it.
func (tb *Testbed) slowCalls(ctx context.Context, n *node, p *process, calls string,
	seconds float64) (func(context.Context) error, error) {
	tracer, err := tb.trace(ctx, n, p, "-o", "/dev/null", "-e", "trace="+calls,
		"-e", fmt.Sprintf("inject=%s:delay_enter=%.0f", calls, seconds*1e6))
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return tracer.terminate() }, nil
}

// trace attaches strace with some arguments to every thread of a file service.
func (tb *Testbed) trace(ctx context.Context, n *node, p *process, argv ...string) (*process, error) {
	by, err := traced(p.pid())
	if err != nil {
		return nil, err
	}
	if by != 0 {
		return nil, fmt.Errorf("%s is traced by process %d already: clear its other fault of system calls first",
			p.what, by)
	}
	if _, err := lookProgram("strace"); err != nil {
		return nil, fmt.Errorf("%w: %w (apt-get install strace)", errors.ErrUnsupported, err)
	}
	argv = append([]string{"strace", "-f", "-q", "-p", strconv.Itoa(p.pid())}, argv...)
	tracer, err := tb.launch(tb.local(), "strace."+string(n.id), argv...)
	if err != nil {
		return nil, err
	}
	err = tracer.awaitReady(ctx, func(context.Context) error {
		by, err := traced(p.pid())
		if err == nil && by == 0 {
			err = errors.New("not every thread is traced yet")
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errors.ErrUnsupported, err), tracer.terminate())
	}
	return tracer, nil
}

// traced returns the process that traces every thread of pid, 0 if one thread is not traced.
func traced(pid int) (int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d has no threads: %w", pid, errors.Join(err, syscall.ESRCH))
	}
	tracer := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		_, after, _ := bytes.Cut(b, []byte("TracerPid:"))
		line, _, _ := strings.Cut(string(after), "\n")
		if tracer, err = strconv.Atoi(strings.TrimSpace(line)); err != nil || tracer == 0 {
			return 0, err
		}
	}
	return tracer, nil
}
