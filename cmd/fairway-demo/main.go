// Command fairway-demo shows fairway at work on this machine: it starts a real forwarding layer, or a simulated one,
// then the programs that a site would run, and opens the console. It leaves nothing behind.
package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/program"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() {
	program.Main(func(ctx context.Context, args []string) int {
		return program.Code(program.Run(ctx, newRoot(), args))
	})
}

func newRoot() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:     "fairway-demo",
		Short:   "Start a forwarding layer on this machine, watch it, and open the console; leaves nothing behind",
		Version: version,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// A closed terminal must end the demo as an interrupt does.
			if o.simulated && !c.Flags().Changed("slow-after") {
				o.slowAfter = simSlowAfter
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			return run(ctx, o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.IntVar(&o.forwarders, "forwarders", 8, "forwarding nodes")
	f.IntVar(&o.computeNodes, "nodes", 16, "compute nodes")
	f.BoolVar(&o.simulated, "sim", false, "a simulated machine of TaihuLight's size instead of a real forwarding layer")
	f.StringVar(&o.layer, "layer", string(testbed.Diod),
		"diod: forwarders with the file system; nfs: nfs-ganesha gateways in front of back ends; knfs: kernel-NFS "+
			"gateways on guests of their own (both need root)")
	f.BoolVar(&o.loopback, "loopback", false, "as without root: forwarders on ports of 127.0.0.1, no compute nodes")
	f.BoolVar(&o.noConsole, "no-console", false, "do not open the terminal console; run until interrupted")
	f.StringVar(&o.http, "http", "127.0.0.1:7117",
		"where browsers reach the demo; another port is taken if this one is in use")
	f.DurationVar(&o.slowAfter, "slow-after", time.Minute,
		"when one forwarder becomes slow, a minute or more after the start for it to be found; 0: never; with --sim, "+
			"which has a past, 10s is the default")
	f.DurationVar(&o.slowFor, "slow-for", 15*time.Minute,
		"how long it stays slow on diod and nfs, so that its healing is seen, too; 0: to the end")
	f.StringVar(&o.fault, "fault", "", fmt.Sprintf("how which node becomes slow, such as slow-data@be000 or "+
		"slow-link@fwd001; kinds: %v (default: one of the layer's own)", testbed.FaultKinds()))
	f.StringVar(&o.programs, "programs", "", "folder of fairway's other programs (default: that of this one)")
	c.AddCommand(newRank(), newSite(), newSwarm(), newResults(), newInside())
	return program.Strict(c)
}
