package remount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/collector/source/dvs"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// DVS is the type of Cray's Data Virtualization Service. Its servers are an option of the mount.
const DVS = "dvs"

// servers returns those that DVS uses for the mount, which are several where it balances load.
func (m *Mover) servers() (string, error) {
	mounts, err := dvs.Mounts(m.Root)
	servers := ""
	for _, one := range mounts {
		if one.Point == m.Point {
			servers = strings.Join(one.Servers, " ")
		}
	}
	return servers, err
}

// moveDVS unmounts and mounts anew: what two mounts of one file system beside each other do there, nobody has seen.
func (m *Mover) moveDVS(ctx context.Context, f topology.ForwarderID, force bool) (wire.RouteAnswer, error) {
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
		if _, err := m.run(ctx, argv...); err != nil {
			return wire.RouteAnswer{}, err
		}
	}
	if err := m.mountDVS(ctx, want); err != nil {
		if was != "" {
			err = errors.Join(err, m.backDVS(ctx, was))
		}
		return wire.RouteAnswer{}, err
	}
	return m.Route(ctx)
}

// backWithin bounds mounting the old source again: a server that is gone must not hold this node's orders for ever.
const backWithin = time.Minute

// backDVS mounts the old source again, which must not be lost because ctx is over.
func (m *Mover) backDVS(ctx context.Context, was string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backWithin)
	defer cancel()
	err := m.mountDVS(ctx, was)
	if err != nil {
		return fmt.Errorf("nothing is mounted at %s now: %s did not come back; mount it by hand or remap the node "+
			"again: %w", m.Point, was, err)
	}
	return nil
}

func (m *Mover) mountDVS(ctx context.Context, server string) error {
	options := strings.TrimPrefix(m.Options+",path="+m.Path+",nodename="+server, ",")
	_, err := m.run(ctx, "mount", "-t", m.Type, "-o", options, m.Path, m.Point)
	return err
}

func unknown(f topology.ForwarderID) error {
	return fmt.Errorf("no source for %s: set it in [orders.forwarders]", f)
}

func (m *Mover) run(ctx context.Context, argv ...string) ([]byte, error) {
	if m.Run == nil {
		return node.Exec(ctx, argv...)
	}
	return m.Run(ctx, argv...)
}
