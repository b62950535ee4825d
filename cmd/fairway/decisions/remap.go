package decisions

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newLimit(o *cli.Options) *cobra.Command {
	m := api.ManualRemap{}
	percent, at := 0.0, []string{}
	c := &cobra.Command{
		Use:   "limit JOB --at NODE[,NODE...] --percent N --reason TEXT",
		Short: "Propose a limit for a job that others wait for; nothing changes before the plan is approved",
		Long: "The job gets at most N % of each forwarder while others ask for some. Their fairway-queues keep the " +
			"limit, or\nobject servers with [tbf] do: name those that queue.policy shares. It ends with the job, " +
			"or by\n'fairway plan rollback'.",
		Example: "  fairway limit 88231 --at fwd3 --percent 5 --reason 'it fills fwd3 and 88230 waits'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m.Job, m.Limit = topology.JobID(args[0]), percent/100
			for _, n := range at {
				m.Nodes = append(m.Nodes, topology.NodeID(n))
			}
			return propose(o, c, m)
		},
	}
	c.Flags().StringSliceVar(&at, "at", nil, "the forwarders or object servers")
	c.Flags().Float64Var(&percent, "percent", 5, "the most that it gets, 1 to below 100")
	c.Flags().StringVar(&m.Reason, "reason", "", "why; kept in the audit, 10 letters or more")
	cli.Require(c, "at", "reason")
	return c
}

func propose(o *cli.Options, c *cobra.Command, m api.ManualRemap) error {
	return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.PlanView, error) {
		return cl.Propose(ctx, m)
	}, printPlan)
}

func newRemap(o *cli.Options) *cobra.Command {
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
			return propose(o, c, m)
		},
	}
	c.Flags().StringVar((*string)(&m.To), "to", "", "the forwarder to use")
	c.Flags().StringVar(&m.Reason, "reason", "", "why; kept in the audit, 10 letters or more")
	c.Flags().BoolVar(&m.Force, "force", false, "cut off a dead or hung forwarder instead of draining it")
	cli.Require(c, "to", "reason")
	return c
}
