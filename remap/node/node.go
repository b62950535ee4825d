// Package node is the compute node's end of a remap: what an agent does when it is ordered to use
// another forwarder. Each way of doing it is a folder below this one: mount9p, tcpproxy, lnet and remount. tbf, beside
// them, limits what jobs take from Lustre servers.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Mover changes the forwarder of the node that it runs on. One call at a time is made.
type Mover interface {
	// Move makes the node use o.Forwarder and answers with the route that it then has. A node that
	// uses it already is left alone. On an error the node uses what it used before, as far as can be.
	Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error)
	// Route says which forwarder the node uses.
	Route(ctx context.Context) (wire.RouteAnswer, error)
}

// Spreader is a mover of nodes that can use several forwarders at a time.
type Spreader interface {
	// Spread has the node use all of these again, as it did before it was moved.
	Spread(ctx context.Context, over []topology.ForwarderID) (wire.RouteAnswer, error)
}

// Trier is a mover that can try a move without making it.
type Trier interface {
	// Try does all of a move that changes nothing. The error says why the move cannot be made, the text what it would
	// do to programs.
	Try(ctx context.Context, o wire.RemapOrder) (says string, err error)
}

// Handlers are the orders that a mover carries out; without mayMove it only says the route. A mover with a method Way
// answers with the way in which it moves nodes, which plans show.
func Handlers(m Mover, mayMove bool) map[string]stream.OrderHandler {
	one := make(chan struct{}, 1)
	route := func(a wire.RouteAnswer, err error) (any, error) {
		if w, ok := m.(interface{ Way() string }); ok {
			a.Way = w.Way()
		}
		return a, err
	}
	out := map[string]stream.OrderHandler{
		wire.OrderRoute: Handler(one, func(ctx context.Context, _ struct{}) (any, error) {
			return route(m.Route(ctx))
		}),
	}
	if !mayMove {
		return out
	}
	if t, ok := m.(Trier); ok {
		out[wire.OrderTry] = Handler(one, func(ctx context.Context, r wire.RemapOrder) (any, error) {
			says, err := t.Try(ctx, r)
			return wire.TryAnswer{Says: says}, err
		})
	}
	out[wire.OrderRemap] = Handler(one, func(ctx context.Context, r wire.RemapOrder) (any, error) {
		s, spreads := m.(Spreader)
		switch {
		case len(r.Spread) > 0 && spreads:
			return route(s.Spread(ctx, r.Spread))
		case len(r.Spread) > 0:
			return nil, errors.New("this node is moved in a way that knows one forwarder at a time")
		case r.Forwarder == "" || r.Addr == "":
			return nil, fmt.Errorf("forwarder %q at %q: both are required", r.Forwarder, r.Addr)
		}
		return route(m.Move(ctx, r))
	})
	return out
}

// Handler carries out orders while nobody else holds one.
func Handler[T any](one chan struct{}, do func(context.Context, T) (any, error)) stream.OrderHandler {
	return stream.Handler(func(ctx context.Context, body T) (any, error) {
		select {
		case one <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("another order is under way on this node: %w", ctx.Err())
		}
		defer func() { <-one }()
		return do(ctx, body)
	})
}

// Source reports a mover's route once a second, so that a move is verified by what is observed and not by
// what was answered.
type Source struct {
	name string
	node topology.NodeID
	m    Mover
}

var _ collector.Source = (*Source)(nil)

// NewSource makes the source of a node's mover.
func NewSource(name string, node topology.NodeID, m Mover) *Source { return &Source{name, node, m} }

// Name is the mover's.
func (s *Source) Name() string { return s.name }

// Close has nothing to release.
func (s *Source) Close() error { return nil }

// Read fills in the node's route. A node without one (nothing mounted, no route) reports that.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	a, err := s.m.Route(ctx)
	if errors.Is(err, ErrNoRoute) {
		into.RoutesComplete = true
		return fmt.Errorf("%w: %w", collector.ErrNoData, err)
	}
	if err != nil {
		return err
	}
	into.RoutesComplete = true
	for _, f := range a.Spread {
		into.Routes = append(into.Routes, collector.Route{Client: s.node, Forwarder: f,
			Share: 1 / float64(len(a.Spread)), Assumed: true})
	}
	if len(a.Spread) > 0 {
		return nil
	}
	into.Routes = append(into.Routes, collector.Route{Client: s.node, Forwarder: a.Forwarder, Generation: a.Generation})
	return nil
}

// ErrNoRoute says that the node uses no forwarder now.
var ErrNoRoute = errors.New("no forwarder is in use")

// Command runs one program and returns its standard output; tests put another in its place. Each
// word is one argument: no shell reads it.
type Command func(ctx context.Context, argv ...string) ([]byte, error)

// Do runs argv: by Exec where c is nil.
func (c Command) Do(ctx context.Context, argv ...string) ([]byte, error) {
	if c == nil {
		return Exec(ctx, argv...)
	}
	return c(ctx, argv...)
}

// maxOutput bounds a program's output: one that is cut off is never taken for the whole.
const maxOutput = 1 << 20

// Exec runs a program on this node. Its error names the program and ends with the program's message.
func Exec(ctx context.Context, argv ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.WaitDelay = time.Second
	out, errs := collector.Output{Most: maxOutput}, collector.Output{Most: maxOutput}
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.Bytes(), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, errs.String())
	}
	if out.Cut {
		return out.Bytes(), fmt.Errorf("%s: it printed more than %d bytes", strings.Join(argv, " "), maxOutput)
	}
	return out.Bytes(), nil
}

// ReadNote reads what a mover noted of its changes; without a note into stays as it is. says is what one that cannot be
// read would have, and where to look.
func ReadNote(path string, into any, says string) error {
	if err := appendlog.ReadNote(path, into); err != nil {
		return fmt.Errorf("%w; it says %s, then remove it", err, says)
	}
	return nil
}

// WriteNote notes a change, before it is made.
func WriteNote(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return appendlog.WriteNote(path, v, 0o600)
}

// ByAddress finds the forwarder that has an address in a table of forwarders.
func ByAddress(table map[topology.ForwarderID]string, addr string) (topology.ForwarderID, bool) {
	for f, a := range table {
		if a == addr {
			return f, true
		}
	}
	return "", false
}
