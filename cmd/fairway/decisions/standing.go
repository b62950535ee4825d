package decisions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/remap"
	"fairway/webui/client"
)

func newStanding(o *cli.Options) *cobra.Command {
	c := cli.NewList(o, "standing", "List, give or revoke standing approvals", (*client.Client).Standing, printStanding)
	c.Long = "List, give or revoke standing approvals: what a policy proposes for an application is then approved " +
		"at once,\n" +
		"within the guard rails. What a person proposes still waits for another person."
	c.AddCommand(newAllow(o), newRevoke(o))
	return c
}

func printStanding(w io.Writer, all []remap.Standing) error {
	return cli.PrintRows(w, []string{"ID", "APPLICATION", "USER", "BY", "UNTIL", "REASON"}, all,
		func(s *remap.Standing) []string {
			until := cli.Stamp(s.Until)
			if s.Lapsed != "" {
				until = "does not hold: " + s.Lapsed
			}
			return []string{s.ID, s.App, cmp.Or(s.User, "all"), s.By, until, s.Reason}
		})
}

func newAllow(o *cli.Options) *cobra.Command {
	var app, user, reason string
	var ttl time.Duration
	c := &cobra.Command{
		Use:   "allow --app APP --user USER --reason TEXT",
		Short: "Approve beforehand what policies propose for an application",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (remap.Standing, error) {
				return cl.Allow(ctx, app, user, ttl, reason)
			}, func(w io.Writer, s remap.Standing) error {
				_, err := fmt.Fprintf(w,
					"%s: plans for %s of user %s are approved until %s; 'fairway standing revoke %s' ends it\n",
					s.ID, s.App, cmp.Or(s.User, "all"), cli.Stamp(s.Until), s.ID)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&app, "app", "", "application, as its jobs name it")
	f.StringVar(&user, "user", "", "only jobs of this user; of every user without it")
	f.DurationVar(&ttl, "for", 30*24*time.Hour, "how long it holds, 1m to 8784h")
	f.StringVar(&reason, "reason", "", "why; kept in the audit, 10 letters or more")
	cli.Require(c, "app", "reason")
	return c
}

func newRevoke(o *cli.Options) *cobra.Command {
	return newReasoned(o, "revoke ID", "End a standing approval; plans approved by it stay", (*client.Client).Revoke,
		func(w io.Writer, id string, left []remap.Standing) error {
			verb := "are"
			if len(left) == 1 {
				verb = "is"
			}
			_, err := fmt.Fprintf(w, "%s is revoked; %s %s left\n", id, anomaly.Counted(len(left), "standing approval"),
				verb)
			return err
		})
}
