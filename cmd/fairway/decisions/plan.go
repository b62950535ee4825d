package decisions

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

func printPlans(w io.Writer, plans []api.PlanRow) error {
	return cli.PrintRows(w, []string{"PLAN", "STATE", "CREATED", "WHAT"}, plans, func(p *api.PlanRow) []string {
		return []string{p.ID, string(p.State), cli.Stamp(p.Created), p.Title}
	})
}

func newPlan(o *cli.Options) *cobra.Command {
	show := cli.NewNamed(o, "show ID", "Show a plan, its preview, checks and progress", (*client.Client).Plan,
		printPlan)
	c := &cobra.Command{
		Use: "plan ID", Short: "Show or decide one plan", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return program.BadUsage(errors.New(
					"plan needs an ID, or a verb and an ID: show, approve, reject, complete, rollback or stop"))
			}
			return show.RunE(c, args)
		},
	}
	c.AddCommand(show, newApprove(o),
		newDecision(o, "reject", "Reject a waiting plan; nothing moves", (*client.Client).Reject),
		newDecision(o, "complete", "Try the moves of a partial or failed plan again that were not made",
			(*client.Client).Complete),
		newDecision(o, "rollback", "Move the compute nodes of a plan back", (*client.Client).RollBack),
		newDecision(o, "stop", "Stop applying a plan after the orders under way", (*client.Client).Stop))
	return c
}

func newApprove(o *cli.Options) *cobra.Command {
	var reason, hash string
	var wait time.Duration
	c := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a plan as it was previewed, and wait until it is verified",
		Long: "Approve a plan as it was previewed, and wait until it is verified.\n\n" +
			"On a terminal it shows the plan and asks. A script gives --preview, the hash that 'fairway plan show'\n" +
			"printed, and --reason. If the plan would do something else by now, nothing is applied, exit code 6.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case hash == "" && !program.IsTerminal(os.Stdin):
				return program.BadUsage(fmt.Errorf("plan approve %s: without a terminal it cannot ask; give --preview "+
					"with the hash of 'fairway plan show %[1]s', and --reason", args[0]))
			case hash != "" && reason == "":
				return program.BadUsage(errors.New("plan approve: --preview needs --reason"))
			}
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.PlanView, error) {
				if hash == "" {
					v, err := cl.Plan(ctx, args[0])
					if err != nil {
						return v, err
					}
					reason = cmp.Or(reason, v.SuggestedReason)
					if err := askToApprove(c.ErrOrStderr(), c.InOrStdin(), &v, reason); err != nil {
						return v, err
					}
					hash = v.PreviewHash
				}
				v, err := cl.Approve(ctx, args[0], hash, reason)
				if err != nil || wait == 0 {
					return v, err
				}
				return cl.Settled(ctx, v, wait)
			}, printPlan)
		},
	}
	c.Flags().StringVar(&hash, "preview", "", "hash of the preview that is approved; on a terminal it asks without")
	c.Flags().StringVar(&reason, "reason", "", "why; kept in the audit, 10 letters or more")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for the result; 0 does not wait")
	return c
}

// askToApprove shows a plan and asks whether to approve it.
func askToApprove(w io.Writer, in io.Reader, v *api.PlanView, reason string) error {
	if err := printPlan(w, *v); err != nil {
		return err
	}
	yes, err := saysYes(w, in, fmt.Sprintf("Approve %s, because %q", v.ID, reason))
	if err == nil && !yes {
		err = fmt.Errorf("plan %s was not approved; nothing was moved", v.ID)
	}
	return err
}

// saysYes asks, and reports whether the answer is y or yes.
func saysYes(w io.Writer, in io.Reader, question string) (bool, error) {
	fmt.Fprint(w, question, "? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("the answer: %w", err)
	}
	yes := strings.ToLower(strings.TrimSpace(answer))
	return yes == "y" || yes == "yes", nil
}

// newDecision makes a verb of plan.
func newDecision(o *cli.Options, verb, short string,
	act func(*client.Client, context.Context, string, string) (api.PlanView, error)) *cobra.Command {
	return newReasoned(o, verb+" ID", short, act,
		func(w io.Writer, _ string, v api.PlanView) error { return printPlan(w, v) })
}

// printPlan prints a plan as `plan show` does.
func printPlan(w io.Writer, v api.PlanView) error {
	fmt.Fprintf(w, "%s  %s  %s\nproposed by %s at %s: %s\n", v.ID, v.State, v.Title, v.ProposedBy(),
		v.Created.Local().Format("15:04:05"), v.Reason)
	if v.Expected != "" {
		fmt.Fprintln(w, "expected:", v.Expected)
	}
	if v.Track != "" {
		fmt.Fprintln(w, "moves before:", v.Track)
	}
	if v.Outcome != "" {
		fmt.Fprintln(w, "measured:", v.Outcome)
	}
	if v.Brought != "" {
		fmt.Fprint(w, "effect: ", v.Brought)
		if v.Effect.InVain() && slices.Contains(v.Can, remap.ActRollBack) {
			fmt.Fprintf(w, ": 'fairway plan rollback %s' takes it back", v.ID)
		}
		fmt.Fprintln(w)
	}
	for _, l := range v.Lines {
		fmt.Fprintln(w, " ", l)
	}
	for _, c := range v.Checks {
		fmt.Fprintf(w, "  %-5s %s\n", c.Level, c.Text)
	}
	for _, a := range v.Approvals {
		fmt.Fprintf(w, "approved by %s at %s: %s\n", a.By, a.At.Local().Format("15:04:05"), a.Reason)
	}
	n, ok, failed, verified := v.Progress()
	if len(v.Results) > 0 {
		fmt.Fprintf(w, "done %d of %d, failed %d, verified %d\n", ok, n, failed, verified)
	}
	if v.Error != "" {
		fmt.Fprintln(w, "error:", v.Error)
	}
	if v.State == remap.Proposed {
		if v.MayApprove != "" {
			fmt.Fprintln(w, "not yours to approve:", v.MayApprove)
		}
		fmt.Fprintf(w, "preview %s\nto approve: fairway plan approve %s (a script: --preview %s --reason TEXT)\n",
			v.PreviewHash, v.ID, v.PreviewHash)
	}
	return nil
}
