// Package remount moves compute nodes by mounting their file system from another server: for kernel clients of 9P, NFS
// or DVS, which cannot change their server while they are mounted.
//
// The new mount is made beside the old one, with the options that the old one has, and read; only then it is put
// beneath the old one, so that it is there in the moment in which that one goes. Programs that use the mount keep it
// busy, so a move succeeds before a job starts and after it has ended; a forced one detaches the old mount at once,
// programs with open files keep using the old server, and the answer says which.
package remount

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Mover mounts one file system of this node.
type Mover struct {
	Point string // where it is mounted
	// Type and Options are for a node that has nothing mounted there; else the mount that is replaced says them.
	Type, Options string
	Path          string // of DVS, on its servers
	// Sources are each forwarder's SERVER:PATH, or its SERVER alone: then the path is that of the mount that is
	// replaced. Of DVS its servers' names.
	Sources map[topology.ForwarderID]string
	Run     node.Command // nil: node.Exec
	Root    fs.FS        // holds proc
	Foreign bool         // Root is not this node's own
	Kernel  Kernel       // nil: this node's
	// Beside is a folder where the new mount is made, Journal a file that remembers what was replaced.
	Beside, Journal string
}

var _ interface {
	node.Mover
	node.Trier
} = (*Mover)(nil)

// Way is how it moves the node.
func (*Mover) Way() string { return wire.WayRemount }

// Route says from which forwarder the file system is mounted, and what a forced move has left behind.
func (m *Mover) Route(ctx context.Context) (wire.RouteAnswer, error) {
	if m.byCommands() {
		servers, err := m.servers()
		if err != nil {
			return wire.RouteAnswer{}, err
		}
		if f, ok := node.ByAddress(m.Sources, servers); ok {
			return wire.RouteAnswer{Forwarder: f}, nil
		}
		return wire.RouteAnswer{}, m.strange(servers)
	}
	at, err := topmost(m.Root, m.Point)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	f, ok := m.forwarder(ctx, &at)
	if !ok {
		return wire.RouteAnswer{}, m.strange(at.Source)
	}
	return wire.RouteAnswer{Forwarder: f}, nil
}

// strange is the error for a source of no known forwarder.
func (m *Mover) strange(source string) error {
	if source == "" {
		return fmt.Errorf("%w: nothing is mounted at %s", node.ErrNoRoute, m.Point)
	}
	return fmt.Errorf("%s is mounted from %s, which belongs to no known forwarder (set it in [orders.forwarders])",
		m.Point, source)
}

// forwarder finds the one that a mount is from: by its source, by the server's address that the kernel shows, or by
// what the settings' names resolve to.
func (m *Mover) forwarder(ctx context.Context, at *mounted) (topology.ForwarderID, bool) {
	if at.Source == "" {
		return "", false
	}
	if f, ok := node.ByAddress(m.Sources, at.Source); ok {
		return f, true
	}
	server, path := split(at.Source)
	names := []string{server, at.addr()}
	for f, source := range m.Sources {
		host, own := split(source)
		if own != "" && own != path {
			continue
		}
		if slices.Contains(names, host) {
			return f, true
		}
		if net.ParseIP(host) != nil || at.addr() == "" {
			continue
		}
		addrs, _ := net.DefaultResolver.LookupHost(ctx, host)
		if slices.Contains(addrs, at.addr()) {
			return f, true
		}
	}
	return "", false
}

// want is what a move to f has to mount where was is.
func (m *Mover) want(f topology.ForwarderID, was *mounted) (mounted, error) {
	source, ok := m.Sources[f]
	if !ok {
		return mounted{}, unknown(f)
	}
	server, path := split(source)
	if was.Source == "" {
		return mounted{Source: source, Type: m.Type, Options: m.Options}, nil
	}
	if _, own := split(was.Source); path == "" {
		path = own
	}
	return mounted{Source: join(server, path), Type: was.Type, Options: was.Options}, nil
}

// swap is one move as it will be made.
type swap struct{ was, want mounted }

// plan reads what is mounted and says what takes its place. Where a move of ours is taken back, that is what was read
// then, byte for byte.
func (m *Mover) plan(ctx context.Context, f topology.ForwarderID) (s swap, there bool, err error) {
	if s.was, err = topmost(m.Root, m.Point); err != nil {
		return s, false, err
	}
	if s.want, err = m.want(f, &s.was); err != nil {
		return s, false, err
	}
	if at, ok := m.forwarder(ctx, &s.was); ok && at == f {
		return s, true, nil
	}
	last := m.remembered()
	if back, ok := m.forwarder(ctx, &last.Was); ok && back == f && last.Made.Source == s.was.Source &&
		difference(&last.Made, &s.was) == "" {
		s.want = last.Was
	}
	return s, false, nil
}

// Try does all of a move but its last step: it mounts from the forwarder beside the old mount and reads it. What it
// returns says what a move would do to programs.
func (m *Mover) Try(ctx context.Context, o wire.RemapOrder) (string, error) {
	if m.byCommands() {
		return "", nil
	}
	s, there, err := m.plan(ctx, o.Forwarder)
	if err != nil || there {
		return "", err
	}
	b, err := m.beside(ctx, &s)
	if err != nil {
		return "", err
	}
	if err := b.end(); err != nil {
		return "", err
	}
	if s.was.Source == "" {
		return "nothing is mounted at " + m.Point, nil
	}
	open, err := holders(m.Root, &s.was)
	switch {
	case err != nil:
		return err.Error(), nil
	case open == "":
		return "", nil
	case o.Force:
		return open + ": they stay with the old server", nil
	}
	return open + ": while they are open the move is refused", nil
}

// Move mounts from o.Forwarder in place of what is mounted. An error says what is mounted now.
func (m *Mover) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	if m.byCommands() {
		return m.moveByCommands(ctx, o.Forwarder, o.Force)
	}
	s, there, err := m.plan(ctx, o.Forwarder)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	if !there {
		if err := m.replace(ctx, &s, o.Force); err != nil {
			return wire.RouteAnswer{}, fmt.Errorf("%w; %s", err, m.now())
		}
	}
	a, err := m.Route(ctx)
	if last := m.remembered(); err == nil && last.Was.Source != "" {
		a.Left = m.left(&last.Was)
	}
	return a, err
}

// now says what is mounted, for errors.
func (m *Mover) now() string {
	at, err := topmost(m.Root, m.Point)
	switch {
	case err != nil:
		return fmt.Sprintf("what is mounted at %s now is not known: %v", m.Point, err)
	case at.Source == "":
		return fmt.Sprintf("nothing is mounted at %s now: mount it by hand or remap the node again", m.Point)
	}
	return fmt.Sprintf("%s is mounted at %s", at.Source, m.Point)
}

// remembered is the last move of this mover's.
type remembered struct {
	Was  mounted `json:"was"`
	Made mounted `json:"made"`
}

func (m *Mover) remembered() (r remembered) {
	_ = node.ReadNote(m.Journal, &r, "") // one that cannot be read remembers nothing
	return r
}

func (m *Mover) remember(r remembered) error {
	if err := node.WriteNote(m.Journal, r); err != nil {
		return fmt.Errorf("remember what was mounted: %w", err)
	}
	return nil
}

// words are those of mount -o for what is wanted.
func (m *mounted) words() string {
	words := m.kept()
	if strings.HasPrefix(m.Type, "nfs") {
		words = append(words, "retry=0") // mount.nfs's own: the first refusal counts
	}
	return strings.Join(words, ",")
}
