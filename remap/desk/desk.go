// Package desk is the state machine over the journal: it proposes, approves, applies, verifies, rolls back and
// records plans, and keeps exclusions, standing approvals, findings and canaries.
package desk

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// Desk is the one place where plans are proposed, approved, applied, verified, rolled back and
// recorded. One goroutine owns the plans and the journal; nothing is answered before it is on
// disk, and the driver is told nothing that is not on disk.
//
// All methods may be called concurrently.
type Desk struct {
	set       Settings
	driver    remap.Driver
	situation func() *remap.Situation
	roleOf    func(name, via string) (remap.Role, bool) // nil: not known
	log       *slog.Logger
	opened    time.Time

	calls  chan func()
	events chan event // from the runs
	quit   chan struct{}
	done   chan struct{}

	// What follows belongs to the owning goroutine.
	book    *book
	journal *journal.Journal
	runs    map[string]*run
	shown   map[string][]remap.Preview // by plan: the newest previews, to say what changed since

	watch  watchers
	owners atomic.Pointer[map[topology.ForwarderID]topology.JobID]
	claims atomic.Pointer[map[topology.ForwarderID]topology.JobID]
	feed   atomic.Pointer[remap.Feed] // without a lease
	// unrecorded is why the newest step could not be written down; nil when it could.
	unrecorded atomic.Pointer[error]
	counts     atomic.Pointer[counts]
	writing    atomic.Pointer[time.Time] // since when the journal is being written; nil: it is not
}

// Config is what a desk works with.
type Config struct {
	Settings Settings
	// Path is the journal's file.
	Path   string
	Driver remap.Driver
	// Situation returns the present picture; it may be called from any goroutine.
	Situation func() *remap.Situation
	// RoleOf is the role that a person who came through a door (Person.Via) has at present; known is false
	// where only the next sign-in tells. nil: it is never known. It may be called from any goroutine.
	RoleOf func(name, via string) (role remap.Role, known bool)
	Log    *slog.Logger // nil: discard
}

// tickEvery is how often expiry, waiting plans and observations are looked at.
const tickEvery = 500 * time.Millisecond

// Open replays the journal at cfg.Path, takes up what was under way and starts the desk. Errors
// are those of journal.Open and of Settings.Validate.
func Open(cfg Config) (*Desk, journal.Summary, error) {
	if err := cfg.Settings.Validate(); err != nil {
		return nil, journal.Summary{}, err
	}
	b := newBook()
	j, sum, err := journal.Open(cfg.Path, b.take)
	if err != nil {
		return nil, sum, err
	}
	return startDesk(cfg, b, j), sum, nil
}

func startDesk(cfg Config, b *book, j *journal.Journal) *Desk {
	d := &Desk{
		set: cfg.Settings, driver: cfg.Driver, situation: cfg.Situation, roleOf: cfg.RoleOf, log: cfg.Log,
		opened: time.Now(),
		calls:  make(chan func()), events: make(chan event, 1024),
		quit: make(chan struct{}), done: make(chan struct{}),
		book: b, journal: j, runs: map[string]*run{}, shown: map[string][]remap.Preview{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.publishOwners()
	d.publishFeed()
	d.publishCounts()
	go d.own()
	return d
}

// Settings returns the rules of the desk.
func (d *Desk) Settings() Settings { return d.set }

// Unrecorded returns why the newest step could not be recorded; nil when all is well. Until a step can be
// recorded nothing is decided or moved.
func (d *Desk) Unrecorded() error {
	if err := d.unrecorded.Load(); err != nil {
		return *err
	}
	return nil
}

// Owners returns the forwarders that plans have dedicated to a job. The map is never changed.
func (d *Desk) Owners() map[topology.ForwarderID]topology.JobID { return *d.owners.Load() }

// Claims returns Owners and the forwarders that proposed plans would dedicate: whoever looks for free
// ones leaves both alone. The map is never changed.
func (d *Desk) Claims() map[topology.ForwarderID]topology.JobID { return *d.claims.Load() }

func (d *Desk) publishOwners() {
	owners, claims := map[topology.ForwarderID]topology.JobID{}, map[topology.ForwarderID]topology.JobID{}
	for e := range d.book.unfinished {
		if !e.Dedicated {
			continue
		}
		for _, m := range e.Moves {
			claims[m.To] = e.Job
			if e.State.Holds() {
				owners[m.To] = e.Job
			}
		}
	}
	d.owners.Store(&owners)
	d.claims.Store(&claims)
}

// Close stops what is under way, which the next start takes up again, and closes the journal.
// It waits for every goroutine of the desk.
func (d *Desk) Close() error {
	close(d.quit)
	<-d.done
	d.watch.close()
	return d.journal.Close()
}

// own is the owning goroutine.
func (d *Desk) own() {
	defer close(d.done)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	d.tick(time.Now())
	for {
		select {
		case <-d.quit:
			d.stopRuns()
			return
		case f := <-d.calls:
			f()
		case e := <-d.events:
			d.takeEvents(e)
		case now := <-tick.C:
			d.tick(now)
		}
		d.publishCounts()
	}
}

// do runs f in the owning goroutine. Once begun it is waited for, whatever happens to ctx.
func (d *Desk) do(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case d.calls <- func() {
		err := f()
		d.publishCounts()
		answer <- err
	}:
		return <-answer
	case <-d.done:
		return remap.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record makes steps true: on disk first, then in the book, then known to watchers. On an error
// nothing has happened.
func (d *Desk) record(recs ...*journal.Record) error {
	begun := time.Now()
	d.writing.Store(&begun)
	err := d.journal.Append(recs...)
	d.writing.Store(nil)
	if err != nil {
		// What the desk does by itself is tried again twice a second, and said once.
		if before := d.unrecorded.Swap(&err); before == nil || recs[0].Actor != "" {
			d.log.Error("a step was not recorded and so not done", "subject", recs[0].Plan, "step", recs[0].Kind, "err",
				err)
		}
		return err
	}
	if d.unrecorded.Swap(nil) != nil {
		d.log.Info("the journal takes records again")
	}
	for _, r := range recs {
		if err := d.book.take(r); err != nil {
			panic(fmt.Sprintf("BUG: record %d (%s) does not fit: %v", r.Seq, r.Kind, err))
		}
		if r.Exclusion != nil {
			d.publishFeed()
			d.watch.tell(FeedChanged)
			continue
		}
		if r.Finding != nil {
			d.watch.tell(FindingsChanged)
			continue
		}
		if r.Standing != nil || r.Canary != nil {
			continue
		}
		if (r.State != "" || r.Kind == journal.StepPropose) && d.book.plans[r.Plan].Dedicated {
			d.publishOwners()
		}
		d.watch.tell(r.Plan)
	}
	return nil
}

// History is journal.Journal.History of the desk's journal.
func (d *Desk) History(w journal.Wanted) iter.Seq2[*journal.Record, error] {
	return d.journal.History(w)
}

// Since is journal.Journal.Since of the desk's journal.
func (d *Desk) Since(n uint64, visit func(*journal.Record) error) (uint64, error) {
	return d.journal.Since(n, visit)
}

// Plan returns one plan with its results, or ErrNotFound.
func (d *Desk) Plan(ctx context.Context, id string) (p remap.Plan, err error) {
	err = d.do(ctx, func() error {
		e, err := d.book.get(id)
		if err == nil {
			p = d.book.whole(e)
		}
		return err
	})
	return p, err
}

// Plans returns the newest plans, at most limit (0: all of them), the newest first, without the
// results of their moves, and of those that have ended without the moves: of these there may be
// thousands each, and who wants them asks for one Plan.
func (d *Desk) Plans(ctx context.Context, limit int) (plans []remap.Plan, err error) {
	err = d.do(ctx, func() error {
		for _, id := range slices.Backward(d.book.order) {
			if limit > 0 && len(plans) == limit {
				break
			}
			plans = append(plans, d.book.plans[id].brief())
		}
		return nil
	})
	return plans, err
}

// Waiting returns the plans that wait for a person, the newest first, as Plans does.
func (d *Desk) Waiting(ctx context.Context) (plans []remap.Plan, err error) {
	err = d.do(ctx, func() error {
		for e := range d.book.unfinished {
			if e.State == remap.Proposed {
				plans = append(plans, e.brief())
			}
		}
		return nil
	})
	slices.Reverse(plans)
	return plans, err
}

func (e *entry) brief() remap.Plan {
	p := e.Plan
	p.Results, p.Undo = nil, nil
	return p
}

// OfJob returns the plans of a job, the newest first.
func (d *Desk) OfJob(ctx context.Context, job topology.JobID) (plans []remap.Plan, err error) {
	err = d.do(ctx, func() error {
		for _, id := range slices.Backward(d.book.order) {
			if e := d.book.plans[id]; e.Job == job {
				plans = append(plans, d.book.whole(e))
			}
		}
		return nil
	})
	return plans, err
}

// JobPlan is a plan of a job in short.
type JobPlan struct {
	ID      string
	Job     topology.JobID
	Created time.Time
	State   remap.PlanState
}

// OfJobs returns the plans of many jobs in short, the newest first.
func (d *Desk) OfJobs(ctx context.Context, jobs map[topology.JobID]bool) (plans []JobPlan, err error) {
	err = d.do(ctx, func() error {
		for _, id := range slices.Backward(d.book.order) {
			if e := d.book.plans[id]; jobs[e.Job] {
				plans = append(plans, JobPlan{ID: e.ID, Job: e.Job, Created: e.Created, State: e.State})
			}
		}
		return nil
	})
	return plans, err
}

// watchers are told which plans changed.
type watchers struct {
	mu      sync.Mutex // guards everything that follows
	chans   map[chan string]struct{}
	dropped uint64
	closed  bool
}

// Watch returns a channel of the ids of plans that changed, FeedChanged or FindingsChanged. It holds up to buffer ids;
// what does not fit is dropped and counted, so a slow watcher re-reads Plans now and then. stop ends it; the
// channel is closed then or when the desk closes.
func (d *Desk) Watch(buffer int) (changed <-chan string, stop func()) {
	w, c := &d.watch, make(chan string, max(buffer, 1))
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
func (d *Desk) DroppedChanges() uint64 {
	d.watch.mu.Lock()
	defer d.watch.mu.Unlock()
	return d.watch.dropped
}

func (w *watchers) tell(id string) {
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

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.chans {
		close(c)
	}
	w.chans = nil
}
