package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairway/tsdb"
)

// base is what every part of an open store has in common.
type base struct {
	opts    Options
	dir     string
	fs      files
	log     *slog.Logger
	damages damageList
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
		opts.fs = osFiles{}
	}
	return &base{opts: opts, dir: dir, fs: opts.fs, log: opts.Log, stop: make(chan struct{}),
		damages: damageList{log: opts.Log, seen: map[Damage]bool{}}}
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

// Damage is one thing that a reader found wrong with a file of the store, and what it cost.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Lost   string `json:"lost"`
}

// String returns the damage as one line for a log or a report.
func (d Damage) String() string {
	return fmt.Sprintf("%s at byte %d: %s; lost: %s", d.File, d.Offset, d.What, d.Lost)
}

// damageList is what was found damaged since Open.
type damageList struct {
	log *slog.Logger

	mu   sync.Mutex // guards what follows
	list []Damage
	seen map[Damage]bool
}

// report notes and logs a damage.
func (l *damageList) report(d Damage) {
	const keep = 1000
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[d] || len(l.list) == keep {
		return
	}
	l.seen[d] = true
	l.list = append(l.list, d)
	l.log.Error("the store has a damaged file; the rest is used", "damage", d.String())
}

func (l *damageList) all() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Damage(nil), l.list...)
}
