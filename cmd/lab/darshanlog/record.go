// Package darshanlog leaves the Darshan log of a program without MPI: each rank counts its own operations on files as
// Darshan's runtime does, and what the ranks of a job counted becomes one log, format 3.41, without the reduction of
// shared files.
package darshanlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

// Rank is what one rank did.
type Rank struct {
	Rank, Ranks int
	Start, End  float64 // Unix, seconds
	Files       map[string]*File
}

// File is what a rank did with a file. Times are Unix, in seconds.
type File struct {
	Opens, Stats           int64
	Read, Write            Accesses
	RWSwitches, NotAligned int64
	Open, Close            Span
	MetaSeconds            float64
	Strides, Sizes         map[int64]int64 // how often
	reads                  bool            // the newest access
}

// Accesses are the reads of a file, or its writes.
type Accesses struct {
	Count, Bytes, MaxByte, Consec, Seq int64
	Sizes                              [10]int64
	Span                               Span
	Seconds, Slowest                   float64
	SlowestSize                        int64
	next                               int64 // the byte after the newest access
}

// Span is when the first operation began and the last one ended; zero: there was none.
type Span struct{ Start, End float64 }

func (s *Span) take(from, to time.Time) (seconds float64) {
	if s.Start == 0 {
		s.Start = unix(from)
	}
	s.End = unix(to)
	return to.Sub(from).Seconds()
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// Recorder counts what is done with the files of an FS, which it is as well. It may be used concurrently.
type Recorder struct {
	fs workload.FS
	mu sync.Mutex // guards rank
	// rank is what was done so far.
	rank Rank
}

// NewRecorder counts from now on.
func NewRecorder(fs workload.FS, rank, ranks int) *Recorder {
	return &Recorder{fs: fs, rank: Rank{Rank: rank, Ranks: ranks, Start: unix(time.Now()), Files: map[string]*File{}}}
}

// count lets one operation on a file be counted, with its times.
func (r *Recorder) count(name string, begun time.Time, add func(f *File, begun, ended time.Time)) {
	ended := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.rank.Files[name]
	if f == nil {
		f = &File{Strides: map[int64]int64{}, Sizes: map[int64]int64{}}
		r.rank.Files[name] = f
	}
	add(f, begun, ended)
}

// Open is workload.FS's.
func (r *Recorder) Open(ctx context.Context, name string) (workload.File, error) {
	begun := time.Now()
	f, err := r.fs.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	r.count(name, begun, func(f *File, begun, ended time.Time) {
		f.Opens++
		f.MetaSeconds += f.Open.take(begun, ended)
	})
	return openFile{r, name, f}, nil
}

// Stat is workload.FS's.
func (r *Recorder) Stat(ctx context.Context, name string) error {
	begun := time.Now()
	err := r.fs.Stat(ctx, name)
	r.count(name, begun, func(f *File, begun, ended time.Time) {
		f.Stats++
		f.MetaSeconds += ended.Sub(begun).Seconds()
	})
	return err
}

// Remove is workload.FS's; Darshan counts no removals.
func (r *Recorder) Remove(ctx context.Context, name string) error { return r.fs.Remove(ctx, name) }

// openFile is a file whose operations are counted.
type openFile struct {
	r    *Recorder
	name string
	workload.File
}

func (o openFile) ReadAt(p []byte, off int64) (int, error) {
	begun := time.Now()
	n, err := o.File.ReadAt(p, off)
	o.r.count(o.name, begun, func(f *File, begun, ended time.Time) { f.access(&f.Read, true, off, n, begun, ended) })
	return n, err
}

func (o openFile) WriteAt(p []byte, off int64) (int, error) {
	begun := time.Now()
	n, err := o.File.WriteAt(p, off)
	o.r.count(o.name, begun, func(f *File, begun, ended time.Time) { f.access(&f.Write, false, off, n, begun, ended) })
	return n, err
}

func (o openFile) Close() error {
	begun := time.Now()
	err := o.File.Close()
	o.r.count(o.name, begun, func(f *File, begun, ended time.Time) { f.MetaSeconds += f.Close.take(begun, ended) })
	return err
}

// fileAlignment is what offsets are compared with, bytes.
const fileAlignment = 4096

// access counts one read or write.
func (f *File) access(a *Accesses, read bool, off int64, n int, begun, ended time.Time) {
	size := int64(max(n, 0))
	if before := f.Read.Count + f.Write.Count; before > 0 && f.reads != read {
		f.RWSwitches++
	}
	f.reads = read
	if off%fileAlignment != 0 {
		f.NotAligned++
	}
	if a.Count > 0 {
		if off == a.next {
			a.Consec++
		}
		if off >= a.next {
			a.Seq++
		}
		if stride := off - a.next; stride > 0 {
			f.Strides[stride]++
		}
	}
	a.next = off + size
	a.Count, a.Bytes, a.MaxByte = a.Count+1, a.Bytes+size, max(a.MaxByte, off+size-1)
	f.Sizes[size]++
	bin, _ := slices.BinarySearch(sizeLimits, size+1)
	a.Sizes[bin]++
	took := a.Span.take(begun, ended)
	a.Seconds += took
	if took > a.Slowest {
		a.Slowest, a.SlowestSize = took, size
	}
}

// sizeLimits are the upper bounds of Darshan's bins of request sizes; the last bin has none.
var sizeLimits = []int64{101, 1<<10 + 1, 10<<10 + 1, 100<<10 + 1, 1<<20 + 1, 4<<20 + 1, 10<<20 + 1, 100<<20 + 1,
	1<<30 + 1}

// Leave writes what the rank did to a folder, for Gather.
func (r *Recorder) Leave(dir string, job topology.JobID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rank.End = unix(time.Now())
	text, err := json.Marshal(&r.rank)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s.%d.json", job, r.rank.Rank))
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Gather reads what the ranks of a job left and removes it, in the order of the ranks.
func Gather(dir string, job topology.JobID) ([]Rank, error) {
	names, err := filepath.Glob(filepath.Join(dir, string(job)+".*.json"))
	if err != nil {
		return nil, err
	}
	var ranks []Rank
	var errs []error
	for _, name := range names {
		var r Rank
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if errs = append(errs, err, os.Remove(name)); err == nil {
			ranks = append(ranks, r)
		}
	}
	slices.SortFunc(ranks, func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return ranks, errors.Join(errs...)
}
