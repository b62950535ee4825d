package decisions

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/client"
	"fairway/webui/incident"
)

func newFindingExport(o *cli.Options) *cobra.Command {
	var out string
	var standIns bool
	c := &cobra.Command{
		Use:   "export ID",
		Short: "Write a finding with its evidence, moves and audit into one HTML file",
		Long: "The file opens without a network: what is wrong, whom it hurts, the series beside those of the peers, " +
			"what was\n" +
			"moved and what that brought, who did what, and a replay of the minutes around it. With --stand-ins no " +
			"node, job,\n" +
			"user, application or site is named and no typed reason is kept: for a vendor's ticket.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (*incident.Incident, error) {
				return cl.Incident(ctx, args[0], standIns)
			}, func(w io.Writer, inc *incident.Incident) error {
				return cli.WriteFile(w, cmp.Or(out, args[0]+".html"), inc.HTML)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "the file; ID.html without it")
	c.Flags().BoolVar(&standIns, "stand-ins", false, "no real name in it")
	return c
}
