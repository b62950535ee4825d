// Package remount moves compute nodes by mounting their file system from another server: for
// kernel clients of 9P, NFS or DVS, which cannot change their server while they are mounted.
//
//	umount /pfs
//	mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs
//	mount -t dvs -o path=/lustre,nodename=c0-0c0s0n2 /lustre /pfs
//
// Programs that use the mount keep it busy, so a move succeeds before a job starts and after it has
// ended; a forced one detaches the old mount at once (umount -l), and programs with open files keep
// using the old server.
package remount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"fairway/collector/source/dvs"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Mover mounts one file system of this node.
type Mover struct {
	Point   string // where it is mounted
	Type    string // nfs, nfs4, 9p, dvs, ...
	Options string // of mount -o; empty: none
	Path    string // of DVS, on its servers
	// Sources are what is mounted from each forwarder, such as 10.0.0.1:/export; of DVS its servers' names.
	Sources map[topology.ForwarderID]string
	Run     node.Command // nil: mover.Exec
	Root    fs.FS        // holds proc
}

// DVS is the type of Cray's Data Virtualization Service. Its servers are an option of the mount.
const DVS = "dvs"

var _ node.Mover = (*Mover)(nil)

func (m *Mover) run(ctx context.Context, argv ...string) error {
	run := m.Run
	if run == nil {
		run = node.Exec
	}
	_, err := run(ctx, argv...)
	return err
}

// mounted returns what is mounted at the point, the topmost if there are several; "" for nothing.
func (m *Mover) mounted() (string, error) {
	if m.Type == DVS {
		return m.mountedDVS()
	}
	text, err := fs.ReadFile(m.Root, "proc/self/mounts")
	if errors.Is(err, fs.ErrNotExist) { // proc is another PID namespace's
		text, err = fs.ReadFile(m.Root, "proc/1/mounts")
	}
	if err != nil {
		return "", err
	}
	source := ""
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && unescape.Replace(f[1]) == m.Point {
			source = unescape.Replace(f[0])
		}
	}
	return source, nil
}

// mountedDVS returns the servers that DVS uses for the mount, which are several where it balances load.
func (m *Mover) mountedDVS() (string, error) {
	mounts, err := dvs.Mounts(m.Root)
	servers := ""
	for _, one := range mounts {
		if one.Point == m.Point {
			servers = strings.Join(one.Servers, " ")
		}
	}
	return servers, err
}

// unescape reads the kernel's way of writing blanks in names.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Way is how it moves the node.
func (*Mover) Way() string { return wire.WayRemount }

// Route says from which forwarder the file system is mounted.
func (m *Mover) Route(context.Context) (wire.RouteAnswer, error) {
	source, err := m.mounted()
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	if source == "" {
		return wire.RouteAnswer{}, fmt.Errorf("%w: nothing is mounted at %s", node.ErrNoRoute, m.Point)
	}
	f, ok := node.ByAddress(m.Sources, source)
	if !ok {
		return wire.RouteAnswer{},
			fmt.Errorf("%s is mounted from %s, which belongs to no known forwarder (set it in [orders.forwarders])",
				m.Point,
				source)
	}
	return wire.RouteAnswer{Forwarder: f}, nil
}

// Move mounts from o.Forwarder. If that fails the old source is mounted again, and the error says
// whether that worked.
func (m *Mover) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	want, ok := m.Sources[o.Forwarder]
	if !ok {
		return wire.RouteAnswer{},
			fmt.Errorf("no source for %s: set it in [orders.forwarders]", o.Forwarder)
	}
	was, err := m.mounted()
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	if was == want {
		return m.Route(ctx)
	}
	if was != "" {
		argv := []string{"umount", m.Point}
		if o.Force {
			argv = []string{"umount", "-l", m.Point}
		}
		if err := m.run(ctx, argv...); err != nil {
			return wire.RouteAnswer{}, err
		}
	}
	if err := m.mount(ctx, want); err != nil {
		if was != "" {
			err = errors.Join(err, m.back(ctx, was))
		}
		return wire.RouteAnswer{}, err
	}
	return m.Route(ctx)
}

// backWithin bounds mounting the old source again: a server that is gone must not hold this node's orders for ever.
const backWithin = time.Minute

// back mounts the old source again, which must not be lost because ctx is over.
func (m *Mover) back(ctx context.Context, was string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backWithin)
	defer cancel()
	err := m.mount(ctx, was)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("nothing is mounted at %s now: %s did not come back within %s; mount it by hand or remap "+
			"the node again: %w", m.Point, was, backWithin, err)
	}
	return err
}

func (m *Mover) mount(ctx context.Context, source string) error {
	options, from := m.Options, source
	if m.Type == DVS {
		options, from = strings.TrimPrefix(options+",path="+m.Path+",nodename="+source, ","), m.Path
	}
	argv := []string{"mount", "-t", m.Type}
	if options != "" {
		argv = append(argv, "-o", options)
	}
	return m.run(ctx, append(argv, from, m.Point)...)
}
