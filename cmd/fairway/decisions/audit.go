package decisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/console/chart"
	"fairway/remap/journal"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newAudit(o *cli.Options) *cobra.Command {
	var q api.AuditQuery
	c := &cobra.Command{
		Use:     "audit",
		Short:   "List who did what, when and why",
		Example: "  fairway audit --actor sam --from -24h\n  fairway audit --subject P-000142",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) ([]api.AuditEntry, error) {
				return cl.Audit(ctx, q)
			}, printAudit)
		},
	}
	c.AddCommand(newAuditVerify(o))
	f := c.Flags()
	f.StringVar(&q.Actor, "actor", "", "only what this person or policy did")
	f.StringVar(&q.Subject, "subject", "", "only this plan, finding or forwarder")
	f.StringVar(&q.From, "from", "", "not before this time: RFC 3339, or -2h before now")
	f.StringVar(&q.To, "to", "", "before this time: RFC 3339, or -2h before now")
	f.IntVar(&q.Limit, "limit", 0, "at most so many, the newest; 0 is the daemon's own limit")
	return c
}

func printAudit(w io.Writer, entries []api.AuditEntry) error {
	return cli.PrintRows(w, []string{"SEQ", "AT", "ACTOR", "FROM", "ACTION", "SUBJECT", "RESULT", "REASON"}, entries,
		func(e *api.AuditEntry) []string {
			return []string{strconv.FormatUint(e.Seq, 10), cli.Stamp(e.At), e.Actor, chart.OrMissing(e.From),
				e.Action, e.Subject, chart.OrMissing(e.Result), e.Reason}
		})
}

func newUndo(o *cli.Options) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "undo",
		Short: "Take back what you did last, within a day, where that can be",
		Long: "Take back what you did last, within a day: a plan, a drain, a silence, an acknowledgement.\n" +
			"On a terminal it shows what that is and asks; a script gives --yes.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !yes && !program.IsTerminal(os.Stdin) {
				return program.BadUsage(errors.New("undo: without a terminal it cannot ask; give --yes"))
			}
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.LastAct, error) {
				last, err := cl.LastAct(ctx)
				switch {
				case err != nil:
					return last, err
				case last.WhyNot != "":
					return last, fmt.Errorf("undo: %w: you %s; %s", api.ErrConflict, last.Did, last.WhyNot)
				case !yes:
					question := fmt.Sprintf("You %s. %s", last.Did, last.Undo)
					if yes, err = saysYes(c.ErrOrStderr(), c.InOrStdin(), question); err != nil || !yes {
						return last, cmp.Or(err, errors.New("nothing was undone"))
					}
				}
				return cl.Undo(ctx, last.Seq)
			}, func(w io.Writer, last api.LastAct) error {
				_, err := fmt.Fprintln(w, "done:", last.Undo)
				return err
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "undo without asking")
	return c
}

// defaultJournal is where fairwayd keeps it unless state_dir says otherwise.
const defaultJournal = "/var/lib/fairway/journal"

func newAuditVerify(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [JOURNAL]",
		Short: "Check every record, checksum and link of the journal, without the daemon",
		Long: "Check every record, checksum and link of the journal (default " + defaultJournal +
			"), without the daemon and without changing it.\n" +
			"The last hash printed stands for everything before it: kept elsewhere, it shows later whether anything " +
			"was changed.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := defaultJournal
			if len(args) == 1 {
				path = args[0]
			}
			sum, err := journal.Verify(path)
			if err != nil {
				return err
			}
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), sum)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is whole: %d records from %s to %s, last hash %s\n", path,
				sum.Records, cli.Stamp(sum.First), cli.Stamp(sum.Last), sum.LastHash)
			if err == nil && sum.TornBytes > 0 {
				_, err = fmt.Fprintf(c.OutOrStdout(),
					"its end, %d bytes, was not finished and never answered (%s); the daemon moves it to a file "+
						"beside the journal at its next start\n", sum.TornBytes, sum.Torn)
			}
			return err
		},
	}
}
