package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/swarm"
)

// swarmOptions are the flags of a swarm.
type swarmOptions struct {
	swarm.Options
	tokenFile, http, programs string
}

func newSwarm() *cobra.Command {
	o := swarmOptions{}
	c := &cobra.Command{
		Use:   "swarm",
		Short: "Connect many agents to a daemon and print what they cost it",
		Long: "Connects agents with sockets, frames and code of their own to a daemon, and prints the CPU and memory " +
			"of " +
			"the daemon by the kernel's count, seconds that were late or lost, and the memory of a connection. " +
			"Without " +
			"--daemon it starts one for itself.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runSwarm(c.Context(), o, c.OutOrStdout()) },
	}
	f := c.Flags()
	f.IntVar(&o.Agents, "agents", 1000, "nodes, each with an agent")
	f.StringVar(&o.URL, "daemon", "", "address of a running daemon for agents, such as ws://127.0.0.1:7117")
	f.IntVar(&o.PID, "pid", 0, "process of that daemon")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the agents' token of that daemon")
	f.DurationVar(&o.For, "for", 30*time.Second, "how long is measured")
	f.DurationVar(&o.Spread, "spread", time.Second, "over which part of a second the agents send; 0: all at once")
	f.IntVar(&o.Watchers, "watchers", 0, "screens that follow the live feed meanwhile")
	f.StringVar(&o.Watch, "api", "",
		"address of the running daemon for the screens, such as unix:/run/fairway/fairwayd.sock")
	f.StringVar(&o.http, "http", "127.0.0.1:7118", "where a daemon of its own listens")
	f.StringVar(&o.programs, "programs", "", "folder of fairway's other programs (default: that of this one)")
	return c
}

func runSwarm(ctx context.Context, o swarmOptions, out io.Writer) (err error) {
	if o.URL == "" {
		d, err := swarmDaemon(ctx, o)
		if d != nil {
			defer func() { err = errors.Join(err, d.close()) }()
		}
		if err != nil {
			return err
		}
		o.URL, o.Token, o.PID, o.Watch = "ws://"+d.http, d.token, d.fairwayd.PID(), "unix:"+d.socket
		return swarm.Run(ctx, o.Options, out)
	}
	if o.PID == 0 || o.tokenFile == "" {
		return errors.New("--daemon needs --pid and --token-file")
	}
	token, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return err
	}
	o.Token = string(token)
	return swarm.Run(ctx, o.Options, out)
}

// swarmDaemon starts a daemon on the embedded store in a temporary directory.
func swarmDaemon(ctx context.Context, o swarmOptions) (*demo, error) {
	d, err := newDemo(options{http: o.http, programs: o.programs})
	if err != nil {
		return nil, err
	}
	if err := d.findPrograms(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fairway-swarm")
	if err != nil {
		return nil, err
	}
	d.atEnd(func() error { return os.RemoveAll(dir) })
	if err := d.prepare(dir); err != nil {
		return d, err
	}
	d.conf["name"], d.conf["simulated"] = fmt.Sprintf("a swarm of %d", o.Agents), true
	d.conf.Table("driver")["kind"] = "agents"
	return d, d.startDaemon(ctx)
}
