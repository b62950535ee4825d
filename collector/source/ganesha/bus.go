package ganesha

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
)

// bus is a D-Bus with a ganesha on it.
type bus interface {
	// Owner returns which connection is ganesha's, another one for each process, and its process number; 0
	// is not known.
	Owner(ctx context.Context) (name string, pid int, err error)
	// Ask makes calls and returns their answers in the same order.
	Ask(ctx context.Context, calls []call) []reply
	Close() error
}

// call is a method of one of ganesha's objects.
type call struct {
	object, method string
	args           []any
}

// String is the call as messages write it.
func (c *call) String() string {
	_, method, _ := strings.Cut(c.method, ".")
	return strings.TrimSpace(fmt.Sprintln(append([]any{method}, c.args...)...))
}

// reply is what a method returned.
type reply struct {
	body []any
	err  error
}

var (
	// errUnknown is the error of a call that nothing on the bus answers.
	errUnknown = errors.New("no such method")
	// errBroken is the error of a connection to the bus that has ended.
	errBroken = errors.New("the connection to D-Bus has ended")
)

const (
	service = "org.ganesha.nfsd"
	// together bounds the calls in flight: a system bus drops a connection that waits for more than 128 answers.
	together = 64
)

// remote is a bus that runs.
type remote struct{ conn *dbus.Conn }

// dialBus connects to the bus at a socket.
func dialBus(ctx context.Context, socket string) (bus, error) {
	conn, err := dbus.Dial("unix:path=" + dbus.EscapeBusAddressValue(socket))
	if err != nil {
		return nil, fmt.Errorf("D-Bus at %s: %w; is dbus-daemon running?", socket, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = conn.Auth(nil)
	if err == nil {
		err = conn.Hello()
	}
	if !stop() || err != nil {
		conn.Close()
		return nil, fmt.Errorf("D-Bus at %s does not take this agent: %w", socket,
			errors.Join(err, context.Cause(ctx)))
	}
	return &remote{conn}, nil
}

func (r *remote) Owner(ctx context.Context) (name string, pid int, err error) {
	d := r.conn.BusObject()
	if err := d.CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, service).Store(&name); err != nil {
		return "", 0, r.explain(err)
	}
	var n uint32
	if d.CallWithContext(ctx, "org.freedesktop.DBus.GetConnectionUnixProcessID", 0, name).Store(&n) == nil {
		pid = int(n)
	}
	return name, pid, nil
}

func (r *remote) Ask(ctx context.Context, calls []call) []reply {
	out := make([]reply, len(calls))
	for from := 0; from < len(calls); from += together {
		sent := make([]*dbus.Call, 0, together)
		for _, c := range calls[from:min(from+together, len(calls))] {
			o := r.conn.Object(service, dbus.ObjectPath("/org/ganesha/nfsd/"+c.object))
			sent = append(sent, o.GoWithContext(ctx, service+"."+c.method, dbus.FlagNoAutoStart, nil, c.args...))
		}
		for i, c := range sent {
			<-c.Done
			out[from+i] = reply{c.Body, r.explain(c.Err)}
		}
	}
	return out
}

// explain says what an error of the bus means.
func (r *remote) explain(err error) error {
	if err == nil {
		return nil
	}
	var e dbus.Error
	if !errors.As(err, &e) {
		if !r.conn.Connected() {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		return err
	}
	switch e.Name {
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
		return errors.New("nfs-ganesha is not on the bus: is ganesha.nfsd running, and built with D-Bus?")
	case "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownObject",
		"org.freedesktop.DBus.Error.UnknownInterface":
		return fmt.Errorf("%w: %w", errUnknown, err)
	case "org.freedesktop.DBus.Error.AccessDenied":
		return fmt.Errorf("the bus refuses this agent: %w; run it as root or allow it in the bus's policy", err)
	}
	return err
}

func (r *remote) Close() error { return r.conn.Close() }
