package workload

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func spec(mode Mode) Spec {
	return Spec{Mode: mode, Name: "app", Ranks: 1, BurstBytes: 1 << 20, BlockBytes: 64 << 10, BurstFiles: 10,
		Period: 10 * time.Second, Duration: 55 * time.Second}
}

// counting counts what reaches a directory, and when.
type counting struct {
	Dir
	mu      sync.Mutex
	opens   int
	stats   int
	bytes   int
	readers int
	last    time.Time // of the last byte
	largest int64     // the bytes in the directory at the fullest
}

func (c *counting) Open(ctx context.Context, name string) (File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opens++
	f, err := c.Dir.Open(ctx, name)
	return countingFile{f, c}, err
}

func (c *counting) Stat(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats++
	return c.Dir.Stat(ctx, name)
}

type countingFile struct {
	File
	c *counting
}

func (f countingFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.bytes += n
	f.c.last = time.Now()
	var sum int64
	files, _ := filepath.Glob(filepath.Join(string(f.c.Dir), "*"))
	for _, name := range files {
		if fi, err := os.Stat(name); err == nil {
			sum += fi.Size()
		}
	}
	f.c.largest = max(f.c.largest, sum)
	return n, err
}

func (f countingFile) ReadAt(p []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.readers++
	return f.File.ReadAt(p, off)
}

// runAll runs all ranks of a program in fake time and returns what they did.
func runAll(t *testing.T, s Spec) *counting {
	t.Helper()
	fs := &counting{Dir: Dir(t.TempDir())}
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for r := range s.Ranks {
			one := s
			one.Rank = r
			wg.Go(func() {
				if err := Run(context.Background(), one, fs); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	if left, err := os.ReadDir(string(fs.Dir)); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	return fs
}

func TestBytesOfEachMode(t *testing.T) {
	for _, c := range []struct {
		mode           Mode
		ranks          int
		wantBytes      int // in six bursts, one every ten seconds
		wantMostAtOnce int64
	}{
		{FilePerProcess, 3, 6 * 3 << 20, 3 << 20},
		{SharedFile, 3, 6 * 3 << 20, 3 << 20},
		{OneWriter, 3, 6 << 20, 1 << 20},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			s := spec(c.mode)
			s.Ranks = c.ranks
			fs := runAll(t, s)
			if fs.bytes != c.wantBytes || fs.largest != c.wantMostAtOnce {
				t.Errorf("%d bytes written, %d at most in the file system; want %d and %d", fs.bytes, fs.largest,
					c.wantBytes, c.wantMostAtOnce)
			}
		})
	}
}

func TestMetadataStormTouchesItsFiles(t *testing.T) {
	s := spec(MetadataStorm)
	s.Ranks, s.FilesPerSec = 2, 5
	fs := runAll(t, s)
	if want := 6 * 2 * 10; fs.opens != want || fs.stats != want || fs.bytes != 0 {
		t.Errorf("%d files made, %d looked at, %d bytes; want %d, %d, 0", fs.opens, fs.stats, fs.bytes, want, want)
	}
}

func TestBurstKeepsItsSpeed(t *testing.T) {
	s := spec(FilePerProcess)
	s.BytesPerSec, s.Duration, s.ReadBack = 256<<10, 9*time.Second, true
	synctest.Test(t, func(t *testing.T) {
		fs := &counting{Dir: Dir(t.TempDir())}
		began := time.Now()
		if err := Run(t.Context(), s, fs); err != nil {
			t.Fatal(err)
		}
		// The last block is written when the ones before it have had their time.
		want := began.Add(time.Duration(float64(s.BurstBytes-int64(s.BlockBytes)) / s.BytesPerSec * float64(
			time.Second)))
		if !fs.last.Equal(want) {
			t.Errorf("the burst of 1 MiB at 256 KiB/s ended after %s, want %s", fs.last.Sub(began), want.Sub(began))
		}
		if fs.readers != 16 {
			t.Errorf("%d blocks read back, want 16", fs.readers)
		}
	})
}

func TestSharedFileBlocksAreInterleaved(t *testing.T) {
	dir := Dir(t.TempDir())
	for r := range 2 {
		s := spec(SharedFile)
		s.Rank, s.Ranks, s.BurstBytes, s.BlockBytes = r, 2, 4, 2
		if err := s.burst(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(string(dir), "app.shared"))
	want := make([]byte, 8)
	for i := range 4 {
		fill(want[2*i:2*i+2], int64(2*i), i%2)
	}
	other := make([]byte, 8)
	if fill(other, 0, 0); err != nil || !bytes.Equal(b, want) || bytes.Equal(want, other) {
		t.Errorf("file holds %v, %v; want %v: rank 0's and rank 1's blocks in turn", b, err, want)
	}
}

func TestWrongSpecsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Mode = "n-x" }, `"n-x"`},
		{func(s *Spec) { s.Rank = 1 }, "rank 1 of 1"},
		{func(s *Spec) { s.BurstBytes = 1 << 40 }, "1099511627776"},
		{func(s *Spec) { s.BlockBytes = 0 }, "blocks of 0"},
		{func(s *Spec) { s.BytesPerSec = -1 }, "negative"},
		{func(s *Spec) { s.Period = 0 }, "period"},
	} {
		s := spec(FilePerProcess)
		c.change(&s)
		if err := Run(t.Context(), s, Dir(t.TempDir())); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one that says %s", err, c.want)
		}
	}
}

// TestVerify: what a program keeps is as it wrote it, in each mode, and a byte that has changed is found; so is a hole.
func TestVerify(t *testing.T) {
	for _, mode := range []Mode{FilePerProcess, Backwards, SharedFile, OneWriter} {
		dir, bursts := Dir(t.TempDir()), 0
		s := Spec{Mode: mode, Name: "p", Ranks: 3, BurstBytes: 100_000, BlockBytes: 4096, BurstFiles: 1,
			Period: time.Millisecond, Duration: time.Hour, Bursts: 2, Keep: true,
			Report: func(b Burst) { bursts++ }}
		for s.Rank = range s.Ranks {
			if err := Run(t.Context(), s, dir); err != nil {
				t.Fatal(err)
			}
		}
		if want := map[Mode]int{FilePerProcess: 6, Backwards: 6, SharedFile: 6, OneWriter: 2}[mode]; bursts != want {
			t.Errorf("%s: %d bursts were reported, expected %d", mode, bursts, want)
		}
		check := func() (errs error) {
			for s.Rank = range s.Ranks {
				errs = errors.Join(errs, s.Verify(t.Context(), dir))
			}
			return errs
		}
		if err := check(); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		for _, damage := range []byte{0, 4} {
			s.Rank = 0
			f, err := dir.Open(t.Context(), s.file())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{damage}, 50); err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := check(); err == nil || !strings.Contains(err.Error(), "byte 50") {
				t.Errorf("%s: byte 50 is %d: %v", mode, damage, err)
			}
		}
		if err := s.Remove(t.Context(), dir); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(string(dir)); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", mode, left, err)
		}
	}
}
