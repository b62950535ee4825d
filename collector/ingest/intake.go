package ingest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/collector/wire"
)

// What many connections bring is shown and stored together: one look at the newest second, one commit and one pass of
// acknowledgements for all that came within a moment.

const (
	// gatherFor is the moment.
	gatherFor = 10 * time.Millisecond
	// maxBatch is how many frames are taken at once, of each token at least perToken: a message waits for few of the
	// others', and not for all that a flood has under way.
	maxBatch = 4096
	perToken = 64
	// storeWithin is how long what waits behind a full batch waits for the store: longer would be seen on screens.
	storeWithin = 100 * time.Millisecond
)

// intake shows and stores what the connections bring.
type intake struct {
	cfg   *Config
	stats *Stats
	// refusing is why the store did not keep the newest frames; nil when it did.
	refusing atomic.Pointer[error]
	appends  appends
	stopping chan struct{}   // closed by Close
	ctx      context.Context // ends then
	stop     context.CancelFunc
	names    wire.Names
	decoders sync.Pool // of *wire.Decoder
	owes     owes
	wait     sync.WaitGroup

	mu      sync.Mutex // guards ready and running
	ready   []*sender  // those with messages that are not shown yet
	running bool
	// entered is closed when the batch before the next one is in the store's memory, so that a node's seconds enter in
	// their order. It is run's.
	entered chan struct{}
}

func (q *intake) open(cfg *Config, stats *Stats) {
	q.cfg, q.stats, q.stopping = cfg, stats, make(chan struct{})
	q.ctx, q.stop = context.WithCancel(context.Background())
}

// StoreErr returns why the store did not keep the newest frames; nil when all is well. Agents keep
// theirs meanwhile.
func (q *intake) StoreErr() error {
	if err := q.refusing.Load(); err != nil {
		return *err
	}
	return nil
}

// hand takes a message. What is shown is not late for a slow store, and what is stored keeps its order.
func (q *intake) hand(f *inFlight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := f.conn.sender
	if len(p.waiting) == 0 {
		q.ready = append(q.ready, p)
	}
	p.waiting = append(p.waiting, f)
	if !q.running {
		q.running = true
		q.wait.Go(q.run)
	}
}

// run takes what came, a batch a moment, until nothing comes.
func (q *intake) run() {
	var shown []collector.Frame
	for {
		batch, more := q.next()
		if batch == nil {
			return
		}
		if q.cfg.Observe != nil {
			if shown = shown[:0]; len(batch) > 1 {
				for _, f := range batch {
					shown = append(shown, f.frames...)
				}
				q.cfg.Observe(shown, time.Now())
				clear(shown)
			} else {
				q.cfg.Observe(batch[0].frames, time.Now())
			}
		}
		before := q.entered
		q.entered = make(chan struct{})
		entered := q.entered
		q.wait.Go(func() { q.store(batch, before, entered) })
		wait, behind := gatherFor, (<-chan struct{})(nil)
		if more {
			wait, behind = storeWithin, entered
		}
		select {
		case <-time.After(wait):
		case <-behind:
		case <-q.stopping:
		}
	}
}

// next takes messages of every token in turn; more says that others wait. Without any the run is over.
func (q *intake) next() (batch []*inFlight, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		q.running = false
		return nil, false
	}
	most, still := max(maxBatch/len(q.ready), perToken), 0
	for _, p := range q.ready {
		n, frames := 0, 0
		for n < len(p.waiting) && (n == 0 || frames+len(p.waiting[n].frames) <= most) {
			frames += len(p.waiting[n].frames)
			n++
		}
		batch = append(batch, p.waiting[:n]...)
		if n < len(p.waiting) {
			p.waiting = append([]*inFlight(nil), p.waiting[n:]...)
			q.ready[still] = p
			still++
		} else {
			p.waiting = nil
		}
	}
	clear(q.ready[still:])
	q.ready = q.ready[:still]
	return batch, still > 0
}

// store makes messages durable and acknowledges them.
func (q *intake) store(batch []*inFlight, before <-chan struct{}, entered chan<- struct{}) {
	if before != nil {
		<-before
	}
	e, ok := q.cfg.Store.(enterer)
	if !ok {
		close(entered)
		var all sync.WaitGroup
		for _, f := range batch {
			all.Go(func() {
				f.finish(q.append(q.ctx, f.conn.sender, f.frames))
				f.conn.acknowledge(time.Now())
			})
		}
		all.Wait()
		return
	}
	frames := 0
	for _, f := range batch {
		frames += len(f.frames)
	}
	done := q.watch(frames)
	durable := make([]func(context.Context) error, len(batch))
	var failed error
	for i, f := range batch {
		var err error
		if durable[i], err = e.Enter(q.ctx, f.frames); err != nil {
			failed = err
			f.finish(err)
		}
		f.free()
	}
	close(entered)
	for i, f := range batch {
		if durable[i] == nil {
			continue
		}
		err := durable[i](q.ctx)
		if err != nil {
			failed = err
		}
		f.finish(err)
	}
	done(failed)
	q.keeps(q.ctx, failed)
	now := time.Now()
	for _, f := range batch {
		f.conn.acknowledge(now)
	}
}

// finish notes what became of a message and gives its memory back.
func (f *inFlight) finish(err error) {
	f.free()
	f.conn.stored(f, err)
}

func (f *inFlight) free() {
	if f.memory != nil {
		f.conn.hub.release(f.memory)
		f.memory, f.frames = nil, nil
		f.conn.sender.held.Release(int64(f.held))
	}
}

// decoder returns one with the names that all share.
func (q *intake) decoder() *wire.Decoder {
	if d, ok := q.decoders.Get().(*wire.Decoder); ok {
		return d
	}
	return &wire.Decoder{Names: &q.names}
}

func (q *intake) release(d *wire.Decoder) {
	if d.Small() {
		q.decoders.Put(d)
	}
}
