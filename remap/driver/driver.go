// Package driver holds the ways to change a mapping on a machine. Each driver is a folder below;
// this package has what they share: the fan-out over many nodes, and the driver of a daemon that
// was given none.
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
)

// ErrPermanent is wrapped by outcomes that trying again cannot change, such as a refusal.
var ErrPermanent = errors.New("refused")

// ErrNoDriver is what the Unassigned driver answers.
var ErrNoDriver = errors.New("no driver configured (set driver.kind)")

// Fan says how a driver works through many nodes.
type Fan struct {
	Parallel int           // moves under way together
	Tries    int           // per move, at least 1
	Backoff  time.Duration // before the second try; doubles with each further one
	Timeout  time.Duration // of one try
}

// DefaultFan suits orders over a network of thousands of nodes: 256 together, three tries.
func DefaultFan() Fan {
	return Fan{Parallel: 256, Tries: 3, Backoff: 200 * time.Millisecond, Timeout: 5 * time.Second}
}

// Each calls one for every move, with tries and back-off, and reports each outcome as it comes. It
// returns when all that began have ended; after ctx ends no further move begins, and moves that
// did not begin are not reported.
func (f Fan) Each(ctx context.Context, moves []remap.Move, one func(context.Context, remap.Move) error,
	report func(remap.Result)) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, max(f.Parallel, 1))
	for _, m := range moves {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wg.Go(func() {
			defer func() { <-room }()
			report(f.try(ctx, m, one))
		})
	}
	return nil
}

// thenMark stands between the first error of a move and that of its last try.
const thenMark = "; tried again: "

func (f Fan) try(ctx context.Context, m remap.Move, one func(context.Context, remap.Move) error) remap.Result {
	begun, wait := time.Now(), f.Backoff
	r := remap.Result{Node: m.Node}
	for {
		r.Tries++
		err := f.once(ctx, m, one)
		r.At, r.Took = time.Now(), time.Since(begun)
		if err == nil {
			r.OK, r.Error = true, ""
			return r
		}
		if text := err.Error(); r.Error == "" {
			r.Error = text
		} else if !strings.Contains(r.Error, text) {
			first, _, _ := strings.Cut(r.Error, thenMark)
			r.Error = first + thenMark + text // what failed first is the cause, what failed last is how it is now
		}
		if r.Tries >= f.Tries || errors.Is(err, ErrPermanent) || ctx.Err() != nil {
			return r
		}
		if !pace.Wait(ctx, wait) {
			return r
		}
		wait *= 2
	}
}

func (f Fan) once(ctx context.Context, m remap.Move, one func(context.Context, remap.Move) error) error {
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.Timeout, fmt.Errorf("no answer within %s", f.Timeout))
		defer cancel()
	}
	err := one(ctx, m)
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// Gather asks nodes, with tries and back-off, and returns their answers. A node that does not answer is absent, and the
// error names one.
func Gather[A any](ctx context.Context, f Fan, nodes []topology.NodeID,
	ask func(context.Context, topology.NodeID) (A, error)) (map[topology.NodeID]A, error) {
	var mu sync.Mutex
	found := map[topology.NodeID]A{}
	var failed error
	err := f.Each(ctx, remap.MoveAll(nodes, ""), func(ctx context.Context, m remap.Move) error {
		a, err := ask(ctx, m.Node)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			found[m.Node] = a
		}
		return err
	}, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		if !r.OK && failed == nil {
			failed = fmt.Errorf("%s: %s", r.Node, r.Error)
		}
	})
	if err == nil {
		err = failed
	}
	return found, err
}

// Back turns moves around, for a restore.
func Back(moves []remap.Move) []remap.Move {
	back := make([]remap.Move, len(moves))
	for i, m := range moves {
		back[i] = remap.Move{Node: m.Node, From: m.To, To: m.From, Spread: m.Spread}
	}
	return back
}

// Unassigned is the driver of a daemon that was given none: it refuses every call.
type Unassigned struct{}

var _ remap.Driver = Unassigned{}

// Preview refuses with ErrNoDriver.
func (Unassigned) Preview(context.Context, remap.Plan) ([]string, error) { return nil, ErrNoDriver }

// Apply refuses with ErrNoDriver.
func (Unassigned) Apply(context.Context, remap.Plan, func(remap.Result)) error { return ErrNoDriver }

// Observe refuses with ErrNoDriver.
func (Unassigned) Observe(context.Context, []topology.NodeID) (topology.Mapping, error) {
	return nil, ErrNoDriver
}

// Restore refuses with ErrNoDriver.
func (Unassigned) Restore(context.Context, remap.Plan, func(remap.Result)) error { return ErrNoDriver }

// Orderer reaches agents.
type Orderer interface {
	// Order waits for the agent's answer. An error says that there was none: then it is not known
	// whether the order was carried out.
	Order(ctx context.Context, node topology.NodeID, o wire.Order) (wire.OrderResult, error)
	// Connected says whether an order to the node could be sent now.
	Connected(node topology.NodeID) bool
}

// Orders gives orders to agents. Each has an id of its own: an agent answers a repeated id with its first answer, and a
// retry wants a new one.
type Orders struct {
	Orderer
	seed int64 // keeps the ids of two lives of the daemon apart
	next atomic.Uint64
}

// NewOrders returns orders over agents.
func NewOrders(agents Orderer) *Orders { return &Orders{Orderer: agents, seed: time.Now().UnixNano()} }

// Send sends one order and returns the body of its answer.
func (a *Orders) Send(ctx context.Context, n topology.NodeID, kind, plan string, body any) (json.RawMessage, error) {
	o := wire.Order{ID: fmt.Sprintf("%s/%x/%d", plan, a.seed, a.next.Add(1)), Kind: kind}
	o.Deadline, _ = ctx.Deadline()
	var err error
	if o.Body, err = json.Marshal(body); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	res, err := a.Order(ctx, n, o)
	if err == nil && !res.OK {
		err = fmt.Errorf("agent of %s: %s", n, res.Err)
	}
	return res.Body, err
}

// Ask sends one order and reads its answer.
func Ask[A any](ctx context.Context, to *Orders, n topology.NodeID, kind, plan string, body any) (got A, err error) {
	answer, err := to.Send(ctx, n, kind, plan, body)
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return got, fmt.Errorf("%w: agent of %s: answer %.80q: %w", ErrPermanent, n, answer, err)
	}
	return got, nil
}
