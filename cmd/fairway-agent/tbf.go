package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node/tbf"
	"fairway/remap/queue"
)

// TBF is for a Lustre object server.
type TBF struct {
	RPCsPerSecond float64 `toml:"rpcs_per_second" help:"What this object server does in all; 0: it keeps no shares."`
	Partitions    int     `toml:"partitions" help:"Its CPU partitions (lctl get_param cpu_partition_table)."`
}

// mostRPCs is more than any server does.
const mostRPCs = 1e9

func (c *Config) validateTBF() error {
	t := &c.TBF
	switch {
	case t.RPCsPerSecond == 0:
		return nil
	case !(t.RPCsPerSecond > 0 && t.RPCsPerSecond <= mostRPCs):
		return fmt.Errorf("tbf.rpcs_per_second = %g: want above 0 to %g, or 0", t.RPCsPerSecond, mostRPCs)
	case t.Partitions < 1 || t.Partitions > 1024:
		return fmt.Errorf("tbf.partitions = %d: want 1 to 1024", t.Partitions)
	case c.Role != topology.Storage.String():
		return fmt.Errorf("tbf.rpcs_per_second is set with role = %q: shares are kept on object servers, role = %q",
			c.Role, topology.Storage)
	case c.Source.Queue.Enabled:
		return errors.New("tbf.rpcs_per_second and source.queue.enabled: a node keeps shares in one way")
	}
	return nil
}

// startTBF begins to hold jobs to their shares; nil where this node is not to. Stop returns when its rules are gone.
func startTBF(ctx context.Context, c *Config, log *slog.Logger) (keep stream.OrderHandler, stop func()) {
	if c.TBF.RPCsPerSecond == 0 {
		return nil, func() {}
	}
	k := tbf.NewKeeper(tbf.Runner{Server: tbf.Server{RPCsPerSec: c.TBF.RPCsPerSecond, Partitions: c.TBF.Partitions},
		Journal: filepath.Join(c.Spool.Dir, "tbf-switched-on")}, log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	return keepShares(k), func() { cancel(); <-done }
}

// keepShares carries out the order with the table of the jobs.
func keepShares(k *tbf.Keeper) stream.OrderHandler {
	return func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
		t, err := queue.ReadTable(bytes.NewReader(o.Body))
		if err != nil {
			return nil, fmt.Errorf("order %s: table: %w", o.ID, err)
		}
		shares, err := t.Shares()
		if err != nil {
			return nil, fmt.Errorf("order %s: table: %w", o.ID, err)
		}
		return nil, k.Keep(ctx, shares, time.Duration(t.LeaseSeconds*float64(time.Second)))
	}
}
