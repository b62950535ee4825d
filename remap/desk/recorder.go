package desk

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// recorder owns the state and the journal. One goroutine reads and changes the state; a step is on disk before it
// is part of the state.
type recorder struct {
	notices
	log *slog.Logger
	// state and journal belong to the owning goroutine; the journal's history may be read by all.
	state    *state
	journal  *journal.Journal
	recorded func(*journal.Record) // called by the owner after each record

	calls      chan func()
	quit, done chan struct{}

	// unrecorded is why the newest step could not be recorded; nil when it could.
	unrecorded atomic.Pointer[error]
	writing    atomic.Pointer[time.Time] // since when the journal is being written; nil: it is not
	records    atomic.Uint64
	broken     atomic.Bool

	together sharing
}

func newRecorder(s *state, j *journal.Journal, log *slog.Logger) *recorder {
	r := &recorder{state: s, journal: j, log: log, calls: make(chan func()), quit: make(chan struct{}),
		done: make(chan struct{})}
	r.records.Store(j.Records())
	head := j.Head()
	r.together.head.Store(&head)
	r.together.delivered = make(chan delivery)
	return r
}

// own is the owning goroutine: it runs calls, takes what the runs report, and ticks.
func (r *recorder) own(runs *runs, tick func(time.Time)) {
	defer close(r.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for now := time.Now(); ; {
		if !now.IsZero() && r.journal.Broken() == nil && r.Leads() { // what cannot be recorded may not be done
			r.state.keys.forget(now)
			tick(now)
		}
		now = time.Time{}
		select {
		case <-r.quit:
			runs.stop()
			return
		case f := <-r.calls:
			f()
		case e := <-runs.events:
			runs.take(e)
		case d := <-r.together.delivered:
			d.answer <- r.takeLines(d.lines)
		case now = <-ticker.C:
		}
	}
}

// do runs f in the owning goroutine. Once begun it is waited for, whatever happens to ctx.
func (r *recorder) do(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case r.calls <- func() { answer <- f() }:
		return <-answer
	case <-r.done:
		return remap.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record makes steps true: checked against the state, then on disk, then in the state, then known to watchers.
// On an error nothing has happened. It is called by the owning goroutine.
func (r *recorder) record(recs ...*journal.Record) error {
	if err := r.state.check(recs); err != nil {
		r.log.Error("BUG: a step does not fit the state and was not recorded", "subject", recs[0].Plan, "step",
			recs[0].Kind, "err", err)
		return err
	}
	r.writing.Store(new(time.Now()))
	err := r.write(recs)
	r.writing.Store(nil)
	r.records.Store(r.journal.Records())
	r.broken.Store(r.journal.Broken() != nil)
	if err != nil {
		// What the desk does by itself is tried again twice a second, and logged once.
		if before := r.unrecorded.Swap(&err); before == nil || recs[0].Actor != "" {
			r.log.Error("a step was not recorded and so not done", "subject", recs[0].Plan, "step", recs[0].Kind, "err",
				err)
		}
		return err
	}
	if r.unrecorded.Swap(nil) != nil {
		r.log.Info("the journal takes records again")
	}
	if r.together.log != nil {
		return nil // they were delivered
	}
	for _, rec := range recs {
		r.state.take(rec)
		r.recorded(rec)
	}
	return nil
}

// write has the journal take records: this one, or by way of the other daemons each one's.
func (r *recorder) write(recs []*journal.Record) error {
	if r.together.log != nil {
		return r.propose(recs)
	}
	if err := r.journal.Append(recs...); err != nil {
		return err
	}
	head := r.journal.Head()
	r.together.head.Store(&head)
	return nil
}

// recordFor records one step that a person takes, under the idempotency key of the answer.
func (r *recorder) recordFor(by remap.Person, a remap.Answer, body string, rec *journal.Record) error {
	rec.Actor, rec.Role, rec.Via = by.Name, by.Role, by.Via
	rec.Reason, rec.Key, rec.Body = a.Reason, a.Key, body
	if rec.At.IsZero() {
		rec.At = time.Now().UTC()
	}
	return r.record(rec)
}

// Unrecorded returns why the newest step could not be recorded; nil when all is well. Until a step can be
// recorded nothing is decided or moved.
func (r *recorder) Unrecorded() error {
	if err := r.unrecorded.Load(); err != nil {
		return *err
	}
	return nil
}

// History is journal.Journal.History of the desk's journal.
func (r *recorder) History(w journal.Wanted) iter.Seq2[*journal.Record, error] {
	return r.journal.History(w)
}

// Records returns the number of records in the journal.
func (r *recorder) Records() uint64 { return r.records.Load() }

// archive is trust.Archive once everything is recorded anew that must stay.
func (r *recorder) archive(ctx context.Context, before time.Time, least uint64) (*journal.Old, error) {
	old, err := r.journal.Old(before, least)
	if err != nil || old == nil {
		return nil, err
	}
	return old, r.do(ctx, func() error {
		err := r.journal.CutOff(old)
		r.broken.Store(r.journal.Broken() != nil)
		return err
	})
}

// Since is journal.Journal.Since of the desk's journal.
func (r *recorder) Since(n uint64, visit func(*journal.Record) error) (uint64, error) {
	return r.journal.Since(n, visit)
}

// FeedChanged and FindingsChanged are what Watch sends when the list of exclusions or a finding has changed.
const (
	FeedChanged     = "exclusions"
	FindingsChanged = "findings"
)

// notices are sent to those who watch for changes.
type notices struct {
	mu      sync.Mutex // guards everything that follows
	chans   map[chan string]struct{}
	dropped uint64
	closed  bool
}

// Watch returns a channel of the ids of plans that changed, FeedChanged or FindingsChanged. It holds up to buffer
// ids; what does not fit is dropped and counted, so a slow watcher reads Plans again now and then. stop ends it; the
// channel is closed then or when the desk closes.
func (w *notices) Watch(buffer int) (changed <-chan string, stop func()) {
	c := make(chan string, max(buffer, 1))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(c)
		return c, func() {}
	}
	if w.chans == nil {
		w.chans = map[chan string]struct{}{}
	}
	w.chans[c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := w.chans[c]; ok {
			delete(w.chans, c)
			close(c)
		}
	}
}

// DroppedChanges counts the notices that slow watchers missed.
func (w *notices) DroppedChanges() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

func (w *notices) notify(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.chans {
		select {
		case c <- id:
		default:
			w.dropped++
		}
	}
}

func (w *notices) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.chans {
		close(c)
	}
	w.chans = nil
}

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
	// Batch by batch: a later one is checked against the state after the earlier.
	for {
		batch, own, rest, err := r.journal.Next(lines)
		if err != nil || batch == nil {
			return err
		}
		if err := r.state.check(batch); err != nil {
			return fmt.Errorf("record %d: %w", batch[0].Seq, err)
		}
		if err := r.journal.AppendLines(batch, own); err != nil {
			return err
		}
		r.records.Store(r.journal.Records())
		head := r.journal.Head()
		r.together.head.Store(&head)
		for _, rec := range batch {
			r.state.take(rec)
			r.recorded(rec)
		}
		lines = rest
	}
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
