package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"fairway/tsdb"
	"fairway/tsdb/engine/disk"
)

// base is what every part of an open store has in common.
type base struct {
	opts    Options
	dir     string
	fs      disk.Files
	log     *slog.Logger
	damages *disk.Damages
	closed  atomic.Bool
	stop    chan struct{} // closed by Close
}

func newBase(dir string, opts Options) *base {
	if opts.SyncInterval == 0 {
		opts.SyncInterval = time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.fs == nil {
		opts.fs = disk.OS{}
	}
	return &base{opts: opts, dir: dir, fs: opts.fs, log: opts.Log, stop: make(chan struct{}),
		damages: disk.NewDamages(opts.Log)}
}

// check returns ErrClosed after Close.
func (b *base) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.closed.Load() {
		return tsdb.ErrClosed
	}
	return nil
}
