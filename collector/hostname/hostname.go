// Package hostname finds the nodes behind addresses, beside the ticks of who asks.
package hostname

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Names finds the nodes behind addresses. A look-up may take long and runs beside the ticks; until it is done the
// name is not known.
type Names struct {
	lookup func(context.Context, netip.Addr) (string, error)
	ctx    context.Context // ends with the names
	stop   context.CancelFunc
	slots  chan struct{}
	tasks  sync.WaitGroup

	mu    sync.Mutex // guards everything that follows
	known map[netip.Addr]*nameOf
}

type nameOf struct {
	name string
	done bool
	ask  time.Time // when it is looked up again
}

const (
	// maxNames bounds the addresses that are remembered.
	maxNames = 1 << 14
	// An address without a name stands for its node, and is looked up again after a while.
	askNamelessEvery = 10 * time.Minute
	askNamedEvery    = time.Hour
	lookupWithin     = 5 * time.Second
	lookupsAtOnce    = 16
)

// New returns names as lookup finds them; Lookup is the system's.
func New(lookup func(context.Context, netip.Addr) (string, error)) *Names {
	n := &Names{lookup: lookup, slots: make(chan struct{}, lookupsAtOnce), known: map[netip.Addr]*nameOf{}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// firstName is how long a new address may hold the tick up: files and nearby servers answer in it.
const firstName = 20 * time.Millisecond

// Of returns the name of the node with an address, without its domain.
func (n *Names) Of(ctx context.Context, a netip.Addr) (string, bool) {
	n.mu.Lock()
	e := n.known[a]
	if e != nil && (!e.done || time.Now().Before(e.ask)) {
		defer n.mu.Unlock()
		return e.name, e.done
	}
	if e == nil {
		if len(n.known) >= maxNames {
			clear(n.known)
		}
		e = &nameOf{}
		n.known[a] = e
	}
	had := e.done
	e.ask = time.Now().Add(askNamelessEvery)
	found := make(chan struct{})
	if n.ctx.Err() == nil {
		n.tasks.Go(func() { defer close(found); n.find(a, e) })
	}
	n.mu.Unlock()
	if !had {
		ctx, cancel := context.WithTimeout(ctx, firstName)
		defer cancel()
		select {
		case <-found:
		case <-ctx.Done():
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.name, e.done
}

func (n *Names) find(a netip.Addr, e *nameOf) {
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-n.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, lookupWithin)
	defer cancel()
	name, err := n.lookup(ctx, a)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil && name != "":
		e.name, e.ask = name, time.Now().Add(askNamedEvery)
	case e.name == "":
		e.name = a.String()
	}
	e.done = true
}

// Close ends the look-ups.
func (n *Names) Close() {
	n.mu.Lock()
	n.stop() // under mu, so that Of starts nothing afterwards
	n.mu.Unlock()
	n.tasks.Wait()
}

// Lookup asks the system for the name of an address.
func Lookup(ctx context.Context, a netip.Addr) (string, error) {
	all, err := net.DefaultResolver.LookupAddr(ctx, a.String())
	if err != nil || len(all) == 0 {
		return "", err
	}
	short, _, _ := strings.Cut(all[0], ".")
	return short, nil
}
