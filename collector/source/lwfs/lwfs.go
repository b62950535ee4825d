// Package lwfs reads Sunway's LWFS forwarding servers through the trace that they write, as Beacon does (FAST'19).
//
// It fills read_ops, write_ops, meta_ops, queue_len and, as estimates, read_wait, write_wait, meta_wait,
// read_exec, write_exec and meta_exec: the trace holds latency histograms in decade buckets, so a mean
// is that of the buckets' geometric middles and good to about a factor of two. The trace has no bytes.
// A server writes a sample after every 1000 operations, not at fixed times: a second without a sample
// has no values, and a rate is that since the sample before; after a gap in reading it is absent. A tick reads what
// was appended: about 2 microseconds a line.
package lwfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"fairway/collector"
)

// edges are the assumed upper edges of the buckets but the last, seconds. The trace does not state them; decades from
// 10 microseconds fit the published sample.
var edges = [Buckets - 1]float64{10e-6, 100e-6, 1e-3, 10e-3, 100e-3, 1, 10}

// zone is that of the trace's local times: every machine with LWFS stands in China.
var zone = time.FixedZone("CST", 8*60*60)

// Limits of one tick.
const (
	maxTick  = 8 << 20  // bytes read
	baseline = 64 << 10 // bytes before the end that the first tick reads, for counts to begin with
	maxLine  = 4 << 10
)

// Source follows one server's trace.
type Source struct {
	root    fs.FS
	path    string // below root
	middles [Buckets]float64

	mu      sync.Mutex // guards what follows
	file    fs.File
	offset  int64
	partial []byte
	last    [Queue]Counts
	lastAt  time.Time // of the newest sample
	readAt  time.Time // of the last tick
	started bool
}

var _ collector.Source = (*Source)(nil)

// New makes a source that follows the trace at a path below root from its present end.
func New(root fs.FS, path string) *Source {
	s := &Source{root: root, path: path}
	s.middles[0] = edges[0] / 2
	for i := 1; i < Buckets-1; i++ {
		s.middles[i] = math.Sqrt(edges[i-1] * edges[i])
	}
	s.middles[Buckets-1] = edges[Buckets-2] * math.Sqrt(10)
	return s
}

// Name is "lwfs".
func (s *Source) Name() string { return "lwfs" }

// Close closes the trace.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// Read reads the lines that were appended since the last tick.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.appended()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", collector.ErrNoData, err)
	}
	t := tick{s: s, gap: into.Now.Sub(s.readAt) > collector.DefaultMaxGap}
	s.readAt = into.Now
	t.lines(text)
	t.emit(into)
	return errors.Join(err, t.bad)
}

// appended returns the whole lines since the last tick: the rest of a file that was rotated away, then
// the new one's.
func (s *Source) appended() ([]byte, error) {
	var out []byte
	if s.file != nil {
		b, err := s.drain()
		out = b
		if err != nil {
			return out, err
		}
	}
	now, err := s.root.Open(s.path)
	if err != nil {
		return out, err
	}
	info, err := now.Stat()
	if err != nil {
		now.Close()
		return out, err
	}
	if s.file != nil && sameFile(s.file, info) && info.Size() >= s.offset {
		now.Close()
		return out, nil
	}
	first := s.file == nil && !s.started
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.offset, s.partial = now, 0, nil
	if first {
		s.offset = max(0, info.Size()-baseline)
	}
	s.started = true
	b, err := s.drain()
	if first && s.offset > int64(len(b)) { // begun in the middle of a line
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return append(out, b...), err
}

// sameFile compares by inode where there is one; other file systems' files are known by name only.
func sameFile(f fs.File, info fs.FileInfo) bool {
	old, err := f.Stat()
	if err != nil {
		return false
	}
	if _, real := f.(*os.File); !real {
		return old.ModTime().Equal(info.ModTime()) && old.Size() == info.Size()
	}
	return os.SameFile(old, info)
}

// drain reads the open file from the offset to its end and keeps a line that is not ended yet.
func (s *Source) drain() ([]byte, error) {
	at, ok := s.file.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("%s: cannot be read from the middle", s.path)
	}
	b, err := io.ReadAll(io.LimitReader(io.NewSectionReader(at, s.offset, math.MaxInt64-s.offset), maxTick))
	s.offset += int64(len(b))
	b = append(s.partial, b...)
	end := bytes.LastIndexByte(b, '\n') + 1
	s.partial = append([]byte(nil), b[end:]...)
	if len(s.partial) > maxLine {
		s.partial = nil
		err = errors.Join(err, fmt.Errorf("%s: a line of more than %d bytes", s.path, maxLine))
	}
	return b[:end], err
}

// tick is what one second's lines say.
type tick struct {
	s      *Source
	newest [Queue]Counts // the largest cumulative counts: lines of one second stand in no order
	seen   [Queue]bool
	queue  uint64
	queues int
	at     time.Time
	gap    bool // nobody read for a while: what is new is not of this second
	bad    error
}

func (t *tick) lines(b []byte) {
	for line := range bytes.Lines(b) {
		l, ok, err := ParseLine(bytes.TrimSuffix(line, []byte("\n")), zone)
		if err != nil && t.bad == nil {
			t.bad = fmt.Errorf("%s: %w", t.s.path, err)
		}
		if !ok {
			continue
		}
		if l.At.After(t.at) {
			t.at = l.At
		}
		if l.Class == Queue {
			t.queue += l.Queue
			t.queues++
			continue
		}
		if !t.seen[l.Class] || l.Counts.Sum() > t.newest[l.Class].Sum() {
			t.newest[l.Class], t.seen[l.Class] = l.Counts, true
		}
	}
}

// emit turns the differences to the sample before into rates and means.
func (t *tick) emit(into *collector.Reading) {
	s := t.s
	if t.at.IsZero() {
		return
	}
	seconds := max(t.at.Sub(s.lastAt).Seconds(), 1)
	if !s.lastAt.IsZero() && !t.gap {
		for _, m := range []struct {
			exec, wait                  Class
			ops, execMetric, waitMetric collector.Metric
		}{
			{ReadExec, ReadWait, collector.ReadOps, collector.ReadExec, collector.ReadWait},
			{WriteExec, WriteWait, collector.WriteOps, collector.WriteExec, collector.WriteWait},
			{MetaExec, MetaWait, collector.MetaOps, collector.MetaExec, collector.MetaWait},
		} {
			if n, mean, ok := t.change(m.exec, into); ok {
				into.Add(m.ops, float64(n)/seconds)
				if n > 0 {
					into.Add(m.execMetric, mean)
				}
			}
			if n, mean, ok := t.change(m.wait, into); ok && n > 0 {
				into.Add(m.waitMetric, mean)
			}
		}
	}
	if t.queues > 0 {
		into.Add(collector.QueueLen, float64(t.queue)/float64(t.queues))
	}
	for c, ok := range t.seen {
		if ok {
			s.last[c] = t.newest[c]
		}
	}
	s.lastAt = t.at
}

// change is how many operations a class gained since the sample before, and their mean by the buckets'
// middles; counts that fell are a reset.
func (t *tick) change(c Class, into *collector.Reading) (n uint64, mean float64, ok bool) {
	was := t.s.last[c]
	if !t.seen[c] || was == (Counts{}) {
		return 0, 0, false
	}
	for i, v := range t.newest[c] {
		if v < was[i] {
			into.Resets++
			return 0, 0, false
		}
		d := v - was[i]
		n += d
		mean += float64(d) * t.s.middles[i]
	}
	if n > 0 {
		mean /= float64(n)
	}
	return n, mean, true
}
