package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

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
