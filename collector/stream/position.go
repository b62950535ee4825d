package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Position is where one of several daemons stands in a spool, a Queue of its own. A message is forgotten when every
// daemon has acknowledged it, or when the spool is full; a daemon that is away holds up none of the others.
type Position struct {
	spool *Spool
	reader
}

var _ Queue = (*Position)(nil)

// Positions makes the spool one of several daemons, each by its name, and returns their positions in the names' order.
// A daemon that is new to the spool begins with the oldest message there is. It is called once, before the first Next.
func Positions(s *Spool, names []string) ([]*Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		path := filepath.Join(s.dir, "acked-"+hex.EncodeToString(sum[:8]))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("spool %s: %w", s.dir, err)
		}
		p := &Position{spool: s, reader: reader{ackFile: f, more: make(chan struct{}, 1)}}
		p.acked = min(max(readAcked(f), s.acked), s.last)
		signal(p.more)
		s.positions = append(s.positions, p)
	}
	return s.positions, nil
}

// Instance implements Queue.
func (p *Position) Instance() string { return p.spool.instance }

// at is the last number that this daemon has acknowledged or that was dropped; the spool's mu is held.
func (p *Position) at() uint64 { return max(p.acked, p.spool.acked) }

// Acked implements Queue.
func (p *Position) Acked() uint64 {
	p.spool.mu.Lock()
	defer p.spool.mu.Unlock()
	return p.at()
}

// Ack implements Queue.
func (p *Position) Ack(seq uint64) {
	s := p.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= p.acked || s.closed {
		return
	}
	p.acked = min(seq, s.last)
	if err := writeAcked(p.ackFile, p.acked); err != nil {
		s.log.Warn("remembering what was acknowledged failed; a restart will send it again", "spool", s.dir, "err", err)
	}
	all := p.acked
	for _, o := range s.positions {
		all = min(all, o.acked)
	}
	forget(s, all)
}

// Pending implements Queue.
func (p *Position) Pending() uint64 {
	p.spool.mu.Lock()
	defer p.spool.mu.Unlock()
	return behind(p.spool.segments, p.at())
}

// Next implements Queue.
func (p *Position) Next(after uint64, buf []byte) (seq uint64, msg []byte, ok bool) {
	p.spool.mu.Lock()
	defer p.spool.mu.Unlock()
	return p.cursor.next(p.spool, after, buf)
}

// More implements Queue.
func (p *Position) More() <-chan struct{} { return p.more }
