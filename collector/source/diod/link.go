package diod

import (
	"context"
	"errors"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/p9"
)

const (
	getAttrTimeout = 10 * time.Second
	// idleTicks is how many ticks a job's tree may have no user but us before we let it go.
	idleTicks = 3
	maxHeld   = 256 // trees held at most; past it only exported ones are
)

// link is one connection to diod: its queue sampler, and the trees held by an idle attach so that
// their counters do not go with their last user.
type link struct {
	control control
	workers uint64 // of each tree
	cancel  context.CancelFunc
	ctx     context.Context // ends with the link; for what outlives one tick
	running sync.WaitGroup

	mu      sync.Mutex // guards everything that follows
	queue   queue
	spare   queue
	held    map[string]*hold
	exports map[string]bool
	waits   time.Duration
	waited  int
	failed  map[string]bool // trees that we may not attach to
	lost    error           // why sampling ended
}

// hold is one tree's idle attach.
type hold struct {
	anchor anchor
	export bool
	busy   bool   // a getattr is under way
	probes uint64 // getattrs answered since takeProbes
	idle   int
}

// queue sums gauge samples.
type queue struct {
	samples int
	sum     uint64
	waiting uint64 // of sum: more than a tree has workers, so that none was free for them
	trees   map[string]uint64
}

// mean is what a sum comes to in a sample; ok is false without any.
func (q *queue) mean(sum uint64) (mean float64, ok bool) {
	if q.samples == 0 {
		return 0, false
	}
	return float64(sum) / float64(q.samples), true
}

func newLink(c control, workers uint64) *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		control: c, workers: workers, ctx: ctx, cancel: cancel, held: map[string]*hold{}, failed: map[string]bool{},
		queue: queue{trees: map[string]uint64{}}, spare: queue{trees: map[string]uint64{}},
	}
	l.running.Go(func() {
		if err := collector.Fenced(l.sampleQueue); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lost = err
		}
	})
	return l
}

// Close ends the link and waits for its goroutines.
func (l *link) Close() error {
	l.mu.Lock()
	l.cancel() // under mu, so that hold starts nothing afterwards
	l.mu.Unlock()
	err := l.control.Close() // frees what waits for an answer
	l.running.Wait()
	return err
}

// sampleQueue reads the gauge until the link ends; an error is that of a lost connection. A reading that fails gives no
// sample; Read says why.
func (l *link) sampleQueue() error {
	for l.control.Wait(l.ctx) {
		text, ok, err := l.control.Look()
		if lost := (*p9.TransportError)(nil); errors.As(err, &lost) {
			return err
		}
		if ok {
			l.sampled(text)
		}
	}
	return nil
}

func (l *link) sampled(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.samples++
	queueOf(text, func(tree []byte, queued uint64) {
		l.queue.sum += queued
		l.queue.waiting += queued - min(queued, l.workers)
		if sum, ok := l.queue.trees[string(tree)]; !ok || queued > 0 { // only a new tree allocates
			l.queue.trees[string(tree)] = sum + queued
		}
	})
}

// broken says why the link is of no more use; nil while it is well.
func (l *link) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// takeQueue returns what was sampled since the last call; it is valid until the next one.
func (l *link) takeQueue() *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.spare = l.spare, l.queue
	l.queue.samples, l.queue.sum, l.queue.waiting = 0, 0, 0
	if len(l.queue.trees) > maxHeld {
		clear(l.queue.trees)
	}
	for tree := range l.queue.trees {
		l.queue.trees[tree] = 0
	}
	return &l.spare
}

// takeMetaWait returns the mean of the getattrs answered since the last call.
func (l *link) takeMetaWait() (mean time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waited == 0 {
		return 0, false
	}
	mean = l.waits / time.Duration(l.waited)
	l.waits, l.waited = 0, 0
	return mean, true
}

func (l *link) takeProbes(tree string) (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[tree]; h != nil {
		n, h.probes = h.probes, 0
	}
	return n
}

// hold attaches to every tree that is new, times a getattr in each, and lets go of jobs that left.
func (l *link) hold(ctx context.Context, pools []pool) {
	l.findExports(ctx)
	for tree := range l.exports {
		l.attach(ctx, tree, true)
	}
	for i := range pools {
		p := &pools[i]
		if p.tree == ownPool || p.tree == "ctl" {
			continue
		}
		if _, isJob := jobOf(p.tree); isJob && p.fids > 0 && len(l.held) < maxHeld {
			l.attach(ctx, p.tree, false)
		}
		l.letGo(ctx, p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held {
		if !h.busy && l.ctx.Err() == nil {
			h.busy = true
			l.running.Go(func() { l.time(h) })
		}
	}
}

func (l *link) findExports(ctx context.Context) {
	if l.exports != nil {
		return
	}
	text, err := l.control.ReadFile(ctx, "exports", nil)
	if err != nil {
		return // the trees in use report it, too
	}
	l.exports = map[string]bool{}
	for _, tree := range parseExports(text) {
		l.exports[tree] = true
	}
}

func (l *link) attach(ctx context.Context, tree string, export bool) {
	l.mu.Lock()
	known := l.held[tree] != nil || l.failed[tree]
	l.mu.Unlock()
	if known {
		return
	}
	a, err := l.control.Attach(ctx, tree)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		// A tree that cannot be attached has no metadata wait and loses its last second; no more.
		if ctx.Err() == nil {
			l.failed[tree] = true
		}
		return
	}
	l.held[tree] = &hold{anchor: a, export: export}
}

// letGo gives a job's tree back after nobody else used it for some ticks.
func (l *link) letGo(ctx context.Context, p *pool) {
	l.mu.Lock()
	h := l.held[p.tree]
	if h == nil || h.export || h.busy || p.fids > 1 {
		if h != nil {
			h.idle = 0
		}
		l.mu.Unlock()
		return
	}
	h.idle++
	gone := h.idle > idleTicks
	if gone {
		delete(l.held, p.tree)
	}
	l.mu.Unlock()
	if gone {
		_ = h.anchor.Clunk(ctx) // the fid is gone either way
	}
}

// time measures one getattr in a tree's worker pool. Its answer belongs to the second in which it
// comes, however long it waited; one given up counts as what it had waited by then.
func (l *link) time(h *hold) {
	ctx, cancel := context.WithTimeout(l.ctx, getAttrTimeout)
	defer cancel()
	var took time.Duration
	err := collector.Fenced(func() (err error) { took, err = h.anchor.TimeGetAttr(ctx); return err })
	l.mu.Lock()
	defer l.mu.Unlock()
	h.busy = false
	h.probes++
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		l.waits += took
		l.waited++
	}
}
