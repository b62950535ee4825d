package block

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
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// List is the blocks of the seconds, or of a figure of a tier: the open ones in memory and the files of the sealed
// ones. Readers take no lock.
type List struct {
	dir    string
	fs     disk.Files
	report func(disk.Damage)
	mu     sync.Mutex // held while the view is replaced
	view   atomic.Pointer[view]
}

// view is an immutable list of what readers look at.
type view struct {
	open  []*rows.Block // by start, then id
	files []*File       // by start
}

// NewList returns the list of a directory, to be filled by Load.
func NewList(fsys disk.Files, dir string, report func(disk.Damage)) *List {
	l := &List{dir: dir, fs: fsys, report: report}
	l.view.Store(&view{})
	return l
}

// Load lists the files of the directory.
func (l *List) Load() error {
	starts, err := listFiles(l.dir)
	if err != nil {
		return fmt.Errorf("list the blocks: %w", err)
	}
	l.change(func(v *view) {
		for _, start := range starts {
			v.files = append(v.files, l.newFile(start))
		}
	})
	return nil
}

// change replaces the view by one that edit has changed; edit must not change the lists in place.
func (l *List) change(edit func(v *view)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := *l.view.Load()
	edit(&next)
	l.view.Store(&next)
}

// Add lists an open block.
func (l *List) Add(b *rows.Block) {
	l.change(func(v *view) {
		i, _ := slices.BinarySearchFunc(v.open, b.Start+1, func(o *rows.Block, start int64) int {
			return cmp.Compare(o.Start, start)
		})
		v.open = slices.Insert(slices.Clone(v.open), i, b)
	})
}

// Drop forgets an open block.
func (l *List) Drop(b *rows.Block) {
	l.change(func(v *view) {
		v.open = slices.DeleteFunc(slices.Clone(v.open), func(o *rows.Block) bool { return o == b })
	})
}

// Write appends an encoded block to the file that its start belongs to, and returns when it is on the device.
func (l *List) Write(start int64, encoded []byte) error { return l.file(start).add(encoded) }

// file returns the file that a second belongs to, adding it to the view where it is new.
func (l *List) file(sec int64) (f *File) {
	start := tsdb.FloorDiv(sec, FileSeconds) * FileSeconds
	l.change(func(v *view) {
		i, found := slices.BinarySearchFunc(v.files, start,
			func(f *File, start int64) int { return int(f.Start - start) })
		if found {
			f = v.files[i]
			return
		}
		f = l.newFile(start)
		v.files = slices.Insert(slices.Clone(v.files), i, f)
	})
	return f
}

func (l *List) newFile(start int64) *File {
	return &File{Start: start, path: filepath.Join(l.dir, fileName(start)), fs: l.fs, report: l.report}
}

// Files returns the files, by their start.
func (l *List) Files() []*File { return l.view.Load().files }

// Remove takes a file out of the store. A query that still reads it keeps the file's bytes
// until it is done; the garbage collector then closes it.
func (l *List) Remove(f *File) error {
	if err := l.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.change(func(v *view) {
		v.files = slices.DeleteFunc(slices.Clone(v.files), func(g *File) bool { return g == f })
	})
	return nil
}

// First is the first second that the list may have something of.
func (l *List) First() int64 {
	v := l.view.Load()
	first := int64(math.MaxInt64)
	if len(v.files) > 0 {
		first = v.files[0].Start
	}
	for _, b := range v.open {
		first = min(first, b.Start)
	}
	return first
}

// Hours lists the hours, by their start, that the list may have something of, ascending.
func (l *List) Hours() (out []int64) {
	v := l.view.Load()
	for _, f := range v.files {
		out = append(out, f.Start)
	}
	for _, b := range v.open {
		out = append(out, tsdb.FloorDiv(b.Start, FileSeconds)*FileSeconds)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsOpen says whether an open block with this id still has rows that only the log keeps.
func (l *List) IsOpen(id uint64) bool {
	return slices.ContainsFunc(l.view.Load().open, func(b *rows.Block) bool { return b.ID == id })
}

// HighestID returns the highest id of a block in the files.
func (l *List) HighestID() (id uint64, err error) {
	for _, file := range l.Files() {
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

// Close closes the files.
func (l *List) Close() error {
	var err error
	for _, f := range l.Files() {
		err = errors.Join(err, f.close())
	}
	return err
}

// Sealed looks up, while a log is replayed, which of its rows are in sealed blocks.
type Sealed struct {
	list *List
	// damaged says of the blocks that were read in full whether they are.
	damaged map[*frame]bool
}

// Sealed returns what looks up the rows of a log.
func (l *List) Sealed() *Sealed { return &Sealed{l, map[*frame]bool{}} }

// Through returns the id up to which a span's open blocks are in sealed ones. A sealed block that is
// damaged is dropped if the log, which has all rows of the blocks from an id on, still has its rows, as after a crash
// while it was written; else what is readable of it stays.
func (s *Sealed) Through(start int64, wholeFrom uint64) (through uint64, err error) {
	for _, file := range s.list.Files() {
		if file.Start != tsdb.FloorDiv(start, FileSeconds)*FileSeconds {
			continue
		}
		frames, err := file.frames()
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			if f.start != start {
				continue
			}
			damaged, checked := s.damaged[f]
			if !checked {
				if err := disk.Sync(s.list.fs, f.path); err != nil {
					return 0, err
				}
				damages, _ := f.check(false)
				damaged = len(damages) > 0
				s.damaged[f] = damaged
			}
			if damaged && f.id >= wholeFrom {
				file.drop(f)
				continue
			}
			through = max(through, f.id)
		}
	}
	return through, nil
}
