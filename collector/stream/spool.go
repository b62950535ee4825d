package stream

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/collector/wire"
)

// Bounds of a spool's size.
const (
	MinSpoolBytes     = 1 << 20
	DefaultSpoolBytes = 64 << 20 // more than two days of one node's seconds
	segmentsPerSpool  = 16
	maxSegmentBytes   = 8 << 20
)

// Spool is the queue between an agent and its daemon, on disk so that it outlives both: every message is written to
// it first, sent from it in order, and forgotten when it is acknowledged. When it is full the oldest messages are
// dropped and counted. All methods may be called concurrently.
//
// It is a directory of segment files of records (record.go), "acked" with the last acknowledged
// sequence number, and "instance", the name of this numbering. Records are written without fsync:
// they survive the agent's death, and all but the last seconds survive the machine's; Sync gives
// those too.
type Spool struct {
	dir      string
	maxBytes int64
	instance string
	log      *slog.Logger
	lock     io.Closer
	reader   // the only one, or what all positions have in common

	mu       sync.Mutex // guards everything that follows
	segments []*segment // oldest first; the last one is being written
	last     uint64     // newest sequence number given out
	dropped  uint64
	buf      []byte
	closed   bool
	// positions are of several readers; none: there is one.
	positions []*Position
}

// reader is how far the messages are sent. The spool's mu guards acked and cursor.
type reader struct {
	ackFile *os.File
	more    chan struct{} // holds one token when something was appended
	acked   uint64
	cursor  cursor
}

// cursor is where the next read goes on: the record with sequence number seq is at off of seg.
type cursor struct {
	seg *segment
	off int64
	seq uint64
}

// OpenSpool opens or makes a spool of at most maxBytes in dir; 0 is DefaultSpoolBytes. A torn or
// corrupt end of a segment, as a crash leaves it, is cut off and logged. Another process using dir
// is an error.
func OpenSpool(dir string, maxBytes int64, log *slog.Logger) (*Spool, error) {
	if maxBytes == 0 {
		maxBytes = DefaultSpoolBytes
	}
	if maxBytes < MinSpoolBytes {
		return nil, fmt.Errorf("spool %s: size of %d bytes is less than %d", dir, maxBytes, MinSpoolBytes)
	}
	s := &Spool{
		dir: dir, maxBytes: maxBytes, log: log, reader: reader{more: make(chan struct{}, 1)},
	}
	if err := s.open(); err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("spool %s: %w", dir, err)
	}
	return s, nil
}

func (s *Spool) open() (err error) {
	if err = os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = appendlog.Lock(filepath.Join(s.dir, "lock"), 0o600); errors.Is(err, appendlog.ErrLocked) {
		return fmt.Errorf("another agent uses it: %w", err)
	} else if err != nil {
		return err
	}
	if s.instance, err = readInstance(filepath.Join(s.dir, "instance")); err != nil {
		return err
	}
	if s.ackFile, err = os.OpenFile(filepath.Join(s.dir, "acked"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	s.acked = readAcked(s.ackFile)
	if err = s.recover(); err != nil {
		return err
	}
	if len(s.segments) > 0 {
		s.acked = max(s.acked, s.segments[0].first-1) // dropped before they were acknowledged
	}
	s.last = max(s.last, s.acked)
	if err = s.rotate(); err != nil {
		return err
	}
	s.forgetAcked()
	if s.pending() > 0 {
		s.more <- struct{}{}
	}
	return nil
}

// Instance names this spool's numbering.
func (s *Spool) Instance() string { return s.instance }

// More receives when messages may have been appended since the last receive.
func (s *Spool) More() <-chan struct{} { return s.more }

// Append gives the frames the next sequence number and keeps them as one message. On error the
// message is lost, and counted as dropped; the spool goes on.
func (s *Spool) Append(frames []collector.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.append(frames)
	if err != nil {
		s.dropped++
		return fmt.Errorf("spool %s: %w", s.dir, err)
	}
	signal(s.more)
	for _, p := range s.positions {
		signal(p.more)
	}
	return nil
}

func signal(more chan struct{}) {
	select {
	case more <- struct{}{}:
	default:
	}
}

func (s *Spool) append(frames []collector.Frame) error {
	if s.closed {
		return os.ErrClosed
	}
	b, err := appendRecord(s.buf[:0], &wire.Frames{Seq: s.last + 1, Frames: frames})
	s.buf = b
	if err != nil {
		return err
	}
	if active := s.active(); active.size > 0 && active.size+int64(len(b)) > segmentBytes(s.maxBytes) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	for s.size()+int64(len(b)) > s.maxBytes && len(s.segments) > 1 {
		s.dropOldest()
	}
	active := s.active()
	n, err := active.file.WriteAt(b, active.size)
	if err != nil {
		if n > 0 { // leave no half record behind; what cannot be cut now is overwritten by the next
			err = errors.Join(err, active.file.Truncate(active.size))
		}
		return err
	}
	s.last++
	active.last = s.last
	active.size += int64(n)
	return nil
}

// segmentBytes is the size from which a segment of a spool is followed by another one.
func segmentBytes(spool int64) int64 { return min(spool/segmentsPerSpool, maxSegmentBytes) }

func (s *Spool) active() *segment { return s.segments[len(s.segments)-1] }

// rotate starts a new segment for the numbers after last.
func (s *Spool) rotate() error {
	seg, err := createSegment(s.dir, s.last+1)
	if err != nil {
		return err
	}
	if n := len(s.segments); n > 0 && s.segments[n-1].first == seg.first { // it held nothing
		s.segments[n-1].file.Close()
		s.segments = s.segments[:n-1]
	}
	s.segments = append(s.segments, seg)
	return nil
}

func (s *Spool) dropOldest() {
	old := s.segments[0]
	if old.last > s.acked {
		lost := old.last - max(s.acked, old.first-1)
		s.dropped += lost
		s.log.Warn("the spool is full: dropping the oldest seconds", "spool", s.dir, "messages", lost)
		s.acked = old.last // nobody will ever acknowledge them
	}
	s.remove(old)
}

// remove forgets the oldest segment.
func (s *Spool) remove(old *segment) {
	s.segments = s.segments[1:]
	if s.cursor.seg == old {
		s.cursor = cursor{}
	}
	for _, p := range s.positions {
		if p.cursor.seg == old {
			p.cursor = cursor{}
		}
	}
	if err := old.remove(); err != nil {
		s.log.Warn("removing a spool segment failed", "err", err)
	}
}

// Next returns the first message after a sequence number, in buf grown as needed; ok is false when
// none has come yet. Messages that cannot be read any more are dropped and counted.
func (s *Spool) Next(after uint64, buf []byte) (seq uint64, msg []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.next(s, after, buf)
}

// next is Spool.Next of one reader; the spool's mu is held.
func (c *cursor) next(s *Spool, after uint64, buf []byte) (seq uint64, msg []byte, ok bool) {
	if s.closed {
		return 0, buf, false
	}
	if c.seg == nil || c.seq != after+1 {
		*c = s.seek(after + 1)
	}
	for {
		if c.off >= c.seg.size {
			next := s.after(c.seg)
			if next == nil {
				return 0, buf, false
			}
			*c = cursor{seg: next, seq: next.first}
			continue
		}
		seq, msg, n, err := readRecord(c.seg.file, c.off, c.seg.size, buf)
		if err != nil {
			lost := c.seg.last - min(c.seg.last, max(c.seq, s.acked+1)-1)
			s.dropped += lost
			s.log.Error("a spool segment cannot be read: dropping the rest of it", "file", c.seg.path, "messages", lost,
				"err", err)
			c.off = c.seg.size
			continue
		}
		c.off += n
		c.seq = seq + 1
		if seq > after {
			return seq, msg, true
		}
	}
}

// seek returns a cursor at the beginning of the segment that holds seq, or of the first after it.
func (s *Spool) seek(seq uint64) cursor {
	at := s.segments[0]
	for _, g := range s.segments[1:] {
		if g.first <= seq {
			at = g
		}
	}
	return cursor{seg: at, seq: at.first}
}

func (s *Spool) after(seg *segment) *segment {
	for i, g := range s.segments[:len(s.segments)-1] {
		if g == seg {
			return s.segments[i+1]
		}
	}
	return nil
}

// Ack forgets every message up to and including seq.
func (s *Spool) Ack(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	forget(s, seq)
}

// forget is Ack; the spool's mu is held.
func forget(s *Spool, seq uint64) {
	if seq <= s.acked || s.closed {
		return
	}
	s.acked = min(seq, s.last)
	if err := writeAcked(s.ackFile, s.acked); err != nil {
		s.log.Warn("remembering what was acknowledged failed; a restart will send it again", "spool", s.dir, "err", err)
	}
	s.forgetAcked()
}

func (s *Spool) forgetAcked() {
	for len(s.segments) > 1 && s.segments[0].last <= s.acked {
		s.remove(s.segments[0])
	}
}

// Acked is the last acknowledged sequence number, 0 for none.
func (s *Spool) Acked() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Pending is how many messages wait to be acknowledged; Dropped how many were lost since the spool
// was opened, because it was full, the disk failed, or they could not be read back.
func (s *Spool) Pending() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending()
}

func (s *Spool) pending() uint64 { return behind(s.segments, s.acked) }

// behind counts the messages after a number.
func behind(segments []*segment, acked uint64) (n uint64) {
	for _, g := range segments {
		if g.last >= g.first && g.last > acked {
			n += g.last - max(acked, g.first-1)
		}
	}
	return n
}

// Dropped: see Pending.
func (s *Spool) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Sync returns when everything appended before it is on the device, so that it also survives the
// machine's death. Appends go on meanwhile.
func (s *Spool) Sync() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("spool %s: %w", s.dir, os.ErrClosed)
	}
	var unsynced []*segment
	for _, g := range s.segments {
		if g.synced < g.size {
			unsynced = append(unsynced, g)
		}
	}
	sizes := make([]int64, len(unsynced))
	for i, g := range unsynced {
		sizes[i] = g.size
	}
	s.mu.Unlock()
	for i, g := range unsynced {
		// A segment that was sent and forgotten meanwhile is closed: nothing of it needs keeping.
		if err := g.file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			return fmt.Errorf("spool %s: %w", s.dir, err)
		}
		s.mu.Lock()
		g.synced = max(g.synced, sizes[i])
		s.mu.Unlock()
	}
	return nil
}

// Bytes is what the spool takes on disk.
func (s *Spool) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size()
}

func (s *Spool) size() (n int64) {
	for _, g := range s.segments {
		n += g.size
	}
	return n
}

// Close ends the spool's use; what it holds stays for the next OpenSpool.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, g := range s.segments {
		errs = append(errs, g.file.Sync())
	}
	s.closeFiles()
	return errors.Join(errs...)
}

func (s *Spool) closeFiles() {
	for _, g := range s.segments {
		g.file.Close()
	}
	for _, p := range s.positions {
		p.ackFile.Close()
	}
	s.ackFile.Close() // a nil *os.File answers an error, nothing more
	if s.lock != nil {
		s.lock.Close()
	}
}
