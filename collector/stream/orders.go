package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/collector/wire"
)

// OrderHandler carries out one kind of order before ctx ends and returns the answer's JSON body.
// It must be safe to repeat: after the agent's restart an order may come again.
type OrderHandler func(ctx context.Context, o wire.Order) (json.RawMessage, error)

// Handler carries out orders whose body is a T; an empty body is its zero value, a nil answer an empty one.
func Handler[T any](do func(context.Context, T) (any, error)) OrderHandler {
	return func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
		body, err := bodyOf[T](&o)
		if err != nil {
			return nil, err
		}
		answer, err := do(ctx, body)
		if err != nil || answer == nil {
			return nil, err
		}
		return json.Marshal(answer)
	}
}

// Checked refuses the orders with whose body check is not content.
func Checked[T any](do OrderHandler, check func(T) error) OrderHandler {
	return func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
		body, err := bodyOf[T](&o)
		if err != nil {
			return nil, err
		}
		if err := check(body); err != nil {
			return nil, fmt.Errorf("order %s: %w", o.ID, err)
		}
		return do(ctx, o)
	}
}

func bodyOf[T any](o *wire.Order) (body T, err error) {
	if len(o.Body) == 0 {
		return body, nil
	}
	if err := json.Unmarshal(o.Body, &body); err != nil {
		return body, fmt.Errorf("order %s: body: %w", o.ID, err)
	}
	return body, nil
}

const (
	maxOrdersAtOnce = 2 * wire.MaxOrders // one that the daemon has given up may still be at work
	rememberResults = 1024
	rememberBytes   = 4 << 20
	defaultPatience = 30 * time.Second // for an order without a deadline
	// maxPatience ends an order whatever its deadline: one that hangs must not keep its place for ever.
	maxPatience = 15 * time.Minute
)

// desk takes orders, does each id once, and remembers the results.
type desk struct {
	handlers map[string]OrderHandler
	fence    *Fence // nil: orders have no term
	results  chan wire.OrderResult
	running  sync.WaitGroup

	mu    sync.Mutex                   // guards everything that follows
	known map[string]*wire.OrderResult // nil while in progress
	order []string                     // the known ids that are done, oldest first
	held  int                          // bytes of their results
	busy  int
}

func (d *desk) open(handlers map[string]OrderHandler, fence *Fence) {
	d.handlers, d.fence = handlers, fence
	d.results = make(chan wire.OrderResult, 2*maxOrdersAtOnce)
	d.known = make(map[string]*wire.OrderResult)
}

func (d *desk) wait() { d.running.Wait() }

// take starts an order, or answers a repetition with the first result.
func (d *desk) take(ctx context.Context, o wire.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.known[o.ID]; ok {
		if r != nil {
			d.answer(*r)
		}
		return
	}
	handler, ok := d.handlers[o.Kind]
	switch {
	case !ok:
		d.answer(refusal(o, "this agent does not carry out orders of kind %q ([orders] in its configuration)", o.Kind))
		return
	case !o.Deadline.IsZero() && !time.Now().Before(o.Deadline):
		d.answer(refusal(o, "the deadline %s had passed when the order came", o.Deadline.Format(time.RFC3339Nano)))
		return
	case d.fence != nil && !wire.Asks(o.Kind) && !d.fence.admits(o.Term):
		d.answer(refusal(o, "%s", d.fence.words(o.Term)))
		return
	case d.busy >= maxOrdersAtOnce:
		d.answer(refusal(o, "%d orders are in progress already", d.busy))
		return
	}
	d.known[o.ID] = nil
	d.busy++
	d.running.Go(func() { d.do(ctx, handler, o) })
}

func refusal(o wire.Order, format string, args ...any) wire.OrderResult {
	return wire.OrderResult{ID: o.ID, Err: fmt.Sprintf(format, args...)}
}

func (d *desk) do(ctx context.Context, h OrderHandler, o wire.Order) {
	begun := time.Now()
	deadline := o.Deadline
	if deadline.IsZero() {
		deadline = begun.Add(defaultPatience)
	} else if last := begun.Add(maxPatience); deadline.After(last) {
		deadline = last
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	body, err := fenced(ctx, h, o)
	r := wire.OrderResult{ID: o.ID, OK: err == nil, Took: time.Since(begun), Body: body}
	if err != nil {
		r.Err = clipped(err.Error())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	d.remember(o, &r)
	d.answer(r)
}

// remember keeps a result for a repetition of its order. d.mu is held.
func (d *desk) remember(o wire.Order, r *wire.OrderResult) {
	if wire.Passing(o.Kind) {
		delete(d.known, o.ID)
		return
	}
	d.known[o.ID] = r
	d.order = append(d.order, o.ID)
	d.held += sizeOf(r)
	for len(d.order) > rememberResults || d.held > rememberBytes && len(d.order) > 1 {
		d.held -= sizeOf(d.known[d.order[0]])
		delete(d.known, d.order[0])
		d.order = slices.Delete(d.order, 0, 1)
	}
}

func sizeOf(r *wire.OrderResult) int { return len(r.ID) + len(r.Err) + len(r.Body) }

// clipped is an error's text as far as the wire takes it: it may quote an order of a megabyte.
func clipped(text string) string {
	if len(text) <= wire.MaxTextBytes {
		return text
	}
	const cut = " [...]"
	return strings.ToValidUTF8(strings.Clone(text[:wire.MaxTextBytes-len(cut)]), "") + cut
}

// answer never waits: where nobody sends, the daemon asks again and is answered from memory.
func (d *desk) answer(r wire.OrderResult) {
	select {
	case d.results <- r:
	default:
	}
}

func fenced(ctx context.Context, h OrderHandler, o wire.Order) (body json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: order %s: panic: %v", o.Kind, p)
		}
	}()
	return h(ctx, o)
}
