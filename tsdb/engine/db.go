// Package engine is the embedded store: a write-ahead log, blocks of two minutes, and down-sampled tiers of them, in one
// directory. docs/store-format.md describes its files.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// Limits of what the engine takes in.
const (
	maxColumns = 64      // metrics of one node; a row's changes are a 64-bit mask
	maxNodes   = 1 << 20 // names; beyond it frames of new nodes are refused
	maxName    = 255     // bytes of a node's name
	minSecond  = 0       // 1970
	maxSecond  = 1 << 33 // the year 2242
	// maxUnsynced bounds what is kept in memory while the disk takes nothing.
	maxUnsynced = 256 << 20
	// cutRecord is the size from which a log record is ended; maxRecord is far above it.
	cutRecord = 8 << 20
)

// The mask of a row has a bit per column.
var _ [maxColumns - collector.MetricCount]struct{}

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
	// RetentionBytes removes the oldest hours while the blocks take more; 0 is no limit.
	RetentionBytes int64
	// Keep10s and Keep5m keep down-sampled tiers for so long: per 10 s and per 5 min and metric the
	// sum, the count, the least, the greatest, and the seconds at or above the threshold of the peak.
	// They answer for what the retention of the seconds removed. 0: none is made; the tier of 5 min is
	// made from that of 10 s and needs it.
	Keep10s, Keep5m time.Duration

	fs files // nil is the machine's own
}

// DB is the embedded engine: a directory with a write-ahead log and sealed blocks, and the open
// blocks in memory. docs/store-format.md describes the files.
type DB struct {
	opts Options
	dir  string
	log  *slog.Logger
	fs   files
	lock io.Closer

	view atomic.Pointer[view]
	// live has every node's newest row, by node number / 64.
	live    atomic.Pointer[[]*liveChunk]
	numbers sync.Map // topology.NodeID -> int, the node's number
	indexes indexCache
	closed  atomic.Bool

	saving  sync.Mutex // held while the dictionary of names is written
	sealing sync.Mutex // held while a block is sealed, and guards scratch, late and torn
	scratch sealScratch

	tiers []*tier   // set by Open
	late  lateSpans // of tiers that were made before rows that are sealed or about to be
	torn  bool      // the tiers' newest blocks were looked at for what a power cut left

	committing sync.Mutex // held by who commits; guards wal and nextCommit
	nextCommit time.Time  // the earliest time of the next commit

	mu        sync.Mutex // guards what follows
	table     *nodeTable
	rec       *recordWriter // nil while the log is replayed
	cut       [][]byte      // finished records that the committer has not taken
	spare     []byte        // a buffer for the next one; nil without
	recBlocks []uint64      // blocks named by cut and rec
	row       rowBuffer
	lastNode  int // the node of the frame before, whose follower is likely the next
	nextBlock uint64
	layouts   map[string]*layout
	newest    *layout // that layoutFor returned last
	round     *round  // the commit that what is appended now will be part of
	unsynced  int     // bytes handed to the committer and not yet durable
	damages   []Damage
	reported  map[Damage]bool
	limits    map[topology.NodeID]float64 // bytes/s from which a second is occupied
	useCount  int64                       // of blocks by appends
	rotate    bool                        // the next commit begins a new log segment
	room      chan struct{}               // closed when a block was sealed
	sealErr   error                       // why the newest attempt failed
	// checked are the blocks that were read in full to see whether the log is still needed; only
	// Open uses it.
	checked map[*frame]*[]Damage
	// wholeFrom is the block id from which on the log has all rows; only Open uses it.
	wholeFrom uint64

	wal      *writeLog
	kick     chan struct{}
	sealKick chan struct{}
	stop     chan struct{}
	done     sync.WaitGroup
}

// view is an immutable list of what readers look at.
type view struct {
	open  []*openBlock // by start, then id
	files []*blockFile // by hour
}

// round is one group commit; err is set before done is closed.
type round struct {
	done chan struct{}
	err  error
}

// Open opens the store in a directory, makes it where there is none, and replays its log. It fails
// when another process has it open, when a file was written by a newer version, or when the
// directory cannot be read or written; damaged data is left out, logged and listed by Damages.
func Open(dir string, opts Options) (*DB, error) {
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
	if opts.Keep5m > 0 && opts.Keep10s <= 0 {
		return nil, errors.New("open store: the tier of 5 min is made from that of 10 s, which is not kept")
	}
	wal := filepath.Join(dir, "wal")
	for _, d := range []string{wal, filepath.Join(dir, blocksDir)} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	db := &DB{
		opts: opts, dir: dir, log: opts.Log, fs: opts.fs, lock: lock,
		layouts: map[string]*layout{},
		wal:     &writeLog{fs: opts.fs, dir: wal},
		kick:    make(chan struct{}, 1), sealKick: make(chan struct{}, 1), stop: make(chan struct{}),
		room: make(chan struct{}), reported: map[Damage]bool{}, checked: map[*frame]*[]Damage{},
		round: &round{done: make(chan struct{})},
	}
	db.view.Store(&view{})
	db.live.Store(&[]*liveChunk{})
	if err := db.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), lock.Close())
	}
	db.done.Add(2)
	go db.commits()
	go db.seals()
	return db, nil
}

func (db *DB) load() error {
	table, damages, err := loadNodes(filepath.Join(db.dir, nodesFile))
	if err != nil {
		return err
	}
	db.table = table
	for _, d := range damages {
		db.damaged(d)
	}
	for i, e := range table.entries {
		if e.name != "" {
			db.numbers.Store(e.name, i)
		}
	}
	db.growLive()
	if err := db.loadFiles(); err != nil {
		return err
	}
	if err := db.openTiers(); err != nil {
		return err
	}
	if err := db.replay(); err != nil {
		return err
	}
	db.checked = nil
	dirs := []string{"", "wal", blocksDir}
	for _, dir := range append(dirs, tierDirs(db.dir)...) { // a file that a crash left may have an unsynced name
		dir = filepath.Join(db.dir, dir)
		if err := db.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	db.rec = &recordWriter{}
	db.rec.reset(nil)
	return nil
}

// Damages lists what was found damaged and left out since Open.
func (db *DB) Damages() []Damage {
	db.mu.Lock()
	defer db.mu.Unlock()
	return append([]Damage(nil), db.damages...)
}

// damaged notes and logs a damage; the caller holds mu or is Open.
func (db *DB) damaged(d Damage) {
	const keep = 1000
	if db.reported[d] || len(db.damages) == keep {
		return
	}
	db.reported[d] = true
	db.damages = append(db.damages, d)
	db.log.Error("the store has a damaged file; the rest is used", "damage", d.String())
}

// report notes a damage that a reader met.
func (db *DB) report(d Damage) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.damaged(d)
}

// Append implements Store. It waits for the next group fsync; the samples are visible to readers
// before that. A frame without a usable name or time is refused with an error that names it; the
// others of the same call are stored.
func (db *DB) Append(ctx context.Context, frames []collector.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	if db.closed.Load() {
		db.mu.Unlock()
		return tsdb.ErrClosed
	}
	if db.unsynced+len(db.rec.buf) > maxUnsynced {
		db.mu.Unlock()
		return fmt.Errorf("append: %d MB wait for a disk that takes no writes; nothing more is taken until it does",
			maxUnsynced>>20)
	}
	if err := db.waitForRoom(ctx); err != nil {
		db.mu.Unlock()
		return err
	}
	refused := db.write(frames)
	r := db.round
	db.mu.Unlock()
	if ctx.Done() == nil && db.commitNow() {
		return errors.Join(refused, r.err)
	}
	nudge(db.kick)
	select {
	case <-r.done:
		return errors.Join(refused, r.err)
	case <-ctx.Done():
		return fmt.Errorf("append: not known to be durable: %w", ctx.Err())
	}
}

// nudge wakes the goroutine that waits for c, unless it has been nudged already.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// waitForRoom waits until the sealer has kept up; the caller holds mu, also after it.
func (db *DB) waitForRoom(ctx context.Context) error {
	for {
		if db.closed.Load() {
			return tsdb.ErrClosed
		}
		open := len(db.view.Load().open)
		if open > keepOpen {
			nudge(db.sealKick)
		}
		if open <= maxOpen {
			return nil
		}
		if db.sealErr != nil {
			return fmt.Errorf("append: %d blocks wait to be sealed: %w", open, db.sealErr)
		}
		room := db.room
		db.mu.Unlock()
		var err error
		select {
		case <-room:
		case <-db.stop:
			err = tsdb.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		db.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// commits is the committer: it makes what was appended durable, at most once per SyncInterval.
func (db *DB) commits() {
	defer db.done.Done()
	for {
		select {
		case <-db.kick:
		case <-db.stop:
			return
		}
		db.committing.Lock()
		wait := time.Until(db.nextCommit)
		db.committing.Unlock()
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-db.stop:
				return
			}
		}
		db.committing.Lock()
		db.commit()
		db.committing.Unlock()
	}
}

// commitNow commits in the appender's goroutine when that need not wait for another commit: where one stream brings
// all rows of a second, waking the committer would cost as much as taking them. Only for an append that cannot be
// called off, for a disk may hang.
func (db *DB) commitNow() bool {
	if !db.committing.TryLock() {
		return false
	}
	defer db.committing.Unlock()
	if db.closed.Load() || time.Until(db.nextCommit) > 0 {
		return false
	}
	db.commit()
	return true
}

// commit writes and syncs everything appended so far and answers those who wait for it; the caller holds committing.
func (db *DB) commit() {
	defer func() { db.nextCommit = time.Now().Add(db.opts.SyncInterval) }()
	db.mu.Lock()
	r := db.round
	db.round = &round{done: make(chan struct{})}
	db.cutRecord()
	for _, rec := range db.cut {
		db.wal.add(rec, db.recBlocks)
	}
	clear(db.cut)
	db.cut, db.recBlocks = db.cut[:0], db.recBlocks[:0]
	rotate, taken := db.rotate, db.unsynced
	db.rotate = false
	db.wal.nextBlock = db.nextBlock + 1
	db.mu.Unlock()

	if r.err = db.saveNames(); r.err == nil && rotate {
		r.err = db.wal.rotate()
	}
	var spare []byte
	if r.err == nil {
		spare, r.err = db.wal.flush()
	}
	if r.err == nil {
		if err := db.wal.forget(db.isOpen); err != nil {
			db.log.Warn("an old log segment stays", "error", err)
		}
	}
	db.mu.Lock()
	if r.err == nil {
		db.unsynced -= taken
		if cap(spare) <= cutRecord {
			db.spare = spare
		}
	} else {
		db.log.Error("appended samples are not durable yet", "error", r.err)
	}
	db.mu.Unlock()
	close(r.done)
}

// isOpen says whether an open block with this id still has rows that only the log keeps.
func (db *DB) isOpen(id uint64) bool {
	return slices.ContainsFunc(db.view.Load().open, func(b *openBlock) bool { return b.id == id })
}

// saveNames makes the dictionary on disk as new as the one in memory.
func (db *DB) saveNames() error {
	db.saving.Lock()
	defer db.saving.Unlock()
	db.mu.Lock()
	names := db.table.unsaved()
	db.mu.Unlock()
	if names == nil {
		return nil
	}
	err := saveNodes(db.fs, db.dir, names)
	if err != nil {
		db.mu.Lock()
		db.table.changed = true
		db.mu.Unlock()
	}
	return err
}

// Close implements Store: it makes everything durable and releases the directory.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed.Load() {
		db.mu.Unlock()
		return tsdb.ErrClosed
	}
	db.closed.Store(true)
	db.mu.Unlock()
	close(db.stop)
	db.done.Wait()
	db.committing.Lock()
	defer db.committing.Unlock()
	db.mu.Lock()
	r := db.round
	db.mu.Unlock()
	db.commit()
	err := errors.Join(r.err, db.wal.close())
	for _, f := range db.view.Load().files {
		err = errors.Join(err, f.close())
	}
	return errors.Join(err, db.lock.Close())
}

// check returns ErrClosed after Close.
func (db *DB) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.closed.Load() {
		return tsdb.ErrClosed
	}
	return nil
}

// Nodes implements Store.
func (db *DB) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	return db.nodeInfos(), nil
}

// number returns a node's number, -1 for a name the store does not know.
func (db *DB) number(name topology.NodeID) int {
	if i, ok := db.numbers.Load(name); ok {
		return i.(int)
	}
	return -1
}
