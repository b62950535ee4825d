package engine

import (
	"sync"
	"time"

	"fairway/tsdb/engine/log"
)

// committer makes durable what was appended.
type committer struct {
	*base
	head *head
	kick chan struct{}

	saving sync.Mutex // held while the dictionary of names is written
	mu     sync.Mutex // held by who commits; guards what follows
	wal    *log.Log
	next   time.Time // the earliest time of the next commit
}

// round is one group commit; err is set before done is closed.
type round struct {
	done chan struct{}
	err  error
}

// run makes what was appended durable, at most once per SyncInterval.
func (c *committer) run() {
	for {
		select {
		case <-c.kick:
		case <-c.stop:
			return
		}
		c.mu.Lock()
		wait := time.Until(c.next)
		c.mu.Unlock()
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-c.stop:
				return
			}
		}
		c.mu.Lock()
		c.commit()
		c.mu.Unlock()
	}
}

// tryNow commits in the appender's goroutine when that need not wait for another commit: where one stream brings
// all rows of a second, waking the committer would cost as much as taking them. Only for an append that cannot be
// called off, for a disk may hang.
func (c *committer) tryNow() bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if c.closed.Load() || time.Until(c.next) > 0 {
		return false
	}
	c.commit()
	return true
}

// commit writes and syncs everything appended so far and answers those who wait for it; the caller holds committing.
func (c *committer) commit() {
	defer func() { c.next = time.Now().Add(c.opts.SyncInterval) }()
	c.head.mu.Lock()
	r := c.head.round
	c.head.round = &round{done: make(chan struct{})}
	taken := c.head.pending.HandOver(c.wal)
	rotate, nextBlock := c.head.rotate, c.head.nextBlock+1
	c.head.rotate = false
	c.head.mu.Unlock()

	if r.err = c.saveNames(); r.err == nil && rotate {
		r.err = c.wal.Rotate()
	}
	var spare []byte
	if r.err == nil {
		spare, r.err = c.wal.Flush(nextBlock)
	}
	if r.err == nil {
		if err := c.wal.Forget(c.head.blocks.IsOpen); err != nil {
			c.log.Warn("an old log segment stays", "error", err)
		}
	}
	c.head.mu.Lock()
	if r.err == nil {
		c.head.pending.Done(taken, spare)
	} else {
		c.log.Error("appended samples are not durable yet", "error", r.err)
	}
	c.head.mu.Unlock()
	close(r.done)
}

// saveNames makes the dictionary on disk as new as the one in memory.
func (c *committer) saveNames() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.head.mu.Lock()
	names := c.head.nodes.unsaved()
	c.head.mu.Unlock()
	if names == nil {
		return nil
	}
	err := saveNodes(c.fs, c.dir, names)
	if err != nil {
		c.head.mu.Lock()
		c.head.nodes.changed = true
		c.head.mu.Unlock()
	}
	return err
}

// nudge wakes the goroutine that waits for c, unless it has been nudged already.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
