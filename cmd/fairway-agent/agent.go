package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/remap/node"
)

// drainGrace is how long a stopping agent waits for the daemon to take what is spooled.
const drainGrace = 3 * time.Second

// run is the agent's life: sources are read into the spool, the stream empties it. When ctx ends the
// sources stop first, so that their last second is still sent.
func run(ctx context.Context, c Config, log *slog.Logger) error {
	moves, stopMover, err := startMover(c, log)
	if err != nil {
		return err
	}
	if stopMover != nil {
		defer stopMover.Close()
	}
	client, spool, err := newClient(ctx, c, log)
	if err != nil {
		return err
	}
	defer spool.Close()
	client.Orders = handlers(c, moves)
	streamCtx, stopStream := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStream()
	streamed := make(chan error, 1)
	go func() { streamed <- client.Run(streamCtx) }()

	runner := newRunner(c, log)
	if c.Orders.Enabled && c.Orders.By != byMount9p { // the mount's own source says its route
		runner.Sources = append(runner.Sources, node.NewSource(c.Orders.By, topology.NodeID(c.Node), moves))
	}
	runner.Emit = spooler(client, spool, log)
	log.Info("agent started", "version", version, "node", c.Node, "role", c.Role, "daemon", c.Daemon.URL, "sources",
		len(runner.Sources))
	runCtx, stopRunner := context.WithCancel(ctx)
	defer stopRunner()
	ran := make(chan error, 1)
	go func() { ran <- runner.Run(runCtx) }()

	select {
	case err = <-ran: // ctx ended, or the runner cannot run
	case streamErr := <-streamed: // it ends by itself only when it cannot run at all
		stopRunner()
		return errors.Join(streamErr, <-ran)
	}
	drainCtx, cancel := context.WithTimeout(streamCtx, drainGrace)
	defer cancel()
	if derr := client.Drain(drainCtx); derr != nil {
		log.Info("stopped with seconds in the spool", "err", derr)
	}
	stopStream()
	return errors.Join(err, <-streamed, spool.Close())
}

func newRunner(c Config, log *slog.Logger) *collector.Runner {
	role, _ := topology.ParseRole(c.Role) // validated
	return &collector.Runner{Node: topology.NodeID(c.Node), Role: role, Sources: newSources(c), Phase: c.Phase,
		Log: log}
}

// spooler keeps frames for the daemon, each with a word on the stream itself.
func spooler(client *stream.Client, spool *stream.Spool, log *slog.Logger) func(*collector.Frame) {
	shown := ""
	one := make([]collector.Frame, 1)
	return func(f *collector.Frame) {
		state := client.State()
		f.Sources = append(f.Sources, collector.SourceStatus{
			Name: "stream", Err: state.Err, Failures: spool.Dropped() + state.Refused,
			Duration: time.Since(time.UnixMilli(f.TimeMillis).Add(collector.DefaultInterval)), // the frame's lag
		})
		one[0] = *f
		err := spool.Append(one)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != shown && text != "" {
			log.Error("a second was lost", "err", err)
		}
		shown = text
	}
}

func newClient(ctx context.Context, c Config, log *slog.Logger) (*stream.Client, *stream.Spool, error) {
	role, _ := topology.ParseRole(c.Role) // validated
	client := &stream.Client{
		URL: c.Daemon.URL, Node: topology.NodeID(c.Node), Role: role, Log: log,
	}
	var err error
	if client.TLS, err = c.Daemon.tlsConfig(); err != nil {
		return nil, nil, err
	}
	if client.Token, err = c.token(ctx, client.TLS); err != nil {
		return nil, nil, err
	}
	spool, err := stream.OpenSpool(c.Spool.Dir, c.Spool.MaxBytes, log)
	if err != nil {
		return nil, nil, err
	}
	client.Spool = spool
	return client, spool, nil
}
