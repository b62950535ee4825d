package decisions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/remap/policy/evacuate"
	"fairway/webui/client"
)

func newRules(o *cli.Options) *cobra.Command {
	c := cli.NewList(o, "rules",
		"List the site's rules about running jobs behind ill forwarders, and what they decided",
		(*client.Client).Rules, printRules)
	c.Long = "List the site's rules about running jobs behind forwarders that are confirmed to be slow, hung or " +
		"dead\n([[rule]] in the daemon's settings), how often each has acted today, and the newest decisions."
	c.AddCommand(newTestRules(o))
	return c
}

func printRules(w io.Writer, v evacuate.View) error {
	rows := make([][]string, 0, len(v.Rules)+1)
	for _, r := range v.Rules {
		acted := "-"
		if r.Action == evacuate.Act {
			acted = fmt.Sprintf("%d of %d", r.Acted, r.AtMost)
		}
		rows = append(rows, []string{r.Name, ruleWords(&r.Rule), r.Action, acted})
	}
	rows = append(rows, []string{"(no rule)", "any other job that waits", evacuate.Propose, "-"})
	if err := cli.PrintTable(w, []string{"RULE", "WHEN", "DOES", "ACTED IN 24 H"}, rows); err != nil {
		return err
	}
	const shown = 20
	for i, l := range v.Log {
		if i == 0 {
			fmt.Fprintln(w, "\ndecisions, the newest first:")
		}
		if i == shown {
			fmt.Fprintf(w, "  and %d more (--json has them)\n", len(v.Log)-shown)
			break
		}
		fmt.Fprintf(w, "  %s %s %s\n", cli.Stamp(l.At), cmp.Or(l.Plan, "-"), l.Text)
	}
	return nil
}

// ruleWords says when a rule fits.
func ruleWords(r *evacuate.Rule) string {
	words := "slow, hung or dead"
	if len(r.Conditions) > 0 {
		words = strings.Join(r.Conditions, " or ")
	}
	if r.Ratio > 0 {
		words += fmt.Sprintf(" (slow: from %s)", anomaly.Times(r.Ratio))
	}
	if r.For > 0 {
		words += fmt.Sprintf(" for %s", r.For)
	}
	for _, of := range []struct{ name, value string }{{"application", r.Application}, {"user", r.User},
		{"at", r.Hours}} {
		if of.value != "" {
			words += fmt.Sprintf(", %s %s", of.name, of.value)
		}
	}
	return words + fmt.Sprintf(", others lose %.0f %% at most", 100*r.Loss)
}

func newTestRules(o *cli.Options) *cobra.Command {
	var days float64
	c := &cobra.Command{
		Use:   "test",
		Short: "Say what the rules would have done about the findings of the last week",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (evacuate.Tested, error) {
				return cl.TestRules(ctx, time.Now().Add(-time.Duration(days*24*float64(time.Hour))))
			}, printTested)
		},
	}
	c.Flags().Float64Var(&days, "days", 7, "how far back")
	return c
}

func printTested(w io.Writer, v evacuate.Tested) error {
	acts := 0
	rows := make([][]string, 0, len(v.Would))
	for _, x := range v.Would {
		if x.Does == evacuate.Act {
			acts++
		}
		what := string(x.Condition)
		if x.Condition == anomaly.Slow && x.Ratio > 0 {
			what = anomaly.Times(x.Ratio) + " slow"
		}
		rows = append(rows, []string{cli.Stamp(x.At), x.Finding, string(x.Forwarder), what, string(x.Job), x.App,
			x.User, cmp.Or(x.Rule, "-"), x.Does})
	}
	fmt.Fprintf(w, "%s to %s: %s behind forwarders that were confirmed; the rules would have moved %d by themselves\n",
		cli.Stamp(v.From), cli.Stamp(v.To), anomaly.Counted(len(v.Would), "job"), acts)
	if len(rows) == 0 {
		return nil
	}
	return cli.PrintTable(w, []string{"WHEN", "FINDING", "FORWARDER", "WAS", "JOB", "APPLICATION", "USER", "RULE",
		"DOES"}, rows)
}
