package main

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// drainGrace is how long a stopping agent waits for the daemon to take what is spooled.
const drainGrace = 3 * time.Second

// run is the agent's life: sources are read into the spool, the stream empties it. When ctx ends the
// sources stop first, so that their last second is still sent.
func run(ctx context.Context, c Config, log *slog.Logger) error {
	if none := c.Orders.allowsNone(); none != "" {
		log.Warn(none)
	}
	moves, stopMover, err := startMover(c, log)
	if err != nil {
		return err
	}
	if stopMover != nil {
		defer stopMover.Close()
	}
	clients, spool, err := newClients(ctx, c, log)
	if err != nil {
		return err
	}
	defer spool.Close()
	keepsShares, stopTBF := startTBF(ctx, &c, log)
	defer stopTBF()
	for _, one := range clients {
		one.Orders = handlers(c, moves)
		if keepsShares != nil {
			one.Orders[wire.OrderShare] = keepsShares
		}
	}
	streamCtx, stopStream := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStream()
	streamed := make(chan error, 1)
	go func() { streamed <- clients.run(streamCtx) }()

	runner := newRunner(c, log)
	// The mount's own source says its route, and so does [routes], which may measure it.
	if c.Orders.Enabled && c.Orders.By != byMount9p && c.Routes.By == "" && moves != nil {
		runner.Sources = append(runner.Sources, node.NewSource(c.Orders.By, topology.NodeID(c.Node), moves))
	}
	runner.Emit = spooler(clients, spool, log)
	log.Info("agent started", "version", version, "node", c.Node, "role", c.Role, "daemon",
		strings.Join(c.Daemon.addresses(), " "), "sources",
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
	if derr := clients.drain(drainCtx); derr != nil {
		log.Info("stopped with seconds in the spool", "err", derr)
	}
	stopStream()
	return errors.Join(err, <-streamed, spool.Close())
}

func newRunner(c Config, log *slog.Logger) *collector.Runner {
	role, _ := topology.ParseRole(c.Role) // validated
	return &collector.Runner{Node: topology.NodeID(c.Node), Role: role, Sources: newSources(c), Phase: phaseOf(c.Node),
		Log: log}
}

// phaseOf is when in the second a node reads its sources: early, so that what it says is fresh, and not all at once.
func phaseOf(node string) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(node))
	return time.Duration(h.Sum32()%16) * 5 * time.Millisecond
}

// spooler keeps frames for the daemon, each with a word on the stream itself.
func spooler(clients streams, spool *stream.Spool, log *slog.Logger) func(*collector.Frame) {
	shown := ""
	one := make([]collector.Frame, 1)
	return func(f *collector.Frame) {
		state := clients.state()
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

// streams are the ways to the daemons, one each.
type streams []*stream.Client

// newClients opens the spool and makes a client of each daemon.
func newClients(ctx context.Context, c Config, log *slog.Logger) (streams, *stream.Spool, error) {
	role, _ := topology.ParseRole(c.Role) // validated
	tls, err := c.Daemon.tlsConfig()
	if err != nil {
		return nil, nil, err
	}
	token, err := c.token(ctx, tls)
	if err != nil {
		return nil, nil, err
	}
	spool, err := stream.OpenSpool(c.Spool.Dir, stream.DefaultSpoolBytes, log)
	if err != nil {
		return nil, nil, err
	}
	queues := []stream.Queue{spool}
	if urls := c.Daemon.addresses(); len(urls) > 1 {
		positions, err := stream.Positions(spool, urls)
		if err != nil {
			return nil, nil, errors.Join(err, spool.Close())
		}
		queues = queues[:0]
		for _, p := range positions {
			queues = append(queues, p)
		}
	}
	fence, err := stream.OpenFence(filepath.Join(c.Spool.Dir, "term"), log)
	if err != nil {
		return nil, nil, errors.Join(err, spool.Close())
	}
	var all streams
	for i, at := range c.Daemon.addresses() {
		all = append(all, &stream.Client{URL: at, Node: topology.NodeID(c.Node), Role: role, Log: log, TLS: tls,
			Token: token, Spool: queues[i], Fence: fence})
	}
	return all, spool, nil
}

// run keeps every stream up until ctx ends, or one of them cannot run at all.
func (s streams) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(s))
	for _, one := range s {
		go func() { ended <- one.Run(ctx) }()
	}
	var errs []error
	for range s {
		errs = append(errs, <-ended)
		stop()
	}
	return errors.Join(errs...)
}

// state is how the streams are doing together: connected where all are.
func (s streams) state() (out stream.State) {
	out.Connected = true
	for _, one := range s {
		st := one.State()
		out.Connected = out.Connected && st.Connected
		out.Refused += st.Refused
		out.Err = cmp.Or(out.Err, st.Err)
	}
	return out
}

// drain waits until every daemon has taken what is spooled, or ctx is done.
func (s streams) drain(ctx context.Context) error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Drain(ctx))
	}
	return errors.Join(errs...)
}
