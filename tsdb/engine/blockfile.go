package engine

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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"fairway/collector/appendlog"
)

// Block files: one per hour, a header and then blocks in the order in which they were sealed.
const (
	fileMagic   = "FWBF"
	fileVersion = 1
	fileHeader  = 12 // magic, version u16, zero u16, CRC u32
	fileSeconds = 3600
	blocksDir   = "blocks"
)

// blockFile is the sealed blocks of one hour. Only the sealer appends; readers take no lock once
// the file is loaded.
type blockFile struct {
	hour   int64 // Unix seconds
	path   string
	fs     files
	report func(Damage)

	loaded atomic.Pointer[[]*frame] // by start, then id; nil until the first use
	mu     sync.Mutex               // guards loading and what follows
	file   file
	end    int64 // where the next block goes
}

func blockFileName(hour int64) string { return fmt.Sprintf("%011d.blk", hour) }

// listBlockFiles returns the hours for which a directory has block files, ascending.
func listBlockFiles(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".blk"); ok {
			if hour, err := strconv.ParseInt(name, 10, 64); err == nil && hour%fileSeconds == 0 {
				out = append(out, hour)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// frames returns the file's blocks. A file that is not there has none.
func (b *blockFile) frames() ([]*frame, error) {
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
func (b *blockFile) load() error {
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
	// of one start and id the newest, as after a crash inside makeTier, is last
	slices.SortStableFunc(list, func(x, y *frame) int {
		if x.start != y.start {
			return int(x.start - y.start)
		}
		return int(int64(x.id) - int64(y.id))
	})
}

// walkFrames finds every block of a file. A damaged stretch is skipped to the next header that is
// intact; an unfinished end is where the next block will go.
func walkFrames(f io.ReaderAt, path string, size int64) (list []*frame, end int64, damages []Damage, err error) {
	if err := checkFileHeader(f, path, size); err != nil {
		if errors.Is(err, ErrNewerFormat) {
			return nil, 0, nil, err
		}
		if size <= fileHeader {
			return nil, 0, nil, nil // a power cut within the header: the next block writes it anew
		}
		damages = append(damages, Damage{path, 0, err.Error(), "nothing, when the blocks after it are intact"})
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
		damages = append(damages, Damage{path, at, err.Error(), fmt.Sprintf("the block of the %d bytes from here",
			next-at)})
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
	return checkVersion("block file "+path, binary.LittleEndian.Uint16(h[4:]), fileVersion)
}

// add appends an encoded block and returns when it is on the device.
func (b *blockFile) add(block []byte) error {
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

func (b *blockFile) write(w file, block []byte) error {
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

func (b *blockFile) writeHeader(w file) error {
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
func (b *blockFile) drop(f *frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.offset+f.size == b.end {
		b.end = f.offset
	}
	list := slices.DeleteFunc(slices.Clone(*b.loaded.Load()), func(g *frame) bool { return g == f })
	b.loaded.Store(&list)
}

func (b *blockFile) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
