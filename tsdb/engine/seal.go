package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb"
)

// When open blocks are sealed.
const (
	// sealIdleSeconds without an append seal a block: its span is over, or its late rows are in.
	sealIdleSeconds = 15
	// keepOpen blocks are left open when more are; the one longest without an append goes first.
	keepOpen = 3
	// maxOpen blocks make Append wait for the sealer.
	maxOpen = 12
)

// SetPeaks says what the nodes' peak bandwidths are and the share of it from which a second is
// occupied (0 is DefaultThreshold). Blocks that are sealed from now on count such seconds in their
// index, which makes Occupancy with the same figures fast; any other figures give the same answers
// from the data.
func (db *DB) SetPeaks(peakBytesPerSec map[topology.NodeID]float64, threshold float64) {
	if threshold == 0 {
		threshold = tsdb.DefaultThreshold
	}
	limits := make(map[topology.NodeID]float64, len(peakBytesPerSec))
	for node, peak := range peakBytesPerSec {
		limits[node] = threshold * peak
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.limits = limits
}

// seals is the sealer: it moves open blocks that are done to disk, without holding up appends.
func (db *DB) seals() {
	defer db.done.Done()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var retained time.Time
	for {
		select {
		case <-tick.C:
		case <-db.sealKick:
		case <-db.stop:
			return
		}
		for db.sealNext(false) == nil {
		}
		if now := db.opts.Now(); now.Sub(retained) >= retainEvery || now.Before(retained) {
			retained = now
			db.sealing.Lock()
			if err := db.makeTiers(now); err != nil {
				db.log.Error("the down-sampled tiers are behind", "error", err)
			}
			db.retain(now)
			db.sealing.Unlock()
		}
	}
}

// errNothingToSeal ends the sealer's round.
var errNothingToSeal = errors.New("no block to seal")

// sealNext seals one block that is due, or any when all is true.
func (db *DB) sealNext(all bool) error {
	db.sealing.Lock()
	defer db.sealing.Unlock()
	db.mu.Lock()
	b := db.due(all)
	if b == nil {
		db.mu.Unlock()
		return errNothingToSeal
	}
	b.closed = true
	limits, entries := db.limits, db.table.entries[:len(db.table.entries):len(db.table.entries)]
	db.mu.Unlock()
	err := db.logged(b)
	if err == nil {
		err = db.saveNames() // a block must not name nodes that the dictionary lacks
	}
	gone := false
	if err == nil {
		gone, err = db.removed(b.start)
	}
	if err == nil && !gone {
		err = db.noteLate(b.start)
	}
	if gone {
		db.log.Warn("rows older than the seconds that are kept are left out: only tiers are left of their hour",
			"start", b.start)
	} else if err == nil {
		block := encodeBlock(b, func(node int) float64 { return limits[entries[node].name] }, &db.scratch)
		err = db.blockFile(b.start).add(block)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sealErr = err
	if err != nil {
		if !errors.Is(err, tsdb.ErrClosed) {
			db.log.Error("a block is not sealed yet", "start", b.start, "error", err)
		}
		return err
	}
	db.dropBlock(b)
	return nil
}

// logged returns when all rows of a closed block are durable in the log. Without that a sealed block could have
// a number that the log of the next process does not know: it would give it to another block, whose
// rows it would then take for sealed.
func (db *DB) logged(b *openBlock) error {
	if b.round == nil {
		return nil
	}
	select {
	case <-b.round.done:
	default:
		nudge(db.kick)
		select {
		case <-b.round.done:
		case <-db.stop:
			return tsdb.ErrClosed
		}
	}
	err := b.round.err
	b.round = nil
	if err != nil { // the rows are part of the next commit
		db.mu.Lock()
		b.round = db.round
		db.mu.Unlock()
	}
	return err
}

// due chooses a block to seal; the caller holds mu. Blocks of one span go in the order in which
// they were opened.
func (db *DB) due(all bool) *openBlock {
	open := db.view.Load().open
	now := db.opts.Now().Unix()
	var oldest *openBlock
	waiting := 0
	for i, b := range open {
		if i > 0 && open[i-1].start == b.start {
			waiting++
			continue
		}
		if b.closed || all || now-b.last >= sealIdleSeconds || now < b.last-sealIdleSeconds {
			return b
		}
		if oldest == nil || b.used < oldest.used {
			oldest = b
		}
	}
	if len(open) > keepOpen {
		return oldest
	}
	return nil
}

// dropBlock takes a sealed block out of memory; the caller holds mu.
func (db *DB) dropBlock(b *openBlock) {
	old := db.view.Load()
	next := *old
	next.open = slices.DeleteFunc(slices.Clone(old.open), func(o *openBlock) bool { return o == b })
	db.view.Store(&next)
	close(db.room)
	db.room = make(chan struct{})
}

// Flush seals every open block.
func (db *DB) Flush(ctx context.Context) error {
	for {
		if err := db.check(ctx); err != nil {
			return err
		}
		if err := db.sealNext(true); err != nil {
			if errors.Is(err, errNothingToSeal) {
				return nil
			}
			return err
		}
	}
}

// blockFile returns the file that a second belongs to, adding it to the view where it is new.
func (db *DB) blockFile(sec int64) *blockFile {
	hour := floorDiv(sec, fileSeconds) * fileSeconds
	db.mu.Lock()
	defer db.mu.Unlock()
	old := db.view.Load()
	i, found := slices.BinarySearchFunc(old.files, hour,
		func(f *blockFile, hour int64) int { return int(f.hour - hour) })
	if found {
		return old.files[i]
	}
	next := *old
	f := db.newBlockFile(hour)
	next.files = slices.Insert(slices.Clone(old.files), i, f)
	db.view.Store(&next)
	return f
}

func (db *DB) newBlockFile(hour int64) *blockFile {
	return &blockFile{hour: hour, path: filepath.Join(db.dir, blocksDir, blockFileName(hour)), fs: db.fs,
		report: db.report}
}

// loadFiles lists the block files.
func (db *DB) loadFiles() error {
	hours, err := listBlockFiles(filepath.Join(db.dir, blocksDir))
	if err != nil {
		return fmt.Errorf("list the blocks: %w", err)
	}
	next := *db.view.Load()
	for _, hour := range hours {
		next.files = append(next.files, db.newBlockFile(hour))
	}
	db.view.Store(&next)
	return nil
}

// sealedThrough returns the id up to which a span's open blocks are in sealed ones. A sealed block that is damaged
// is dropped if the log still has all its rows, as after a crash while it was written; else what is readable of it
// stays.
func (db *DB) sealedThrough(start int64) (uint64, error) {
	v := db.view.Load()
	through := uint64(0)
	for _, s := range v.files {
		if s.hour != floorDiv(start, fileSeconds)*fileSeconds {
			continue
		}
		frames, err := s.frames()
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			if f.start != start {
				continue
			}
			if db.checked[f] == nil {
				if err := syncFile(db.fs, f.path); err != nil {
					return 0, err
				}
				damages := checkFrame(f)
				db.checked[f] = &damages
			}
			if len(*db.checked[f]) > 0 && f.id >= db.wholeFrom {
				s.drop(f)
				continue
			}
			through = max(through, f.id)
		}
	}
	return through, nil
}

// checkFrame reads a block's index and the checksums of all its columns.
func checkFrame(f *frame) []Damage {
	var r frameReader
	var out []Damage
	for i := range f.metrics {
		fm := &f.metrics[i]
		data, err := f.allData(fm)
		if err != nil {
			return append(out, Damage{f.path, f.offset, err.Error(), fmt.Sprintf("%s in the %d s from %d", fm.metric,
				BlockSeconds, f.start)})
		}
		for number := range f.chunks {
			c, err := r.chunk(f, fm.metric, number, chunkNodes-1)
			if err != nil {
				out = append(out, Damage{f.path, f.offset, err.Error(),
					fmt.Sprintf("%s of up to %d nodes in the %d s from %d", fm.metric, chunkNodes, BlockSeconds,
						f.start)})
				continue
			}
			for k := range c.entries {
				e := c.entry(k)
				if e == nil || e.kind != columnVaried || e.inline != nil {
					continue
				}
				if _, err := e.cut(data); err != nil {
					at := f.offset + fm.dataAt(f.chunks) + int64(e.dataAt)
					out = append(out, Damage{f.path, at, err.Error(),
						fmt.Sprintf("%s of node number %d in the %d s from %d", fm.metric, number*chunkNodes+k,
							BlockSeconds, f.start)})
				}
			}
		}
	}
	return out
}
