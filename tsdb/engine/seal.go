package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/tier"
)

// When open blocks are sealed.
const (
	// sealIdleSeconds without an append seal a block: its span is over, or its late rows are in.
	sealIdleSeconds = 15
	// keepOpen blocks are left open when more are; the one longest without an append goes first.
	keepOpen = 3
	// maxOpen blocks make Append wait for the sealer.
	maxOpen = 12
	// retainEvery is how often old hours are looked for.
	retainEvery = time.Minute
)

// sealer moves open blocks that are done to disk, brings the tiers up to date and applies the retention.
type sealer struct {
	*base
	head    *head
	commits *committer
	tiers   *tier.Set
	kick    chan struct{}

	mu     sync.Mutex // held while a block is sealed or tiers are made, and guards encode and the tiers' state
	encode block.Sealer

	// The head's lock guards what follows.
	room chan struct{} // closed when a block was sealed
	err  error         // why the newest attempt failed
}

// run moves open blocks that are done to disk, without holding up appends.
func (s *sealer) run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var retained time.Time
	for {
		select {
		case <-tick.C:
		case <-s.kick:
		case <-s.stop:
			return
		}
		for s.next(false) == nil {
		}
		if now := s.opts.Now(); now.Sub(retained) >= retainEvery || now.Before(retained) {
			retained = now
			s.mu.Lock()
			if err := s.tiers.Update(now); err != nil {
				s.log.Error("the down-sampled tiers are behind", "error", err)
			}
			s.retain(now)
			s.mu.Unlock()
		}
	}
}

// errNothingToSeal ends the sealer's round.
var errNothingToSeal = errors.New("no block to seal")

// next seals one block that is due, or any when all is true.
func (s *sealer) next(all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.mu.Lock()
	b := s.due(all)
	if b == nil {
		s.head.mu.Unlock()
		return errNothingToSeal
	}
	b.closed = true
	limits, entries := s.head.limits, s.head.nodes.entries[:len(s.head.nodes.entries):len(s.head.nodes.entries)]
	s.head.mu.Unlock()
	err := s.logged(b)
	if err == nil {
		err = s.commits.saveNames() // a block must not name nodes that the dictionary lacks
	}
	gone := false
	if err == nil {
		gone, err = s.tiers.Removed(b.Start)
	}
	if err == nil && !gone {
		err = s.tiers.NoteLate(b.Start)
	}
	if gone {
		s.log.Warn("rows older than the seconds that are kept are left out: only tiers are left of their hour",
			"start", b.Start)
	} else if err == nil {
		err = s.head.blocks.Write(b.Start,
			s.encode.Seal(b.Block, func(node int) float64 { return limits[entries[node].name] }))
	}
	s.head.mu.Lock()
	defer s.head.mu.Unlock()
	s.err = err
	if err != nil {
		if !errors.Is(err, tsdb.ErrClosed) {
			s.log.Error("a block is not sealed yet", "start", b.Start, "error", err)
		}
		return err
	}
	s.drop(b)
	return nil
}

// logged returns when all rows of a closed block are durable in the log. Without that a sealed block could have
// a number that the log of the next process does not know: it would give it to another block, whose
// rows it would then take for sealed.
func (s *sealer) logged(b *openBlock) error {
	if b.round == nil {
		return nil
	}
	select {
	case <-b.round.done:
	default:
		nudge(s.commits.kick)
		select {
		case <-b.round.done:
		case <-s.stop:
			return tsdb.ErrClosed
		}
	}
	err := b.round.err
	b.round = nil
	if err != nil { // the rows are part of the next commit
		s.head.mu.Lock()
		b.round = s.head.round
		s.head.mu.Unlock()
	}
	return err
}

// due chooses a block to seal; the caller holds the head's lock. Blocks of one span go in the order in which
// they were opened.
func (s *sealer) due(all bool) *openBlock {
	now := s.opts.Now().Unix()
	var oldest *openBlock
	waiting := 0
	for i, b := range s.head.open {
		if i > 0 && s.head.open[i-1].Start == b.Start {
			waiting++
			continue
		}
		if b.closed || all || now-b.last >= sealIdleSeconds || now < b.last-sealIdleSeconds {
			return b
		}
		if oldest == nil || b.used < oldest.used {
			oldest = b
		}
	}
	if len(s.head.open) > keepOpen {
		return oldest
	}
	return nil
}

// drop takes a sealed block out of memory; the caller holds the head's lock.
func (s *sealer) drop(b *openBlock) {
	s.head.dropBlock(b)
	close(s.room)
	s.room = make(chan struct{})
}

// waitForRoom waits until the sealer has kept up, unless the block of these frames, which are of one span, is open; the
// caller holds the head's lock, also after it.
func (s *sealer) waitForRoom(ctx context.Context, frames []collector.Frame) error {
	for {
		if s.closed.Load() {
			return tsdb.ErrClosed
		}
		open := len(s.head.open)
		if open > keepOpen {
			nudge(s.kick)
		}
		if open <= maxOpen || len(frames) == 0 || open <= 2*maxOpen && s.head.takes(frames[0].TimeMillis) {
			return nil
		}
		if s.err != nil {
			return fmt.Errorf("append: %d blocks wait to be sealed: %w", open, s.err)
		}
		room := s.room
		s.head.mu.Unlock()
		var err error
		select {
		case <-room:
		case <-s.stop:
			err = tsdb.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.head.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// retain removes what the retention settings no longer keep.
func (s *sealer) retain(now time.Time) {
	list := s.head.blocks.Files()
	sizes := make([]int64, len(list))
	total := int64(0)
	for i, f := range list {
		sizes[i] = f.Bytes()
		total += sizes[i]
	}
	for i, f := range list {
		old := s.opts.RetentionAge > 0 && now.Sub(time.Unix(f.Start+block.FileSeconds, 0)) > s.opts.RetentionAge
		full := s.opts.RetentionBytes > 0 && total > s.opts.RetentionBytes && i < len(list)-1
		if !old && !full || !s.tiers.Complete(f.Start) {
			continue
		}
		if err := s.head.blocks.Remove(f); err != nil {
			s.log.Error("old blocks stay", "file", f.Path(), "error", err)
			continue
		}
		s.head.readers.Forget()
		total -= sizes[i]
	}
	s.tiers.Retain(now)
}
