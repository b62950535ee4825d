package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/hostname"
	"fairway/collector/topology"
	"fairway/remap/queue"
)

func newServe() *cobra.Command {
	var control, table string
	var window, readCache int
	var gather time.Duration
	c := &cobra.Command{
		Use:   "serve LISTEN FORWARDER",
		Short: "Queue clients of LISTEN (HOST:PORT) to FORWARDER (HOST:PORT) until a signal",
		Long: "Clients connect to LISTEN as they would to the forwarder. Without a table requests are served in the\n" +
			"order of their arrival; 'fairway-queue share' gives it one later.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, a []string) error {
			if window < 1 {
				return program.BadUsage(fmt.Errorf("--window %d: at least one request must go through", window))
			}
			if gather < 0 || gather > maxGather {
				return program.BadUsage(fmt.Errorf("--gather %v: want 0 to %v", gather, maxGather))
			}
			for _, addr := range a {
				if _, _, err := net.SplitHostPort(addr); err != nil {
					return program.BadUsage(err)
				}
			}
			if readCache < 0 || readCache > maxReadCache {
				return program.BadUsage(fmt.Errorf("--read-cache %d: want 0 to %d MiB", readCache, maxReadCache))
			}
			var t queue.Table
			if table != "" {
				var err error
				if t, err = readTable(table); err != nil {
					return err
				}
			}
			return serve(cmd.Context(), a[0], a[1], control, t,
				queue.Config{Window: window, Gather: gather, Cache: readCache << 20})
		},
	}
	f := c.Flags()
	f.StringVar(&control, "control", "", "path of the control socket; without one the policy cannot be changed")
	f.StringVar(&table, "table", "", "file with policy and jobs to begin with")
	f.IntVar(&window, "window", queue.DefaultWindow,
		"requests at the forwarder at once: twice its worker threads, or fewer where jobs have few requests on their "+
			"way")
	f.DurationVar(&gather, "gather", 0,
		"how long a small write may wait for its neighbours in the file (such as 2ms), so that they go as one; 0: "+
			"none waits")
	f.IntVar(&readCache, "read-cache", 0,
		"MiB of what was read that are kept for a second for all clients, with what comes next of files that are "+
			"read on;\nwho keeps a file open may miss for so long what is written to it another way; 0: none")
	return c
}

// maxGather bounds how long a write may wait: longer than a disk takes nothing is gained. maxReadCache is in MiB: no
// forwarder moves more in the second for which it is kept.
const (
	maxGather    = 100 * time.Millisecond
	maxReadCache = 64 << 10
)

func readTable(name string) (queue.Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return queue.Table{}, program.BadUsage(err)
	}
	defer f.Close()
	t, err := queue.ReadTable(f)
	if err != nil {
		return queue.Table{}, program.BadUsage(fmt.Errorf("%s: %w", name, err))
	}
	return t, nil
}

func serve(ctx context.Context, listen, forwarder, control string, t queue.Table, cfg queue.Config) error {
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg.Seed, cfg.Name = uint64(time.Now().UnixNano()), nodeName
	cfg.Dial = func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", forwarder)
	}
	r := queue.New(cfg)
	if err := r.Share(t); err != nil {
		return program.BadUsage(err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	if control != "" {
		socket, err := openControl(control, r)
		if err != nil {
			l.Close()
			return err
		}
		defer socket.Close()
	}
	cfg.Log.Info("queueing", "listen", l.Addr().String(), "forwarder", forwarder, "window", cfg.Window, "gather",
		cfg.Gather, "read_cache", cfg.Cache)
	return r.Serve(ctx, l)
}

// nameWithin bounds how long a new connection waits for its name.
const nameWithin = 2 * time.Second

// nodeName is the first label of the name that an address has, as node names are elsewhere.
func nodeName(ctx context.Context, a netip.Addr) topology.NodeID {
	ctx, cancel := context.WithTimeout(ctx, nameWithin)
	defer cancel()
	name, _ := hostname.Lookup(ctx, a)
	return topology.NodeID(name)
}
