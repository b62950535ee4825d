package lists

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/client"
	"fairway/webui/report"
)

func newReport(o *cli.Options) *cobra.Command {
	var from, to, out string
	var html bool
	c := &cobra.Command{
		Use:   "report",
		Short: "Report a week: who used the forwarders, what was slow, what was moved and what it brought",
		Long: "Without --from it is the last seven days. The page of --html opens from a file and asks nothing\n" +
			"of the network; without it the report is Markdown. A run counts in the period in which it ended.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (*report.Report, error) {
				return cl.Report(ctx, from, to)
			}, func(w io.Writer, r *report.Report) error {
				render := r.Markdown
				if html {
					render = r.HTML
				}
				if out == "" {
					return render(w)
				}
				return cli.WriteFile(w, out, render)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "its start: RFC 3339, or -720h before its end")
	f.StringVar(&to, "to", "", "its end; now without it")
	f.BoolVar(&html, "html", false, "one HTML page with its pictures instead of Markdown")
	f.StringVar(&out, "out", "", "write it to this file instead of standard output")
	return c
}
