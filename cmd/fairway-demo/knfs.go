package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"fairway/cmd/lab/knfs"
	"fairway/cmd/program"
	"fairway/collector/pace"
)

// layerKNFS is the layer of real kernel-NFS gateways, on guests with kernels of their own.
const layerKNFS = "knfs"

// The demo's site of kernel NFS.
const (
	knfsClients, knfsGateways = 4, 3
	knfsGap                   = 100 * time.Millisecond
	knfsFault                 = "cpu@gw1"
)

// runKNFS is the demo's life on the layer of kernel NFS.
func (d *demo) runKNFS(ctx context.Context, out io.Writer) (err error) {
	if missing := knfs.Missing(); len(missing) > 0 {
		return fmt.Errorf("the layer %s needs %s", layerKNFS, strings.Join(missing, " "))
	}
	if _, err := knfs.Sweep(); err != nil {
		return err
	}
	s, err := knfs.Start(ctx, knfs.Config{Guest: []string{d.self, "inside"}, Programs: d.programs, Clients: knfsClients,
		Gateways: knfsGateways})
	if err != nil {
		return interrupted(ctx, err)
	}
	d.atEnd(s.Close)
	fmt.Fprintf(out, "%d kernel-NFS gateways before one back end, and %d clients run, after %.1f s\n", knfsGateways,
		knfsClients, s.Started.Seconds())
	f, err := s.StartFairway(ctx)
	if err = errors.Join(err, s.StartLoad(ctx, knfsGap)); err != nil {
		return interrupted(ctx, err)
	}
	d.socket = f.Socket()
	fmt.Fprintf(out, "commands: %s --addr unix:%s nodes\n", d.program("fairway"), d.socket)
	kind, node, _ := strings.Cut(d.fault, "@")
	if d.fault == "" {
		kind, node, _ = strings.Cut(knfsFault, "@")
	}
	if d.slowAfter > 0 {
		d.tasks.Go(func() {
			if pace.Wait(ctx, d.slowAfter) {
				if err := s.Break(ctx, kind, node); err != nil {
					fmt.Fprintln(out, err)
				}
			}
		})
	}
	if d.noConsole || !program.IsTerminal(os.Stdin) || !program.IsTerminal(os.Stdout) {
		<-ctx.Done()
		return nil
	}
	return interrupted(ctx, d.runConsole(ctx))
}
