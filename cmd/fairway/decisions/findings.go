package decisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
	"fairway/webui/incident"
)

func newFindings(o *cli.Options) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "findings [ID]",
		Short: "List what is wrong, or one finding with its life",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				var inc *incident.Incident
				return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (v api.FindingView, err error) {
					if v, err = cl.Finding(ctx, args[0]); err == nil && !o.JSON {
						inc, err = cl.Incident(ctx, args[0], false)
					}
					return v, err
				}, func(w io.Writer, v api.FindingView) error { return printFinding(w, v, inc) })
			}
			var list []anomaly.Finding
			var calm string
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (shown []anomaly.Finding, err error) {
				shown = []anomaly.Finding{}
				list, err = cl.Findings(ctx)
				for _, f := range list {
					if all || f.Open() {
						shown = append(shown, f)
					}
				}
				if err == nil && len(shown) == 0 && !o.JSON {
					var now api.Overview
					now, err = cl.Overview(ctx)
					calm = now.Calm
				}
				return shown, err
			}, func(w io.Writer, shown []anomaly.Finding) error {
				if len(shown) == 0 {
					return printNoFinding(w, list, calm)
				}
				return printFindings(w, shown)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that were closed within an hour")
	c.AddCommand(newFindingVerb(o, "ack", "Say that you look after a finding", (*client.Client).Acknowledge),
		newSilence(o),
		newFindingVerb(o, "dismiss", "Say that a finding is not a fault; it is not made again for a day",
			(*client.Client).Dismiss),
		newFindingVerb(o, "note", "Write a note about a finding, also one that is over: --reason TEXT",
			func(cl *client.Client, ctx context.Context, id, text string) (anomaly.Finding, error) {
				return cl.Note(ctx, id, text, time.Time{})
			}),
		newFindingExport(o))
	return c
}

// newFindingVerb makes a verb of findings.
func newFindingVerb(o *cli.Options, verb, short string,
	act func(*client.Client, context.Context, string, string) (anomaly.Finding, error)) *cobra.Command {
	return newReasoned(o, verb+" ID", short, act,
		func(w io.Writer, _ string, f anomaly.Finding) error { return printFindings(w, []anomaly.Finding{f}) })
}

func newSilence(o *cli.Options) *cobra.Command {
	var long time.Duration
	c := newFindingVerb(o, "silence",
		"Keep a finding from calling anybody for a while; it is followed and shown as before",
		func(cl *client.Client, ctx context.Context, id, why string) (anomaly.Finding, error) {
			return cl.Silence(ctx, id, long, why)
		})
	c.Use = "silence ID [--for 4h]"
	c.Long = "Keeps a finding out of what needs a person, for 1m to 168h; --for 0s ends a silence. The finding is " +
		"followed,\n" +
		"listed and acted on by the policy as before, and a silence ends early when it is confirmed or excluded."
	c.Flags().DurationVar(&long, "for", 4*time.Hour, "how long; 0s ends a silence")
	return c
}

func printFindings(w io.Writer, list []anomaly.Finding) error {
	return cli.PrintRows(w, []string{"FINDING", "SUBJECT", "KIND", "STATE", "SINCE", "CONF", "OWNER", "WHAT"}, list,
		func(f *anomaly.Finding) []string {
			state := string(f.State)
			if f.Open() && f.Silent(time.Now()) {
				state += ", silent until " + f.Silenced.Local().Format("15:04")
			}
			return []string{f.ID, string(f.Node), remap.FindingWords(f), state, f.Since.Local().Format("15:04:05"),
				fmt.Sprintf("%.2f", f.Confidence), cmp.Or(f.Owner, "-"), f.Sentence}
		})
}

// printNoFinding says since when nothing is open, by the closed ones of all, and what was compared.
func printNoFinding(w io.Writer, all []anomaly.Finding, calm string) error {
	text := "no finding is open, and none was closed within the last hour"
	if len(all) > 0 {
		last := slices.MaxFunc(all, func(a, b anomaly.Finding) int { return a.Changed.Compare(b.Changed) })
		text = fmt.Sprintf("no finding is open since %s: %s of %s was the last (--all lists it)",
			last.Changed.Local().Format("15:04:05"), last.ID, last.Node)
	}
	if calm != "" {
		text += "\n" + calm
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func printFinding(w io.Writer, v api.FindingView, inc *incident.Incident) error {
	fmt.Fprintf(w, "%s  %s  %s %s since %s, confidence %.2f\n%s\n", v.ID, v.Node, remap.FindingWords(&v.Finding),
		v.State, cli.Stamp(v.Since), v.Confidence, v.Sentence)
	for _, hurt := range inc.Victims {
		fmt.Fprintln(w, "hurts", hurt.Text)
	}
	for _, c := range inc.Series.Charts {
		if c.Says != "" {
			fmt.Fprintf(w, "beside its peers: %s %s\n", c.Label, c.Says)
		}
	}
	for _, p := range inc.Plans {
		fmt.Fprintf(w, "plan %s %s: %s", p.ID, p.State, p.Title)
		if p.Brought != "" {
			fmt.Fprint(w, "; ", p.Brought)
		}
		fmt.Fprintln(w)
	}
	if v.Open() && v.Silent(time.Now()) {
		fmt.Fprintln(w, "silent until:", cli.Stamp(v.Silenced))
	}
	if v.Held != "" {
		fmt.Fprintln(w, "still in use:", v.Held)
	}
	for _, c := range v.Changes {
		state := string(c.Finding.State)
		if c.Finding.Stage != "" {
			state += " (" + string(c.Finding.Stage) + ")"
		}
		fmt.Fprintf(w, "  %s  %-22s by %s: %s\n", c.At.Local().Format("15:04:05"), state,
			cmp.Or(c.By, "detectors"), c.Why)
	}
	if next := screen.NextCommand(&v.Finding); next != "" {
		fmt.Fprintln(w, "next:", next)
	}
	return nil
}

func newDrain(o *cli.Options) *cobra.Command {
	var reason, from string
	var ttl time.Duration
	var maintenance bool
	c := &cobra.Command{
		Use:     "drain FORWARDER --reason TEXT",
		Aliases: []string{"exclude"}, // as it was called
		Short:   "Drain a forwarder, also for maintenance: no job gets it, nobody is moved",
		Long: "With --maintenance the forwarder is worked on: nothing is found of it and nobody is called about it\n" +
			"until the lease ends or 'fairway return'. --from plans that ahead; 'fairway exclusions' lists it.",
		Example: "  fairway drain fwd3 --maintenance --from 2026-11-28T08:00:00+01:00 --for 6h --reason 'new " +
			"firmware'",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var at time.Time
			if from != "" {
				if !maintenance {
					return program.BadUsage(errors.New("--from needs --maintenance: only that is planned ahead"))
				}
				var err error
				if at, err = time.Parse(time.RFC3339, from); err != nil {
					return program.BadUsage(fmt.Errorf("--from %q: want a time such as 2026-11-28T08:00:00Z", from))
				}
			}
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (remap.Exclusion, error) {
				if maintenance {
					return cl.Maintain(ctx, topology.ForwarderID(args[0]), at, ttl, reason)
				}
				return cl.Exclude(ctx, topology.ForwarderID(args[0]), ttl, reason)
			}, printExclusion)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; kept in the audit, 10 letters or more")
	c.Flags().DurationVar(&ttl, "for", 4*time.Hour, "lease; the forwarder returns by itself when it is over")
	c.Flags().BoolVar(&maintenance, "maintenance", false, "it is worked on: nothing is found of it meanwhile")
	c.Flags().StringVar(&from, "from", "", "when its maintenance begins, RFC 3339 (default: now)")
	cli.Require(c, "reason")
	return c
}

func printExclusion(w io.Writer, e remap.Exclusion) error {
	if e.Since.After(time.Now()) {
		_, err := fmt.Fprintf(w, "%s will be drained from %s until %s\n", e.Forwarder,
			e.Since.Local().Format("2006-01-02 15:04"), e.Until.Local().Format("2006-01-02 15:04"))
		return err
	}
	_, err := fmt.Fprintf(w, "%s is drained until %s\n", e.Forwarder, cli.Stamp(e.Until))
	return err
}

func printExclusions(w io.Writer, f remap.Feed) error {
	if len(f.Exclusions) == 0 {
		fmt.Fprintln(w, "no forwarder is drained")
	}
	for _, e := range f.Exclusions {
		what := ""
		if e.Maintenance {
			what = "maintenance "
		}
		fmt.Fprintf(w, "%s  %sby %s until %s: %s\n", e.Forwarder, what, e.By, cli.Stamp(e.Until), e.Reason)
		if e.Drain != nil {
			fmt.Fprintf(w, "  %s\n", e.Drain)
		}
	}
	for _, e := range f.Planned {
		fmt.Fprintf(w, "%s  planned maintenance by %s from %s until %s: %s\n", e.Forwarder, e.By,
			e.Since.Local().Format("2006-01-02 15:04"), e.Until.Local().Format("2006-01-02 15:04"), e.Reason)
	}
	return nil
}

func newReturn(o *cli.Options) *cobra.Command {
	return newReasoned(o, "return FORWARDER", "Take a drained forwarder back into allocation", (*client.Client).Return,
		func(w io.Writer, id string, f remap.Feed) error {
			_, err := fmt.Fprintf(w, "%s is in allocation again; drained still: %s\n", id,
				anomaly.Counted(len(f.Exclusions), "forwarder"))
			return err
		})
}
