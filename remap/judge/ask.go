package judge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap"
)

// asked is a person's canary on its way to Run; both channels have room for one.
type asked struct {
	node    topology.NodeID
	to      chan<- remap.Canary
	refused chan<- error
}

// seen is the newest canary of each node, and the newest wish for one.
type seen struct {
	mu sync.Mutex // guards everything that follows
	of map[topology.NodeID]remap.Canary
	by map[topology.NodeID]*wish
}

// wish is a request for a canary; what is the same request by its key waits for the same answer.
type wish struct {
	by, key string
	done    chan struct{} // closed once canary and err hold
	canary  remap.Canary
	err     error
}

func (s *seen) take(c remap.Canary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[c.Forwarder.Node()] = c
}

// Newest returns the newest canary of a forwarder since the daemon's start, whoever asked for it.
func (c *Canaries) Newest(f topology.ForwarderID) (remap.Canary, bool) {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	one, ok := c.seen.of[f.Node()]
	return one, ok
}

// canary is a result beside those of the forwarders that nobody suspects.
func (c *Canaries) canary(r probe.Result) remap.Canary {
	out := remap.Canary{Forwarder: topology.ForwarderID(r.Node), At: r.At.UTC(), Bytes: r.Bytes}
	if r.Err != nil {
		out.Error, out.Bytes = r.Err.Error(), 0
	}
	out.Took = remap.CanaryTook{Read: took(r.Read), Write: took(r.Write), Stat: took(r.Meta)}
	var read, write, stat []time.Duration
	for n, t := range c.newest {
		if n != r.Node {
			read, write, stat = append(read, t.Read), append(write, t.Write), append(stat, t.Meta)
		}
	}
	out.PeersOf = len(read)
	out.Peers = remap.CanaryTook{Read: middle(read), Write: middle(write), Stat: middle(stat)}
	return out
}

func took(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

func middle(all []time.Duration) *float64 {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return took(all[len(all)/2])
}

// Ask sends one canary through a forwarder for a person, within the limits that hold for all of
// them, and returns what it found. It is in the journal before it is sent, and again with its
// result. The detectors are told nothing of it: they rest on canaries sent by rule. Once begun it
// comes to its end though ctx may end, and the same request by its key has the same answer. Errors
// are those of desk.Desk.BeginCanary, and ErrState where the limits stand against it or no way is
// known. A canary that failed is no error: it says so itself.
func (c *Canaries) Ask(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) (remap.Canary,
	error) {
	w, first, err := c.wish(by, f, a.Key)
	if err != nil {
		return remap.Canary{}, err
	}
	if first {
		defer close(w.done)
		if w.err = c.begin(ctx, by, f, a); w.err == nil {
			w.canary, w.err = c.send(context.WithoutCancel(ctx), by, f)
		}
		return w.canary, w.err
	}
	select {
	case <-w.done:
		return w.canary, w.err
	case <-ctx.Done():
		return remap.Canary{}, fmt.Errorf("the canary through %s was not waited for: %w", f, ctx.Err())
	}
}

// wish finds the request that this one repeats, or makes it the newest unless the limits stand
// against it already.
func (c *Canaries) wish(by remap.Person, f topology.ForwarderID, key string) (w *wish, first bool, err error) {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	if w := c.seen.by[f.Node()]; w != nil && key != "" && w.by == by.Name && w.key == key {
		return w, false, nil
	}
	w = &wish{by: by.Name, key: key, done: make(chan struct{})}
	if n, ok := c.judge.cfg.Situation().Machine.Node(f.Node()); !ok || n.Role != topology.Forwarder {
		return w, true, nil // the desk says so
	}
	if err := c.runner.May(time.Now(), f.Node()); err != nil {
		return nil, false, fmt.Errorf("%w: %w", remap.ErrState, err)
	}
	c.seen.by[f.Node()] = w
	return w, true, nil
}

// begin writes the request down.
func (c *Canaries) begin(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) error {
	again, err := c.judge.cfg.Desk.BeginCanary(ctx, by, f, a)
	if err == nil && again {
		err = fmt.Errorf("%w: this canary was asked for before; the audit of %s has its result", remap.ErrState, f)
	}
	return err
}

// send lets the runner send a canary, waits for it and writes its result down.
func (c *Canaries) send(ctx context.Context, by remap.Person, f topology.ForwarderID) (remap.Canary, error) {
	out, err := c.await(f.Node())
	if out.By = by.Name; err != nil {
		out.Forwarder, out.At, out.Error = f, time.Now().UTC(), err.Error()
	} else {
		c.seen.take(out)
	}
	if bad := c.judge.cfg.Desk.EndCanary(ctx, by, out); bad != nil && err == nil {
		err = fmt.Errorf("the canary's result was not recorded: %w", bad)
	}
	return out, err
}

// await gives Run the order and waits for the result.
func (c *Canaries) await(n topology.NodeID) (remap.Canary, error) {
	results, refused := make(chan remap.Canary, 1), make(chan error, 1)
	select {
	case c.asks <- asked{n, results, refused}:
	case <-c.ended:
		return remap.Canary{}, errEnding
	}
	select {
	case one := <-results:
		return one, nil
	case err := <-refused: // another one came first
		return remap.Canary{}, fmt.Errorf("%w: %w", remap.ErrState, err)
	case <-c.ended:
		return remap.Canary{}, errEnding
	}
}

var errEnding = fmt.Errorf("%w: the daemon is ending", remap.ErrState)
