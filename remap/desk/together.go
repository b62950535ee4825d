package desk

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// Together is the log that several daemons keep their journals by. One of them leads: its desk decides and acts, and
// what it records is part of every daemon's journal once most of them have it.
type Together interface {
	// Propose hands on the lines of the next batch. The channel then says nil once Deliver took them here, or why it
	// is not known whether they will be part of the journal: then this daemon leads no more.
	Propose(lines []byte) <-chan error
}

// delivery is lines that most daemons have.
type delivery struct {
	lines  []byte
	answer chan error
}

// sharing is the recorder's part in a journal that several daemons keep. The zero value is a journal of one.
type sharing struct {
	log       Together // nil: this daemon is alone
	leading   atomic.Bool
	head      atomic.Pointer[journal.Head]
	delivered chan delivery
}

// Leads says whether this desk decides and acts: always, where it is alone.
func (r *recorder) Leads() bool { return r.together.log == nil || r.together.leading.Load() }

// propose records steps by way of the other daemons. It is called by the owning goroutine.
func (r *recorder) propose(recs []*journal.Record) error {
	if !r.together.leading.Load() {
		return fmt.Errorf("journal: %w", remap.ErrNotLeading)
	}
	lines, err := r.journal.Encode(recs...)
	if err != nil {
		return err
	}
	done := r.together.log.Propose(lines)
	for {
		select {
		case d := <-r.together.delivered:
			d.answer <- r.takeLines(d.lines)
		case err := <-done:
			if err != nil {
				r.together.leading.Store(false)
				return fmt.Errorf("journal: %w: %w", remap.ErrNotLeading, err)
			}
			return nil
		}
	}
}

// takeLines makes what most daemons have part of this journal and of the state; what it has already changes nothing.
func (r *recorder) takeLines(lines []byte) error {
	recs, rest, err := r.journal.Next(lines)
	if err != nil {
		return err
	}
	// Batch by batch: a later one is checked against the state after the earlier.
	for len(recs) > 0 {
		n := int(recs[0].More) + 1
		batch := recs[:n]
		if err := r.state.check(batch); err != nil {
			return fmt.Errorf("record %d: %w", batch[0].Seq, err)
		}
		size := 0
		for range n {
			size += lineLen(rest[size:])
		}
		if err := r.journal.AppendLines(batch, rest[:size]); err != nil {
			return err
		}
		r.records.Store(r.journal.Records())
		head := r.journal.Head()
		r.together.head.Store(&head)
		for _, rec := range batch {
			r.state.take(rec)
			r.recorded(rec)
		}
		recs, rest = recs[n:], rest[size:]
	}
	return nil
}

func lineLen(b []byte) int {
	for i, c := range b {
		if c == '\n' {
			return i + 1
		}
	}
	return len(b)
}

// Deliver takes lines that most daemons have, and returns when they are on disk. Lines that the journal has already
// change nothing. Errors wrap journal.ErrOtherHistory, journal.ErrDamaged or remap.ErrClosed, or are the disk's.
func (r *recorder) Deliver(lines []byte) error {
	d := delivery{lines: lines, answer: make(chan error, 1)}
	select {
	case r.together.delivered <- d:
		return <-d.answer
	case <-r.done:
		return remap.ErrClosed
	}
}

// Head returns the end of the journal as it is on disk.
func (r *recorder) Head() journal.Head { return *r.together.head.Load() }

// HashAt is journal.Journal.HashAt of the desk's journal.
func (r *recorder) HashAt(n uint64) (string, error) { return r.journal.HashAt(n) }

// Lines is journal.Journal.Lines of the desk's journal.
func (r *recorder) Lines(n uint64) (io.Reader, error) { return r.journal.Lines(n) }

// Lead has this desk decide and act from now on: it takes up what is under way, as after a start.
func (d *Desk) Lead(ctx context.Context) error {
	return d.do(ctx, func() error {
		d.runs.opened = time.Now()
		d.together.leading.Store(true)
		return nil
	})
}

// Follow has this desk only show. What it ordered ends here; whoever leads takes it up.
func (d *Desk) Follow(ctx context.Context) error {
	d.together.leading.Store(false)
	return d.do(ctx, func() error {
		d.together.leading.Store(false)
		d.runs.stop()
		d.unrecorded.Store(nil) // it is the leader's to say
		return nil
	})
}
