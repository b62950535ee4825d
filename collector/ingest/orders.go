package ingest

import (
	"context"
	"errors"

	"fairway/collector/wire"
)

var errLost = errors.New("the connection was lost before the answer")

func (c *connection) order(ctx context.Context, o wire.Order) (wire.OrderResult, error) {
	if o.Deadline.IsZero() {
		o.Deadline, _ = ctx.Deadline()
	}
	msg, err := wire.Append(nil, o)
	if err != nil {
		return wire.OrderResult{}, err
	}
	c.mu.Lock()
	if c.orders == nil {
		c.orders, c.answers = make(chan struct{}, wire.MaxOrders), map[string]chan wire.OrderResult{}
	}
	c.mu.Unlock()
	select { // one agent may speak for many nodes; what it cannot take yet waits here
	case c.orders <- struct{}{}:
		defer func() { <-c.orders }()
	case <-c.ended:
		return wire.OrderResult{}, errLost
	case <-ctx.Done():
		return wire.OrderResult{}, ctx.Err()
	}
	answer := make(chan wire.OrderResult, 1)
	c.mu.Lock()
	_, twice := c.answers[o.ID]
	if !twice {
		c.answers[o.ID] = answer
	}
	c.mu.Unlock()
	if twice {
		return wire.OrderResult{}, errors.New("the same order is under way already")
	}
	defer func() {
		c.mu.Lock()
		delete(c.answers, o.ID)
		c.mu.Unlock()
	}()
	if !c.link.Send(msg) {
		return wire.OrderResult{}, errors.New("the agent does not take what is sent to it")
	}
	select {
	case res := <-answer:
		return res, nil
	case <-c.ended:
		return wire.OrderResult{}, errLost
	case <-ctx.Done():
		return wire.OrderResult{}, ctx.Err()
	}
}

func (c *connection) answered(res wire.OrderResult) {
	c.mu.Lock()
	answer := c.answers[res.ID]
	c.mu.Unlock()
	if answer == nil {
		return // nobody waits any more
	}
	select {
	case answer <- res:
	default: // answered twice
	}
}
