package lnet

import (
	"context"
	"encoding/json"
	"fmt"

	"fairway/collector/stream"
	"fairway/collector/wire"
)

// Handlers are the orders of nodes with LNet beside those that every mover has; without mayMove only those that
// change nothing.
func (m *Mover) Handlers(mayMove bool) map[string]stream.OrderHandler {
	out := map[string]stream.OrderHandler{
		wire.OrderLook: handler(func(ctx context.Context, _ struct{}) (any, error) { return m.Look(ctx) }),
		wire.OrderTraffic: handler(func(ctx context.Context, o wire.TrafficOrder) (any, error) {
			return m.Traffic(ctx, o)
		}),
	}
	if mayMove {
		out[wire.OrderAvoid] = handler(func(ctx context.Context, o wire.AvoidOrder) (any,
			error) {
			return m.Avoid(ctx, o)
		})
		out[wire.OrderSteer] = handler(func(ctx context.Context, o wire.SteerOrder) (any, error) {
			return nil, m.Steer(ctx, o)
		})
	}
	return out
}

// handler reads an order's body and writes its answer.
func handler[T any](do func(context.Context, T) (any, error)) stream.OrderHandler {
	return func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
		var body T
		if len(o.Body) > 0 {
			if err := json.Unmarshal(o.Body, &body); err != nil {
				return nil, fmt.Errorf("order %s: body: %w", o.ID, err)
			}
		}
		answer, err := do(ctx, body)
		if err != nil || answer == nil {
			return nil, err
		}
		return json.Marshal(answer)
	}
}
