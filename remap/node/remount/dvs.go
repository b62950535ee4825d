package remount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/collector/rootfs"
	"fairway/collector/source/dvs"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// DVS is the type of Cray's Data Virtualization Service. Its servers are an option of the mount.
const DVS = "dvs"

// byCommands says that mount and umount alone move the node: what two mounts of one file system beside each other do on
// DVS, nobody has seen, and the mounts of another root's proc are not this kernel's.
func (m *Mover) byCommands() bool { return m.Type == DVS || m.Foreign }

// servers returns what is mounted: of DVS the servers that it uses, which are several where it balances load.
func (m *Mover) servers() (string, error) {
	if m.Type != DVS {
		return m.source()
	}
	mounts, err := dvs.Mounts(m.Root)
	servers := ""
	for _, one := range mounts {
		if one.Point == m.Point {
			servers = strings.Join(one.Servers, " ")
		}
	}
	return servers, err
}

// source is the source of the mount in a root's proc.
func (m *Mover) source() (source string, err error) {
	text, err := rootfs.ReadOfSelf(m.Root, "proc", "mounts")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && unescape.Replace(f[1]) == m.Point {
			source = unescape.Replace(f[0])
		}
	}
	return source, err
}

// moveByCommands unmounts and mounts anew.
func (m *Mover) moveByCommands(ctx context.Context, f topology.ForwarderID, force bool) (wire.RouteAnswer, error) {
	want, ok := m.Sources[f]
	if !ok {
		return wire.RouteAnswer{}, unknown(f)
	}
	was, err := m.servers()
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	if was == want {
		return m.Route(ctx)
	}
	if was != "" {
		argv := []string{"umount", m.Point}
		if force {
			argv = slices.Insert(argv, 1, "-l")
		}
		if _, err := m.Run.Do(ctx, argv...); err != nil {
			return wire.RouteAnswer{}, err
		}
	}
	if err := m.mountByCommand(ctx, want); err != nil {
		if was != "" {
			err = errors.Join(err, m.mountAgain(ctx, was))
		}
		return wire.RouteAnswer{}, err
	}
	return m.Route(ctx)
}

// backWithin bounds mounting the old source again: a server that is gone must not hold this node's orders for ever.
const backWithin = time.Minute

// mountAgain mounts the old source again, which must not be lost because ctx is over.
func (m *Mover) mountAgain(ctx context.Context, was string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backWithin)
	defer cancel()
	err := m.mountByCommand(ctx, was)
	if err != nil {
		return fmt.Errorf("nothing is mounted at %s now: %s did not come back; mount it by hand or remap the node "+
			"again: %w", m.Point, was, err)
	}
	return nil
}

func (m *Mover) mountByCommand(ctx context.Context, server string) error {
	options, from := m.Options, server
	if m.Type == DVS {
		options, from = strings.TrimPrefix(options+",path="+m.Path+",nodename="+server, ","), m.Path
	}
	argv := []string{"mount", "-t", m.Type}
	if options != "" {
		argv = append(argv, "-o", options)
	}
	_, err := m.Run.Do(ctx, append(argv, from, m.Point)...)
	return err
}

func unknown(f topology.ForwarderID) error {
	return fmt.Errorf("no source for %s: set it in [orders.forwarders]", f)
}
