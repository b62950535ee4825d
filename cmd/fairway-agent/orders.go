package main

import (
	"context"
	"encoding/json"
	"fmt"

	"fairway/collector/fwdmount"
	"fairway/collector/stream"
	"fairway/collector/wire"
)

// orderHandlers are the orders this agent carries out: asking the mount's route wherever there is a
// mount, moving it only where [orders] says so.
func orderHandlers(c Config) map[string]stream.OrderHandler {
	out := map[string]stream.OrderHandler{}
	if !c.Source.FwdMount.Enabled {
		return out
	}
	socket := c.Source.FwdMount.Control
	out[wire.OrderRoute] = func(ctx context.Context, _ wire.Order) (json.RawMessage, error) {
		return body(fwdmount.Route(ctx, socket))
	}
	if !c.Orders.Enabled {
		return out
	}
	out[wire.OrderRemap] = func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
		var remap wire.RemapOrder
		if err := json.Unmarshal(o.Body, &remap); err != nil {
			return nil, fmt.Errorf("order %s: body: %w", o.ID, err)
		}
		if remap.Forwarder == "" || remap.Addr == "" {
			return nil, fmt.Errorf("order %s: forwarder %q at %q: both must be said", o.ID, remap.Forwarder, remap.Addr)
		}
		return body(fwdmount.Remap(ctx, socket, remap))
	}
	return out
}

func body(a wire.RouteAnswer, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}
