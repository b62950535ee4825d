// Package block keeps sealed blocks in files. It also lists what there is of a span, sealed or open, and reads it. The
// comment of tsdb/engine has the bytes.
package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"fairway/collector/appendlog"
	"fairway/tsdb/engine/disk"
)

// Block files: one per hour, a header and then blocks in the order in which they were sealed.
const (
	fileMagic   = "FWBF"
	fileVersion = 1
	fileHeader  = 12 // magic, version u16, zero u16, CRC u32
	fileExt     = ".blk"
	// FileSeconds is the span of a file; in a tier it is so many buckets.
	FileSeconds = 3600
)

// File is the sealed blocks of one hour, or of as many buckets. Only the sealer appends; readers take no lock once
// the file is loaded.
type File struct {
	Start  int64 // Unix seconds, or the number of a bucket
	path   string
	fs     disk.Files
	report func(disk.Damage)

	loaded atomic.Pointer[[]*frame] // by start, then id; nil until the first use
	mu     sync.Mutex               // guards loading and what follows
	file   disk.File
	end    int64 // where the next block goes
}

func fileName(start int64) string { return fmt.Sprintf("%011d"+fileExt, start) }

// listFiles returns the starts of the block files of a directory, ascending.
func listFiles(dir string) ([]int64, error) {
	starts, err := disk.List(dir, fileExt)
	return slices.DeleteFunc(starts, func(start int64) bool { return start%FileSeconds != 0 }), err
}

// frames returns the file's blocks. A file that is not there has none.
func (b *File) frames() ([]*frame, error) {
	if list := b.loaded.Load(); list != nil {
		return *list, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(); err != nil {
		return nil, err
	}
	return *b.loaded.Load(), nil
}

// load reads the headers; the caller holds mu.
func (b *File) load() error {
	if b.loaded.Load() != nil {
		return nil
	}
	f, err := b.fs.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		b.loaded.Store(&[]*frame{})
		return nil
	}
	if err != nil {
		return fmt.Errorf("open blocks: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return errors.Join(fmt.Errorf("open blocks %s: %w", b.path, err), f.Close())
	}
	list, end, damages, err := walkFrames(f, b.path, size)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	for _, d := range damages {
		b.report(d)
	}
	b.file, b.end = f, end
	sortFrames(list)
	b.loaded.Store(&list)
	return nil
}

func sortFrames(list []*frame) {
	// of one start and id the newest, as after a crash while a tier was made, is last
	slices.SortStableFunc(list, func(x, y *frame) int {
		if x.start != y.start {
			return int(x.start - y.start)
		}
		return int(int64(x.id) - int64(y.id))
	})
}

// walkFrames finds every block of a file. A damaged stretch is skipped to the next header that is
// intact; an unfinished end is where the next block will go.
func walkFrames(f io.ReaderAt, path string, size int64) (list []*frame, end int64, damages []disk.Damage, err error) {
	if err := checkFileHeader(f, path, size); err != nil {
		if errors.Is(err, disk.ErrNewerFormat) {
			return nil, 0, nil, err
		}
		if size <= fileHeader {
			return nil, 0, nil, nil // a power cut within the header: the next block writes it anew
		}
		damages = append(damages, disk.Damage{File: path, What: err.Error(),
			Lost: "nothing, when the blocks after it are intact"})
	}
	at := int64(fileHeader)
	end = at
	for {
		fr, err := readFrame(f, path, at, size)
		if errors.Is(err, io.EOF) {
			return list, end, damages, nil
		}
		if err == nil {
			list = append(list, fr)
			at += fr.size
			end = at
			continue
		}
		if !errors.Is(err, errDamaged) {
			return nil, 0, nil, err
		}
		next, findErr := findFrame(f, path, at+1, size)
		if findErr != nil {
			return nil, 0, nil, findErr
		}
		if next == size {
			return list, end, damages, nil // an unfinished end: never reported sealed
		}
		damages = append(damages, disk.Damage{File: path, Offset: at, What: err.Error(),
			Lost: fmt.Sprintf("the block of the %d bytes from here", next-at)})
		at = next
	}
}

// findFrame returns the offset of the next intact header, size without one.
func findFrame(f io.ReaderAt, path string, from, size int64) (int64, error) {
	buf := make([]byte, 1<<20)
	for at := from; at < size; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read %s: %w", path, err)
		}
		for i := 0; ; i++ {
			k := bytes.Index(buf[i:n], []byte(blockMagic))
			if k < 0 {
				break
			}
			i += k
			if _, err := readFrame(f, path, at+int64(i), size); err == nil {
				return at + int64(i), nil
			}
		}
		if at+int64(n) >= size {
			break
		}
		at += int64(n) - int64(len(blockMagic)) + 1
	}
	return size, nil
}

func newFileHeader() []byte {
	h := make([]byte, fileHeader)
	copy(h, fileMagic)
	binary.LittleEndian.PutUint16(h[4:], fileVersion)
	binary.LittleEndian.PutUint32(h[8:], appendlog.Sum(h[:8]))
	return h
}

func checkFileHeader(f io.ReaderAt, path string, size int64) error {
	h := make([]byte, fileHeader)
	if size < fileHeader {
		return fmt.Errorf("%w: %d bytes", errDamaged, size)
	}
	if _, err := f.ReadAt(h, 0); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if string(h[:4]) != fileMagic || appendlog.Sum(h[:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return fmt.Errorf("%w: the file's header is not that of a block file", errDamaged)
	}
	return disk.CheckVersion("block file "+path, binary.LittleEndian.Uint16(h[4:]), fileVersion)
}

// add appends an encoded block and returns when it is on the device.
func (b *File) add(block []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(); err != nil {
		return err
	}
	w, err := b.fs.OpenAppend(b.path)
	if err != nil {
		return fmt.Errorf("seal block: %w", err)
	}
	if err = b.write(w, block); err != nil {
		// A later process must not take for durable what is only in the page cache.
		err = errors.Join(err, w.Truncate(b.end))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("seal block in %s: %w; it stays in memory and in the log and is tried again", b.path, err)
	}
	if b.file == nil {
		if b.file, err = b.fs.Open(b.path); err != nil {
			return fmt.Errorf("seal block: %w", err)
		}
	}
	f, err := readFrame(b.file, b.path, b.end, b.end+int64(len(block)))
	if err != nil {
		return fmt.Errorf("seal block: what was written to %s cannot be read back: %w", b.path, err)
	}
	b.end += int64(len(block))
	list := append(slices.Clone(*b.loaded.Load()), f)
	sortFrames(list)
	b.loaded.Store(&list)
	return nil
}

func (b *File) write(w disk.File, block []byte) error {
	size, err := w.Size()
	if err != nil {
		return err
	}
	if size != b.end { // an unfinished block from before a crash or an error
		if err := w.Truncate(b.end); err != nil {
			return err
		}
	}
	if b.end == 0 {
		// On the device before any block is written: a header that is damaged before others' bytes is damage, and not a
		// power cut within the file's first write.
		if err := b.writeHeader(w); err != nil {
			return err
		}
		b.end = fileHeader
	}
	if _, err := w.Write(block); err != nil {
		return err
	}
	return w.Sync()
}

func (b *File) writeHeader(w disk.File) error {
	if _, err := w.Write(newFileHeader()); err != nil {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	return b.fs.SyncDir(filepath.Dir(b.path))
}

// drop forgets a block at the file's end that a crash kept from being whole; the next one takes
// its place.
func (b *File) drop(f *frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.offset+f.size == b.end {
		b.end = f.offset
	}
	list := slices.DeleteFunc(slices.Clone(*b.loaded.Load()), func(g *frame) bool { return g == f })
	b.loaded.Store(&list)
}

// DropTornEnd forgets the file's last block where it is not whole.
func (b *File) DropTornEnd() error {
	frames, err := b.frames()
	if err != nil {
		return err
	}
	for _, fr := range frames {
		if fr.offset+fr.size != b.end {
			continue
		}
		if damages, _ := fr.check(false); len(damages) > 0 {
			b.drop(fr)
			return nil
		}
	}
	return nil
}

// Bytes returns the file's size, 0 where it is not there.
func (b *File) Bytes() int64 {
	if st, err := os.Stat(b.path); err == nil {
		return st.Size()
	}
	return 0
}

// Path names the file.
func (b *File) Path() string { return b.path }

func (b *File) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
