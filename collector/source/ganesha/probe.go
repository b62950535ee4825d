package ganesha

import (
	"context"
	"errors"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/p9"
)

// probeWithin bounds one getattr: one given up counts as what it had waited by then.
const probeWithin = 10 * time.Second

// probe times one getattr a second through the 9P service: what a metadata request waits there now. The attributes
// come from the back end where the gateway does not keep them.
type probe struct {
	addr, export string
	uid          uint32
	ctx          context.Context // ends with the probe
	stop         context.CancelFunc
	running      sync.WaitGroup

	mu      sync.Mutex // guards everything that follows
	busy    bool
	took    time.Duration // of the newest, until it is taken
	known   bool
	counted int // getattrs answered since perSecond
	client  *p9.Client
	root    *p9.Fid
}

func newProbe(addr, export string, uid uint32) *probe {
	p := &probe{addr: addr, export: export, uid: uid}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// take returns how long the newest getattr took, and begins the next one. A nil probe has none.
func (p *probe) take() (took time.Duration, ok bool) {
	if p == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	took, ok, p.known = p.took, p.known, false
	if !p.busy && p.ctx.Err() == nil {
		p.busy = true
		p.running.Go(p.once)
	}
	return took, ok
}

// perSecond is the rate of the probe's own getattrs since the last call.
func (p *probe) perSecond(seconds float64) float64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.counted
	p.counted = 0
	if seconds == 0 {
		return 0
	}
	return float64(n) / seconds
}

func (p *probe) once() {
	ctx, cancel := context.WithTimeout(p.ctx, probeWithin)
	defer cancel()
	var took time.Duration
	err := collector.Fenced(func() (err error) { took, err = p.time(ctx); return err })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		p.took, p.known = took, true
		p.counted++
	}
	if err != nil && p.client != nil { // dialled again at the next second
		p.client.Close()
		p.client, p.root = nil, nil
	}
}

// time measures one getattr. The connection is the running once's own.
func (p *probe) time(ctx context.Context) (time.Duration, error) {
	if p.client == nil {
		c, err := p9.Dial(ctx, p.addr, 0)
		if err != nil {
			return 0, err
		}
		root, err := c.Attach(ctx, p.export, p.uid)
		if err != nil {
			c.Close()
			return 0, err
		}
		p.client, p.root = c, root
	}
	return p.root.TimeGetAttr(ctx)
}

// close ends the probe; a nil one is closed.
func (p *probe) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.stop() // under mu, so that take starts nothing afterwards
	p.mu.Unlock()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}
