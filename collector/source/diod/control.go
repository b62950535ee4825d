package diod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"syscall"
	"time"

	"fairway/collector"
	"fairway/collector/p9"
)

// control is diod's control tree.
type control interface {
	// ReadFile reads a file into buf, grown as needed. A file that does not exist is ENOENT.
	ReadFile(ctx context.Context, name string, buf []byte) ([]byte, error)
	// Wait waits until it is time for the next Look; false says that ctx has ended or Close was called.
	Wait(ctx context.Context) bool
	// Look returns tpools as it was a moment ago without waiting; ok is false before the first.
	Look() (text []byte, ok bool, err error)
	// Attach opens an exported tree or a folder below one.
	Attach(ctx context.Context, tree string) (anchor, error)
	Close() error
}

// anchor is an idle attach, which keeps a tree's worker pool and counters alive.
type anchor interface {
	TimeGetAttr(ctx context.Context) (time.Duration, error)
	Clunk(ctx context.Context) error
}

// remote is the control tree of a running diod.
type remote struct {
	client *p9.Client
	gauge  *p9.Poller
	ticks  *ticker
	ctl    *p9.Fid
	uid    uint32
}

// controlMessage is the message size asked for: a control file of some hundred trees fits in one.
const controlMessage = 64 << 10

func dialDiod(addr string, uid uint32, hz int) func(context.Context) (control, error) {
	return func(ctx context.Context) (control, error) {
		c, err := p9.Dial(ctx, addr, controlMessage)
		if err != nil {
			return nil, fmt.Errorf("diod %s: %w", addr, err)
		}
		ctl, err := c.Attach(ctx, "ctl", uid)
		if err != nil {
			c.Close()
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
				return nil, fmt.Errorf("diod %s: its control tree is not exported to us (start it with -e ctl): %w",
					addr, err)
			}
			return nil, fmt.Errorf("diod %s: control tree: %w", addr, err)
		}
		gauge, err := p9.DialPoller(ctx, addr, "ctl", "tpools", uid)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("diod %s: queue gauge: %w", addr, err)
		}
		ticks, err := newTicker(time.Second / time.Duration(hz))
		if err != nil {
			return nil, errors.Join(err, c.Close(), gauge.Close())
		}
		return &remote{client: c, gauge: gauge, ticks: ticks, ctl: ctl, uid: uid}, nil
	}
}

// Look is one write and one read on a connection of its own.
func (r *remote) Wait(ctx context.Context) bool { return ctx.Err() == nil && r.ticks.wait() }

func (r *remote) Look() (text []byte, ok bool, err error) { return r.gauge.Look() }

// ReadFile takes one read where the file fits into buf: 4 requests in all.
func (r *remote) ReadFile(ctx context.Context, name string, buf []byte) ([]byte, error) {
	const first = 16 << 10
	if cap(buf) < first {
		buf = make([]byte, 0, first)
	}
	buf = buf[:0]
	f, err := r.ctl.Walk(ctx, name)
	if err != nil {
		return buf, err
	}
	defer f.ClunkLater() // a hung forwarder must not hold the tick past its deadline
	if err := f.Open(ctx, syscall.O_RDONLY); err != nil {
		return buf, err
	}
	for {
		room := buf[len(buf):cap(buf)]
		n, err := f.ReadAt(ctx, room, int64(len(buf)))
		buf = buf[:len(buf)+n]
		switch {
		case err != nil && err != io.EOF:
			return buf, err
		case n == 0, n < len(room) && buf[len(buf)-1] == '\n':
			return buf, nil
		case len(buf) >= maxFile:
			return buf, fmt.Errorf("%s: more than %d bytes", name, maxFile)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// maxFile bounds a control file: some ten thousand trees.
const maxFile = 4 << 20

// Attach attaches as the user the agent runs as.
func (r *remote) Attach(ctx context.Context, tree string) (anchor, error) {
	return r.client.Attach(ctx, tree, r.uid)
}

// Close ends both connections and a Wait.
func (r *remote) Close() error {
	return errors.Join(r.ticks.close(), r.client.Close(), r.gauge.Close())
}

// ticksPerSecond is the unit of CPU times in /proc on every Linux that runs diod (USER_HZ).
const ticksPerSecond = 100

// cpuReader reads a process's CPU time and remembers its file's name.
type cpuReader struct {
	pid  int
	path string
}

func (c *cpuReader) read(proc fs.FS, pid int) (ticks uint64, err error) {
	if c.pid != pid {
		c.pid, c.path = pid, strconv.Itoa(pid)+"/stat"
	}
	text, err := fs.ReadFile(proc, c.path)
	if err != nil {
		return 0, err
	}
	if ticks, err = parseCPU(text); err != nil {
		return 0, fmt.Errorf("/proc/%s: %w", c.path, err)
	}
	return ticks, nil
}

// parseCPU sums user and system time of a stat file (fields 14 and 15). The command's name, which
// may hold spaces and brackets, ends at the last bracket.
func parseCPU(text []byte) (ticks uint64, err error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // behind the name
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields behind the name, want more than %d", len(fields), system)
	}
	u, ok1 := collector.Decimal(fields[user])
	s, ok2 := collector.Decimal(fields[system])
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("CPU times %q and %q are not numbers", fields[user], fields[system])
	}
	return u + s, nil
}
