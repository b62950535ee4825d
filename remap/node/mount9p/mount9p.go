// Package mount9p moves a compute node whose file system is a fairway-mount, by the mount's control socket:
// open files survive.
package mount9p

import (
	"context"

	"fairway/collector/source/mount"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Mover is the fairway-mount behind a control socket.
type Mover struct{ Socket string }

var _ node.Mover = Mover{}

// Move orders the mount to use o.Forwarder. A mount that does already changes nothing.
func (m Mover) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	q := mount.Request{Op: "remap", Addr: o.Addr, Forwarder: o.Forwarder}
	if o.Force {
		q.Op = "force"
	}
	return m.ask(ctx, q)
}

// Way is how it moves the node.
func (Mover) Way() string { return wire.WayMount }

// Route asks the mount which forwarder it uses.
func (m Mover) Route(ctx context.Context) (wire.RouteAnswer, error) {
	return m.ask(ctx, mount.Request{Op: "stats"})
}

func (m Mover) ask(ctx context.Context, q mount.Request) (wire.RouteAnswer, error) {
	r, err := mount.Ask(ctx, m.Socket, q)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	return wire.RouteAnswer{Forwarder: r.Report.Forwarder, Generation: r.Report.Generation}, nil
}
