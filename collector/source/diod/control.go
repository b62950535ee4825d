package diod

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

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

func dialDiod(addr string, uid uint32) func(context.Context) (control, error) {
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
		ticks, err := newTicker(time.Second / queueHz)
		if err != nil {
			return nil, errors.Join(err, c.Close(), gauge.Close())
		}
		return &remote{client: c, gauge: gauge, ticks: ticks, ctl: ctl, uid: uid}, nil
	}
}

// Look is one write and one read on a connection of its own.
func (r *remote) Wait(ctx context.Context) bool { return ctx.Err() == nil && r.ticks.wait() }

func (r *remote) Look() (text []byte, ok bool, err error) { return r.gauge.Look() }

// ReadFile reads a file of the control tree.
func (r *remote) ReadFile(ctx context.Context, name string, buf []byte) ([]byte, error) {
	return r.ctl.ReadFile(ctx, buf, maxFile, name)
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
