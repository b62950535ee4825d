package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/log"
	"fairway/tsdb/engine/tier"
)

// BlockSeconds is the span of a block. Blocks begin at multiples of it since the epoch.
const BlockSeconds = column.Seconds

// ErrNewerFormat says that a file was written by a newer version of the program.
var ErrNewerFormat = disk.ErrNewerFormat

// maxUnsynced bounds what is kept in memory while the disk takes nothing.
const maxUnsynced = 256 << 20

// Damage is one thing that a reader found wrong with a file of the store, and what it cost.
type Damage = disk.Damage

// Options are the settings of the embedded engine; the zero value is complete.
type Options struct {
	// SyncInterval is the shortest time between two fsyncs of the log; appends wait for the next
	// one. 0 is one second.
	SyncInterval time.Duration
	// Now is the daemon's clock; nil is time.Now. It decides when a block is old enough to seal,
	// never whether a sample is taken.
	Now func() time.Time
	Log *slog.Logger // nil is slog.Default()
	// RetentionAge removes seconds that are older, an hour at a time; 0 keeps them.
	RetentionAge time.Duration
	// RetentionBytes removes the oldest hours while the blocks take more; 0: unlimited.
	RetentionBytes int64
	// Keep10s and Keep5m keep down-sampled tiers for so long: per 10 s and per 5 min and metric the
	// sum, the count, the least, the greatest, and the seconds at or above the threshold of the peak.
	// They answer for what the retention of the seconds removed. 0: none is made; the tier of 5 min is
	// made from that of 10 s and needs it.
	Keep10s, Keep5m time.Duration

	fs disk.Files // nil is the machine's own
}

// DB is the embedded engine: a directory with a write-ahead log and sealed blocks, and the open
// blocks in memory. The package comment describes the files.
type DB struct {
	*base
	lock    io.Closer
	head    *head
	commits *committer
	sealer  *sealer
	tiers   *tier.Set
	running sync.WaitGroup
}

// Open opens the store in a directory, makes it where it is missing, and replays its log. It fails
// when another process has it open, when a file was written by a newer version, or when the
// directory cannot be read or written; damaged data is left out, logged and listed by Damages.
func Open(dir string, opts Options) (*DB, error) {
	if opts.Keep5m > 0 && opts.Keep10s <= 0 {
		return nil, errors.New("open store: the tier of 5 min is made from that of 10 s, which is not kept")
	}
	b := newBase(dir, opts)
	wal := filepath.Join(dir, "wal")
	for _, d := range []string{wal, filepath.Join(dir, blocksDir)} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	lock, err := disk.Lock(dir)
	if err != nil {
		return nil, err
	}
	h := newHead(b)
	c := &committer{base: b, head: h, wal: log.New(b.fs, wal), kick: make(chan struct{}, 1)}
	s := &sealer{base: b, head: h, commits: c, kick: make(chan struct{}, 1), room: make(chan struct{})}
	db := &DB{base: b, lock: lock, head: h, commits: c, sealer: s}
	if err := db.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), lock.Close())
	}
	db.running.Go(c.run)
	db.running.Go(s.run)
	return db, nil
}

func (db *DB) load() error {
	if err := db.head.nodes.load(db.base); err != nil {
		return err
	}
	if err := db.head.blocks.Load(); err != nil {
		return err
	}
	tiers, err := tier.Open(tier.Config{Files: db.fs, Dir: db.dir, Log: db.log, Report: db.damages.Report,
		Keep10s: db.opts.Keep10s, Keep5m: db.opts.Keep5m, Seconds: db.head.blocks, Readers: db.head.readers,
		Nodes: db.head.tierNodes, SaveNames: db.commits.saveNames})
	if err != nil {
		return err
	}
	db.tiers, db.sealer.tiers = tiers, tiers
	if err := db.head.replay(db.commits.wal); err != nil {
		return err
	}
	dirs := []string{"", "wal", blocksDir}
	for _, dir := range append(dirs, tier.Dirs(db.dir)...) { // a file that a crash left may have an unsynced name
		dir = filepath.Join(db.dir, dir)
		if err := db.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	db.head.pending.Begin()
	return nil
}

// Damages lists what was found damaged and left out since Open.
func (db *DB) Damages() []Damage { return db.damages.All() }

// Append implements Store. It waits for the next group fsync; the samples are visible to readers
// before that. A frame without a usable name or time is refused with an error that names it; the
// others of the same call are stored.
func (db *DB) Append(ctx context.Context, frames []collector.Frame) error {
	r, refused, err := db.enter(ctx, frames)
	if err != nil {
		return err
	}
	if ctx.Done() == nil && db.commits.tryNow() {
		return errors.Join(refused, r.err)
	}
	return db.durable(ctx, r, refused)
}

// Enter is the first half of Append: readers see the samples when it returns, which needs no disk. What it returns is
// the second half, the wait for the fsync.
func (db *DB) Enter(ctx context.Context, frames []collector.Frame) (durable func(context.Context) error, err error) {
	r, refused, err := db.enter(ctx, frames)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return db.durable(ctx, r, refused) }, nil
}

// enter takes frames into memory; they are durable when the round is done. refused names those left out.
func (db *DB) enter(ctx context.Context, frames []collector.Frame) (r *round, refused, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	db.head.mu.Lock()
	defer db.head.mu.Unlock()
	if db.closed.Load() {
		return nil, nil, tsdb.ErrClosed
	}
	if db.head.pending.Bytes() > maxUnsynced {
		return nil, nil,
			fmt.Errorf("append: %d MB wait for a disk that takes no writes; nothing more is taken until it does",
				maxUnsynced>>20)
	}
	refused, err = db.write(ctx, frames)
	return db.head.round, refused, err
}

func (db *DB) durable(ctx context.Context, r *round, refused error) error {
	nudge(db.commits.kick)
	select {
	case <-r.done:
		return errors.Join(refused, r.err)
	case <-ctx.Done():
		return fmt.Errorf("append: not known to be durable: %w", ctx.Err())
	}
}

// write takes the frames span by span, so that frames of many spans never have more blocks open than others' do; the
// caller holds the head's lock. What one commit after another takes is durable with the last of them.
func (db *DB) write(ctx context.Context, frames []collector.Frame) (refused, err error) {
	for first := true; first || len(frames) > 0; first = false {
		n := spanLength(frames)
		if n < len(frames) && first {
			frames = slices.Clone(frames)
			slices.SortStableFunc(frames,
				func(a, b collector.Frame) int { return cmp.Compare(a.TimeMillis, b.TimeMillis) })
			n = spanLength(frames)
		}
		if err := db.sealer.waitForRoom(ctx, frames[:n]); err != nil {
			return refused, err
		}
		refused = errors.Join(refused, db.head.write(frames[:n]))
		frames = frames[n:]
	}
	return refused, nil
}

// spanLength returns how many of the first frames are of one block's span.
func spanLength(frames []collector.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	const span = column.Seconds * 1000
	from := tsdb.FloorDiv(frames[0].TimeMillis, span) * span
	for i := range frames {
		if t := frames[i].TimeMillis; t < from || t >= from+span {
			return i
		}
	}
	return len(frames)
}

// Close implements Store: it makes everything durable and releases the directory.
func (db *DB) Close() error {
	db.head.mu.Lock()
	if db.closed.Load() {
		db.head.mu.Unlock()
		return tsdb.ErrClosed
	}
	db.closed.Store(true)
	db.head.mu.Unlock()
	close(db.stop)
	db.running.Wait()
	db.commits.mu.Lock()
	defer db.commits.mu.Unlock()
	db.head.mu.Lock()
	r := db.head.round
	db.head.mu.Unlock()
	db.commits.commit()
	return errors.Join(r.err, db.commits.wal.Close(), db.head.blocks.Close(), db.lock.Close())
}

// Nodes implements Store.
func (db *DB) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	db.head.mu.Lock()
	entries := slices.Clone(db.head.nodes.entries)
	db.head.mu.Unlock()
	return nodeInfos(entries), nil
}

// Hours lists the hours, as their Unix seconds, that the store may have samples of, ascending.
func (db *DB) Hours(ctx context.Context) ([]int64, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	return db.head.blocks.Hours(), nil
}

// SetPeaks says what the nodes' peak bandwidths are. Blocks that are sealed from now on count the occupied seconds in
// their index, which makes Occupancy with these peaks and DefaultThreshold fast; any other figures give the same
// answers from the data.
func (db *DB) SetPeaks(peakBytesPerSec map[topology.NodeID]float64) {
	limits := make(map[topology.NodeID]float64, len(peakBytesPerSec))
	for node, peak := range peakBytesPerSec {
		limits[node] = tsdb.DefaultThreshold * peak
	}
	db.head.mu.Lock()
	defer db.head.mu.Unlock()
	db.head.limits = limits
}

// Flush seals every open block.
func (db *DB) Flush(ctx context.Context) error {
	for {
		if err := db.check(ctx); err != nil {
			return err
		}
		if err := db.sealer.next(true); err != nil {
			if errors.Is(err, errNothingToSeal) {
				return nil
			}
			return err
		}
	}
}

// Tiers lists, oldest first, the stretches of which only buckets are left and that have a part in
// [fromMillis, toMillis), in whole buckets.
func (db *DB) Tiers(fromMillis, toMillis int64) ([]tsdb.Tier, error) {
	from, to := secondRange(fromMillis, toMillis)
	from, to = tsdb.FloorDiv(from, tier.Coarsest)*tier.Coarsest, -tsdb.FloorDiv(-to, tier.Coarsest)*tier.Coarsest
	parts, err := db.tiers.Parts(from, to, 0)
	var out []tsdb.Tier
	for i := range parts {
		out = append(out, parts[i].Tier())
	}
	return out, err
}
