// Command fairway-mount mounts a forwarder's file tree on a compute node, and moves it to another forwarder while files
// are open.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	report "fairway/collector/source/mount"
	"fairway/collector/topology"
	"fairway/remap/mount"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { program.Main(execute) }

// execute is main without the process, so that tests can call it.
func execute(ctx context.Context, args []string) int {
	return program.Code(program.Run(ctx, newRoot(), args))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "fairway-mount",
		Short:   "Mount a file tree through one forwarding node, and move it to another with files open",
		Version: version,
		Args:    cobra.NoArgs,
	}
	root.AddCommand(newMount(), newMove("remap", "Drain the requests in flight, then change the forwarder"),
		newMove("force", "Cut a dead or hung forwarder off and repeat its requests at another"), newStatus())
	return program.Strict(root)
}

func newMount() *cobra.Command {
	var opt mount.Options
	var name string
	var allow []string
	c := &cobra.Command{
		Use:   "mount HOST:PORT TREE MOUNTPOINT",
		Short: "Mount TREE of the forwarder at HOST:PORT and stay in the foreground until a signal or umount",
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, a []string) error {
			if _, _, err := net.SplitHostPort(a[0]); err != nil {
				return program.BadUsage(err)
			}
			opt.Target = mount.Target{Forwarder: topology.ForwarderID(name), Addr: a[0]}
			if name == "" {
				host, _, _ := net.SplitHostPort(a[0])
				opt.Target.Forwarder = topology.ForwarderID(host)
			}
			if len(allow) > 0 {
				allowed, err := topology.ParseAllowed(allow)
				if err != nil {
					return program.BadUsage(fmt.Errorf("--allow: %w", err))
				}
				opt.Allowed = &allowed
			}
			opt.Tree, opt.MountPoint = a[1], a[2]
			return serve(cmd.Context(), opt)
		},
	}
	f := c.Flags()
	f.StringVar(&name, "forwarder", "", "the forwarder's node name (default: HOST)")
	f.StringVar(&opt.Control, "control", "", "path of the control socket; without one the mount cannot be moved")
	f.StringSliceVar(&allow, "allow", nil,
		"networks (10.1.0.0/16) and host names of the forwarders that the mount may be moved to (default: any)")
	f.DurationVar(&opt.CacheFor, "cache", 0,
		"how long names and attributes may be kept; 0 asks the forwarder each time")
	f.BoolVar(&opt.ReadAhead, "read-ahead", false,
		"ask for the next block of a file that is read from front to back before the program does; another node's "+
			"write to an open file may then be seen 100 ms late")
	return c
}

// serve mounts and waits; busy mounts are let go lazily, because whoever stops the mount wants it gone.
func serve(ctx context.Context, opt mount.Options) error {
	m, err := mount.Start(ctx, opt)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { m.Wait(); close(gone) }()
	select {
	case <-ctx.Done():
		return m.Unmount(true)
	case <-gone:
		m.Close()
		return nil
	}
}

// moveTimeout bounds a remap, with its drain.
const moveTimeout = 2 * time.Minute

func newMove(op, short string) *cobra.Command {
	return &cobra.Command{
		Use:   op + " SOCKET HOST:PORT FORWARDER",
		Short: short,
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, a []string) error {
			return ask(cmd, a[0], report.Request{Op: op, Addr: a[1], Forwarder: topology.ForwarderID(a[2])})
		},
	}
}

func newStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status SOCKET",
		Short: "Print the mount's forwarder and counters as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return ask(cmd, a[0], report.Request{Op: "stats"})
		},
	}
}

// ask sends a request to a running mount and prints the answer.
func ask(cmd *cobra.Command, socket string, q report.Request) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), moveTimeout)
	defer cancel()
	r, err := report.Ask(ctx, socket, q)
	if err != nil && r.Error == "" {
		return program.NoAnswer(err)
	}
	if err != nil {
		return err
	}
	e := json.NewEncoder(program.Raw(cmd.OutOrStdout()))
	e.SetIndent("", "  ")
	return e.Encode(r)
}
