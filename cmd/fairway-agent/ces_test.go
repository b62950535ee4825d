package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// An agent of a protocol node moves only the addresses that its settings allow, to nodes that they name, and suspends
// no other node than its own.
func TestCESMovesAllowedAddressesAlone(t *testing.T) {
	o := &Orders{Enabled: true, By: byCES, Allow: []string{"10.2.3.0/24", "2001:db8::/64"},
		Forwarders: map[string]string{"gw1": "ces1.site"}}
	c := &Config{Node: "gw1", Role: topology.Forwarder.String(), Orders: *o}
	if err := c.validateOrders(); err != nil {
		t.Fatal(err)
	}
	moved := errors.New("moved")
	move := o.checkedAddress(func(context.Context, wire.Order) (json.RawMessage, error) { return nil, moved })
	for address, may := range map[string]bool{"10.2.3.1": true, "::ffff:10.2.3.1": true, "2001:db8::7": true,
		"10.2.4.1": false, "2001:db9::7": false, "ces1.site": false, "": false, "10.2.3.1/0": false} {
		b, err := json.Marshal(wire.MoveAddressOrder{Address: address, Forwarder: "gw1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := move(t.Context(), wire.Order{ID: "o", Body: b}); errors.Is(err, moved) != may ||
			!may && !strings.Contains(err.Error(), "orders.allow") {
			t.Errorf("%q: %v", address, err)
		}
	}
	c.Orders.Allow = append(c.Orders.Allow, "ces1.site")
	if err := c.validateOrders(); err == nil || !strings.Contains(err.Error(), "has a host name") {
		t.Error(err)
	}
	suspend := handlers(Config{Node: "gw1", Orders: *o}, nil)[wire.OrderSuspend]
	_, err := suspend(t.Context(), wire.Order{ID: "o",
		Body: json.RawMessage(`{"node":"gw2","forwarder":"gw2","plan":"P-1"}`)})
	if err == nil || !strings.Contains(err.Error(), `it is for node "gw2"`) {
		t.Error(err)
	}
}
