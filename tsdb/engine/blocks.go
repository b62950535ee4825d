package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"fairway/tsdb"
)

// blocks are the seconds' blocks: the open ones in memory and the files of the sealed ones. Readers take the view
// and no lock.
type blocks struct {
	*base
	mu      sync.Mutex // held while the view is replaced
	view    atomic.Pointer[view]
	indexes indexCache
}

// view is an immutable list of what readers look at.
type view struct {
	open  []*openBlock // by start, then id
	files []*blockFile // by hour
}

// change replaces the view by one that edit has changed; edit must not change the lists in place.
func (bs *blocks) change(edit func(v *view)) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	next := *bs.view.Load()
	edit(&next)
	bs.view.Store(&next)
}

// add lists an open block.
func (bs *blocks) add(b *openBlock) {
	bs.change(func(v *view) {
		i, _ := slices.BinarySearchFunc(v.open, b.start+1, func(o *openBlock, start int64) int {
			return cmp.Compare(o.start, start)
		})
		v.open = slices.Insert(slices.Clone(v.open), i, b)
	})
}

// drop forgets an open block.
func (bs *blocks) drop(b *openBlock) {
	bs.change(func(v *view) {
		v.open = slices.DeleteFunc(slices.Clone(v.open), func(o *openBlock) bool { return o == b })
	})
}

// file returns the file that a second belongs to, adding it to the view where it is new.
func (bs *blocks) file(sec int64) (f *blockFile) {
	hour := tsdb.FloorDiv(sec, fileSeconds) * fileSeconds
	bs.change(func(v *view) {
		i, found := slices.BinarySearchFunc(v.files, hour,
			func(f *blockFile, hour int64) int { return int(f.hour - hour) })
		if found {
			f = v.files[i]
			return
		}
		f = bs.newFile(hour)
		v.files = slices.Insert(slices.Clone(v.files), i, f)
	})
	return f
}

func (bs *blocks) newFile(hour int64) *blockFile {
	return &blockFile{hour: hour, path: filepath.Join(bs.dir, blocksDir, blockFileName(hour)), fs: bs.fs,
		report: bs.damages.report}
}

// load lists the block files.
func (bs *blocks) load() error {
	hours, err := listBlockFiles(filepath.Join(bs.dir, blocksDir))
	if err != nil {
		return fmt.Errorf("list the blocks: %w", err)
	}
	bs.change(func(v *view) {
		for _, hour := range hours {
			v.files = append(v.files, bs.newFile(hour))
		}
	})
	return nil
}

// remove takes an hour out of the store. A query that still reads it keeps the file's bytes
// until it is done; the garbage collector then closes it.
func (bs *blocks) remove(f *blockFile) error {
	if err := bs.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	bs.change(func(v *view) {
		v.files = slices.DeleteFunc(slices.Clone(v.files), func(g *blockFile) bool { return g == f })
	})
	bs.indexes.clear()
	return nil
}

// rawFrom is the first second that is answered from seconds: what is older was removed by retention
// and is answered from the tiers.
func (bs *blocks) rawFrom() int64 {
	v := bs.view.Load()
	first := int64(math.MaxInt64)
	if len(v.files) > 0 {
		first = v.files[0].hour
	}
	for _, b := range v.open {
		first = min(first, b.start)
	}
	return first
}

// isOpen says whether an open block with this id still has rows that only the log keeps.
func (bs *blocks) isOpen(id uint64) bool {
	return slices.ContainsFunc(bs.view.Load().open, func(b *openBlock) bool { return b.id == id })
}

// highestID returns the highest id of a block in the files.
func (bs *blocks) highestID() (id uint64, err error) {
	for _, file := range bs.view.Load().files {
		frames, err := file.frames()
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			id = max(id, f.id)
		}
	}
	return id, nil
}
