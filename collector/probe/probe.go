// Package probe sends canary I/O through one forwarder: a small write, a read of it and a stat, to learn of an idle or
// suspect one what no load shows.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"fairway/collector/p9"
	"fairway/collector/topology"
)

// Way is how a forwarder is reached.
type Way interface {
	// Probe writes, reads and stats once and says how long each took.
	Probe(ctx context.Context) (Took, error)
	// Bytes is what one probe moves, both directions together.
	Bytes() int
}

// Took is how long each operation of one probe took; 0 is one that was not reached.
type Took struct{ Read, Write, Meta time.Duration }

// Result is one probe. After an error Took holds what came before it.
type Result struct {
	Node  topology.NodeID
	At    time.Time // of its start
	Bytes int       // that it moves, both directions together
	Took
	Err error
}

// By9P probes a 9P2000.L forwarder, by a connection of its own for each probe: what a connection
// kept open would hide, a client that starts would suffer.
type By9P struct {
	Addr   string // HOST:PORT
	Export string // attach name of a tree that may be written
	File   string // name of the canary's file in it
	UID    uint32
	Size   int // bytes written, then read
}

// Bytes implements Way.
func (w By9P) Bytes() int { return 2 * w.Size }

// Probe implements Way. The file stays: making one anew each time would measure the directory.
func (w By9P) Probe(ctx context.Context) (took Took, err error) {
	c, err := p9.Dial(ctx, w.Addr, 64<<10)
	if err != nil {
		return took, fmt.Errorf("canary: %w", err)
	}
	defer c.Close()
	root, err := c.Attach(ctx, w.Export, w.UID)
	if err != nil {
		return took, fmt.Errorf("canary: attach %s at %s: %w", w.Export, w.Addr, err)
	}
	file, err := w.open(ctx, root)
	if err != nil {
		return took, fmt.Errorf("canary: %s in %s at %s: %w", w.File, w.Export, w.Addr, err)
	}
	buf := make([]byte, w.Size)
	for _, step := range []struct {
		name string
		took *time.Duration
		do   func() error
	}{
		{"write", &took.Write, func() error { _, err := file.WriteAt(ctx, buf, 0); return err }},
		{"read", &took.Read, func() error { _, err := file.ReadAt(ctx, buf, 0); return err }},
		{"stat", &took.Meta, func() error { return w.stat(ctx, root) }},
	} {
		begun := time.Now()
		err := step.do()
		*step.took = time.Since(begun)
		if err != nil {
			return took, fmt.Errorf("canary: %s at %s: %w", step.name, w.Addr, err)
		}
	}
	return took, file.Clunk(ctx)
}

const (
	openRDWR  = 2
	openCreat = 0o100
)

func (w By9P) open(ctx context.Context, root *p9.Fid) (*p9.Fid, error) {
	f, err := root.Walk(ctx, w.File)
	if err == nil {
		return f, f.Open(ctx, openRDWR)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if f, err = root.Walk(ctx); err != nil {
		return nil, err
	}
	return f, f.Create(ctx, w.File, openRDWR|openCreat, 0o600, 0)
}

// stat looks the file up by its name, as a client's stat does.
func (w By9P) stat(ctx context.Context, root *p9.Fid) error {
	f, err := root.Walk(ctx, w.File)
	if err != nil {
		return err
	}
	if _, err = f.GetAttr(ctx); err != nil {
		return err
	}
	return f.Clunk(ctx)
}
