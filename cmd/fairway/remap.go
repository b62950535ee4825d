package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newRemap(o *options) *cobra.Command {
	m := api.ManualRemap{}
	c := &cobra.Command{
		Use:     "remap NODE[,NODE...] --to FORWARDER --reason TEXT",
		Short:   "Propose another forwarder for compute nodes; nothing moves before the plan is approved",
		Example: "  fairway remap c1,c2 --to fwd7 --reason 'fwd3 is slow for job 88231'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, a := range args {
				for n := range strings.SplitSeq(a, ",") {
					if n != "" {
						m.Nodes = append(m.Nodes, topology.NodeID(n))
					}
				}
			}
			return o.plan(c, func(ctx context.Context, cl *client.Client) (api.PlanView,
				error) {
				return cl.Propose(ctx, m)
			})
		},
	}
	c.Flags().StringVar((*string)(&m.To), "to", "", "the forwarder to use")
	c.Flags().StringVar(&m.Reason, "reason", "", "why; kept in the audit, 10 letters or more")
	c.Flags().BoolVar(&m.Force, "force", false, "cut off a dead or hung forwarder instead of draining it")
	must(c.MarkFlagRequired("to"))
	must(c.MarkFlagRequired("reason"))
	return c
}
