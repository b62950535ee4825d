// Package workload is the I/O of a parallel program, one rank a compute node: bursts of reading and
// writing with computing in between, in the modes that I/O profiles distinguish. All ranks keep to
// the wall clock, so they burst together without talking to each other.
package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Mode is how the ranks share files.
type Mode string

// The modes.
const (
	FilePerProcess Mode = "n-n"      // every rank writes a file of its own
	Backwards      Mode = "n-n-back" // the same from the last block to the first: none follows on the one before
	SharedFile     Mode = "n-1"      // all ranks write blocks of one file, in turn
	OneWriter      Mode = "1-1"      // rank 0 writes one file, the others compute
	MetadataStorm  Mode = "meta"     // every rank makes, looks at and removes small files
)

// Modes lists every mode.
var Modes = []Mode{FilePerProcess, Backwards, SharedFile, OneWriter, MetadataStorm}

// Spec is one program.
type Spec struct {
	Mode Mode
	// Name keeps the files of programs apart.
	Name        string
	Rank, Ranks int
	// BurstBytes is what a rank writes in one burst; its files never grow beyond.
	BurstBytes int64
	// BlockBytes is the size of one read or write.
	BlockBytes int
	// BytesPerSec limits a rank's speed in a burst; 0 is as fast as it goes.
	BytesPerSec float64
	// ReadBack reads what a burst wrote, at the same speed, after it.
	ReadBack bool
	// FilesPerSec and BurstFiles are MetadataStorm's speed (0: unlimited) and burst.
	FilesPerSec float64
	BurstFiles  int
	// Period is the time from the start of one burst to the next; the rest of it is computing.
	Period time.Duration
	// Duration is how long the program runs, Bursts after how many bursts it ends before that; 0: never.
	Duration time.Duration
	Bursts   int
	// Keep leaves the files where they are, for Verify.
	Keep bool
	// Report, if any, is called after each burst.
	Report func(Burst)
}

// Burst is what a rank did in one phase of I/O.
type Burst struct {
	Name       string
	Rank       int
	Start, End time.Time
	Bytes      int64 // written and read
	Files      int   // made, looked at and removed
}

// The bounds of a program, so that a slip of the pen fills no file system.
const (
	maxBurstBytes = 1 << 30
	maxBlockBytes = 16 << 20
	maxBurstFiles = 100_000
)

// Check refuses a program that cannot run, naming the setting.
func (s *Spec) Check() error {
	switch {
	case !slices.Contains(Modes, s.Mode):
		return fmt.Errorf("workload: unknown mode %q, want one of %v", s.Mode, Modes)
	case s.Name == "":
		return errors.New("workload: no name")
	case s.Ranks < 1 || s.Rank < 0 || s.Rank >= s.Ranks:
		return fmt.Errorf("workload: rank %d of %d", s.Rank, s.Ranks)
	case s.BurstBytes < 1 || s.BurstBytes > maxBurstBytes:
		return fmt.Errorf("workload: bursts of %d bytes; 1 to %d are possible", s.BurstBytes, maxBurstBytes)
	case s.BlockBytes < 1 || s.BlockBytes > maxBlockBytes:
		return fmt.Errorf("workload: blocks of %d bytes; 1 to %d are possible", s.BlockBytes, maxBlockBytes)
	case s.BurstFiles < 1 || s.BurstFiles > maxBurstFiles:
		return fmt.Errorf("workload: bursts of %d files; 1 to %d are possible", s.BurstFiles, maxBurstFiles)
	case s.BytesPerSec < 0 || s.FilesPerSec < 0 || math.IsNaN(s.BytesPerSec) || math.IsNaN(s.FilesPerSec):
		return errors.New("workload: a speed is negative")
	case s.Period <= 0 || s.Duration <= 0 || s.Bursts < 0:
		return errors.New("workload: period, duration and number of bursts must be positive")
	}
	return nil
}

// FS is where the program's files are; names have no slashes.
type FS interface {
	// Open opens a file for reading and writing; it is made if it does not exist.
	Open(ctx context.Context, name string) (File, error)
	Stat(ctx context.Context, name string) error
	Remove(ctx context.Context, name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Run runs one rank until its duration is over or ctx ends; neither is an error. Its files are
// removed at the end.
func Run(ctx context.Context, s Spec, fs FS) error {
	if err := s.Check(); err != nil {
		return err
	}
	over, cancel := context.WithTimeout(ctx, s.Duration)
	defer cancel()
	for burst := 0; s.Bursts == 0 || burst < s.Bursts; burst++ {
		if burst > 0 { // computing, until all ranks start the next burst together
			if !wait(over, time.Until(time.Now().Truncate(s.Period).Add(s.Period))) {
				break
			}
		}
		if err := s.burst(over, fs); err != nil && over.Err() == nil {
			return fmt.Errorf("workload %s, rank %d, burst %d: %w", s.Name, s.Rank, burst, err)
		}
		if over.Err() != nil {
			break
		}
	}
	if s.Keep {
		return nil
	}
	return s.cleanUp(context.WithoutCancel(ctx), fs)
}

// burst is one phase of I/O.
func (s *Spec) burst(ctx context.Context, fs FS) error {
	b := Burst{Name: s.Name, Rank: s.Rank, Start: time.Now()}
	if s.Mode == OneWriter && s.Rank != 0 {
		return nil
	}
	var err error
	if s.Mode == MetadataStorm {
		b.Files, err = s.BurstFiles, s.storm(ctx, fs)
	} else {
		b.Bytes, err = s.BurstBytes, s.write(ctx, fs)
		if s.ReadBack {
			b.Bytes *= 2
		}
	}
	if b.End = time.Now(); err == nil && s.Report != nil {
		s.Report(b)
	}
	return err
}

// write is a burst of bytes.
func (s *Spec) write(ctx context.Context, fs FS) error {
	f, err := fs.Open(ctx, s.file())
	if err != nil {
		return err
	}
	err = s.transfer(ctx, func(p []byte, off int64) (int, error) {
		fill(p, off, s.Rank)
		return f.WriteAt(p, off)
	})
	if err == nil && s.ReadBack {
		err = s.transfer(ctx, f.ReadAt)
	}
	return errors.Join(err, f.Close())
}

// fill writes what a rank writes at an offset: bytes that are of no other place nearby, and of no other rank.
func fill(p []byte, off int64, rank int) {
	for i := range p {
		at := uint64(off) + uint64(i)
		p[i] = byte((at>>3+uint64(rank)*0x1000193+1)*0x9E3779B97F4A7C15>>(8*(at&7))) | 1 // never what a hole has
	}
}

// Verify reads what a rank's bursts wrote, which Keep left, and names the first byte that is not as written.
func (s *Spec) Verify(ctx context.Context, fs FS) error {
	if s.Mode == MetadataStorm || s.Mode == OneWriter && s.Rank != 0 {
		return nil
	}
	f, err := fs.Open(ctx, s.file())
	if err != nil {
		return err
	}
	want := make([]byte, s.BlockBytes)
	rate := s.BytesPerSec
	s.BytesPerSec = 0
	defer func() { s.BytesPerSec = rate }()
	err = s.transfer(ctx, func(p []byte, off int64) (int, error) {
		if n, err := f.ReadAt(p, off); err != nil {
			return n, fmt.Errorf("%s: %d bytes at %d: %w", s.file(), len(p), off, err)
		}
		fill(want[:len(p)], off, s.Rank)
		for i := range p {
			if p[i] != want[i] {
				return i, fmt.Errorf("%s: byte %d is %#x, written was %#x", s.file(), off+int64(i), p[i], want[i])
			}
		}
		return len(p), nil
	})
	return errors.Join(err, f.Close())
}

// perProcess says that every rank has a file of its own.
func (s *Spec) perProcess() bool { return s.Mode == FilePerProcess || s.Mode == Backwards }

// file is the name of the file this rank uses.
func (s *Spec) file() string {
	if s.perProcess() {
		return fmt.Sprintf("%s.%04d", s.Name, s.Rank)
	}
	return s.Name + ".shared"
}

// transfer moves a burst's bytes, in blocks: the rank's own in a row, or every Ranks-th block of a
// shared file.
func (s *Spec) transfer(ctx context.Context, at func([]byte, int64) (int, error)) error {
	block := make([]byte, s.BlockBytes)
	stride, first := int64(len(block)), int64(0)
	if s.Mode == SharedFile {
		stride, first = stride*int64(s.Ranks), stride*int64(s.Rank)
	}
	began := time.Now()
	size := int64(len(block))
	blocks := (s.BurstBytes + size - 1) / size
	for done := int64(0); done < s.BurstBytes; done += size {
		i := done / size
		if s.Mode == Backwards {
			i = blocks - 1 - i
		}
		part := block[:min(size, s.BurstBytes-i*size)]
		if _, err := at(part, first+i*stride); err != nil {
			return err
		}
		if !pace(ctx, began, float64(done)+float64(len(part)), s.BytesPerSec) {
			return ctx.Err()
		}
	}
	return nil
}

// storm makes, looks at and removes small files.
func (s *Spec) storm(ctx context.Context, fs FS) error {
	began := time.Now()
	for i := range s.BurstFiles {
		name := s.small(i)
		f, err := fs.Open(ctx, name)
		if err != nil {
			return err
		}
		err = errors.Join(f.Close(), fs.Stat(ctx, name))
		if err := errors.Join(err, fs.Remove(context.WithoutCancel(ctx), name)); err != nil {
			return err
		}
		if !pace(ctx, began, float64(i+1), s.FilesPerSec) {
			return ctx.Err()
		}
	}
	return nil
}

func (s *Spec) small(i int) string { return fmt.Sprintf("%s.%04d.%06d", s.Name, s.Rank, i) }

// cleanUp removes the rank's files; those of a shared file are its first rank's.
func (s *Spec) cleanUp(ctx context.Context, fs FS) error {
	if s.Mode == MetadataStorm || (!s.perProcess() && s.Rank != 0) {
		return nil // a storm removes as it goes
	}
	return fs.Remove(ctx, s.file())
}

// pace waits until amount may have been done since began; false when ctx ended.
func pace(ctx context.Context, began time.Time, amount, perSec float64) bool {
	if perSec == 0 {
		return ctx.Err() == nil
	}
	return wait(ctx, time.Until(began.Add(time.Duration(amount/perSec*float64(time.Second)))))
}

// wait sleeps; false when ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Argv is the command line of a rank of the program: fairway-demo rank with a flag for each field.
func (s *Spec) Argv(fairwayDemo string) []string {
	argv := []string{fairwayDemo, "rank", "--mode", string(s.Mode), "--name", s.Name,
		"--burst", fmt.Sprint(s.BurstBytes), "--block", fmt.Sprint(s.BlockBytes), "--rate", fmt.Sprint(s.BytesPerSec),
		"--files", fmt.Sprint(s.BurstFiles), "--files-rate", fmt.Sprint(s.FilesPerSec),
		"--period", s.Period.String(), "--for", s.Duration.String(), "--bursts", fmt.Sprint(s.Bursts)}
	if s.ReadBack {
		argv = append(argv, "--read-back")
	}
	if s.Keep {
		argv = append(argv, "--keep")
	}
	return argv
}

// Remove removes the files that Keep left, of all ranks.
func (s *Spec) Remove(ctx context.Context, fs FS) error {
	var errs []error
	for r := range s.Ranks {
		s.Rank = r
		errs = append(errs, s.cleanUp(ctx, fs))
	}
	return errors.Join(errs...)
}
