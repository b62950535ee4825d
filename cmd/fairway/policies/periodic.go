package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/dispatch"
	"fairway/remap/policy/periodic"
	"fairway/webui/api"
	"fairway/webui/client"
)

// newPeriodic is `fairway periodic`: when periodic applications should do their I/O, of a file with no
// daemon, or of the daemon's history.
func newPeriodic(o *cli.Options) *cobra.Command {
	var chart, running, table4 bool
	c := &cobra.Command{
		Use:   "periodic SET.json | --running | --table4",
		Short: "Stagger the I/O of periodic applications in a repeated pattern",
		Long: "PerSched of Periodic I/O scheduling for super-computers (Aupy, Gainaru, Le Fèvre).\n" +
			"Reads {\"procs\",\"b\",\"B\",\"kprime\",\"eps\",\"tmin\",\"aim\"," +
			"\"apps\":[{\"name\",\"w\",\"vol\",\"beta\"}]} (seconds, GB, GB/s) and\n" +
			"prints the best pattern: its length T, SysEfficiency, Dilation, their bounds, what happens without it,\n" +
			"and every instance's I/O as [start, end, bandwidth]. \"-\" reads standard input. With --running the\n" +
			"daemon says which running jobs are periodic, and the pattern is theirs, with each job's window where\n" +
			"windows are given. --table4 makes the paper's own sets again.",
		Example: "  echo '{\"procs\":640,\"b\":0.01,\"B\":3,\"apps\":[{\"name\":\"turbulence\",\"w\":76.8," +
			"\"vol\":235.8,\"beta\":64}]}' | fairway periodic --chart -",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case table4 && (len(args) != 0 || running || chart):
				return errors.New("--table4 prints the paper's sets, and takes nothing else but --json")
			case table4:
			case running && len(args) != 0:
				return fmt.Errorf("--running takes the jobs from the daemon, so there can be no %q", args[0])
			case !running && len(args) != 1:
				return errors.New("want SET.json, --running or --table4")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if chart && o.JSON {
				return program.BadUsage(errors.New("--chart draws and --json does not: want one of them"))
			}
			if table4 {
				return printTable4(cmd.OutOrStdout(), o.JSON)
			}
			if running {
				return runningPattern(cmd, o, chart)
			}
			var s periodic.Set
			err := readCase(cmd, args[0], cli.MaxFileBytes, &s, func() (err error) {
				s, err = periodic.Complete(s)
				return err
			})
			if err != nil {
				return err
			}
			p, unplanned, err := schedule(s)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if chart {
				return drawPattern(cmd.OutOrStdout(), s, p, unplanned)
			}
			return cli.PrintJSON(cmd.OutOrStdout(), planned{p, unplanned})
		},
	}
	c.Flags().BoolVar(&chart, "chart", false, "draw the pattern instead of JSON")
	c.Flags().BoolVar(&running, "running", false, "the pattern of the periodic jobs that run now")
	c.Flags().BoolVar(&table4, "table4", false, "print the paper's Table 4, ours beside theirs")
	return c
}

// table4Row is a set of the paper's Table 4, what the paper has and what we make of it.
type table4Row struct {
	Set      int         `json:"set"`
	PerSched paperBeside `json:"persched"`
	// Both is one pattern for both aims with the text's own T_min.
	Both        periodic.Figures `json:"both"`
	MinDilation [2]float64       `json:"min_dilation"` // the paper's and ours
	Online      paperBeside      `json:"online"`
	Fair        periodic.Figures `json:"fair"`
}

// paperBeside has the paper's figures beside ours.
type paperBeside struct {
	Paper periodic.Figures `json:"paper"`
	Ours  periodic.Figures `json:"ours"`
}

// printTable4 makes the paper's sets again, with the authors' pattern lengths and online heuristics.
func printTable4(w io.Writer, asJSON bool) error {
	var rows []table4Row
	for i, paper := range periodic.PaperSets() {
		row := table4Row{Set: i + 1, Online: paperBeside{paper.Online, paper.BestOnline()},
			Fair: periodic.Online(paper.Set, periodic.Fair, paper.TMin*paper.KPrime)}
		both := paper.Set
		both.Aim, both.TMin = periodic.Both, 0
		both, err := periodic.Complete(both)
		if err != nil {
			return err
		}
		least := paper.Set
		least.Aim = periodic.LeastDilation
		var found [3]periodic.Figures
		for k, s := range []periodic.Set{paper.Set, both, least} {
			p, err := validPattern(s)
			if err != nil {
				return fmt.Errorf("set %d: %w", i+1, err)
			}
			found[k] = periodic.Figures{SysEfficiency: p.SysEfficiency, Dilation: p.Dilation}
		}
		row.PerSched, row.Both = paperBeside{paper.PerSched, found[0]}, found[1]
		row.MinDilation = [2]float64{paper.MinDilation, found[2].Dilation}
		rows = append(rows, row)
	}
	if asJSON {
		return cli.PrintJSON(w, rows)
	}

	var b strings.Builder
	b.WriteString("    SysEfficiency                                Dilation\n" +
		"    PerSched             online        shared    least       PerSched          online      shared\n" +
		"set paper  ours   both   paper  ours   fairly    paper ours  paper ours  both  paper ours  fairly\n")
	for _, r := range rows {
		p, o := r.PerSched, r.Online
		fmt.Fprintf(&b, "%3d %.4f %.4f %.4f %.4f %.4f %.4f    %.3f %.3f %.3f %.3f %.3f %.3f %.3f %.3f\n",
			r.Set, p.Paper.SysEfficiency, p.Ours.SysEfficiency, r.Both.SysEfficiency, o.Paper.SysEfficiency,
			o.Ours.SysEfficiency, r.Fair.SysEfficiency, r.MinDilation[0], r.MinDilation[1], p.Paper.Dilation,
			p.Ours.Dilation, r.Both.Dilation, o.Paper.Dilation, o.Ours.Dilation, r.Fair.Dilation)
	}
	b.WriteString("both: one pattern for both aims with the text's T_min; else with the authors' pattern lengths.\n" +
		"online: the best of each column over the rules oldest, progress, gain and mix, which may be two rules'.\n" +
		"shared fairly: no rule and no pattern; no bandwidth is idle and none is lost to congestion.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// planned is a pattern and what happens without it.
type planned struct {
	periodic.Pattern
	Unplanned periodic.Unplanned `json:"unplanned"`
}

func schedule(s periodic.Set) (periodic.Pattern, periodic.Unplanned, error) {
	p, err := validPattern(s)
	if err != nil {
		return p, periodic.Unplanned{}, err
	}
	return p, periodic.Online(s, periodic.Fair, s.TMin*s.KPrime), nil
}

// validPattern is a set's pattern that the checker passed.
func validPattern(s periodic.Set) (periodic.Pattern, error) {
	p, err := periodic.Schedule(s)
	if err != nil {
		return p, fmt.Errorf("%w; a larger kprime tries longer ones", err)
	}
	if err := p.Check(s); err != nil {
		return p, fmt.Errorf("the pattern found is not valid, please report this: %w", err)
	}
	return p, nil
}

// runningPattern prints the pattern of the running jobs, and on standard error those not known to be periodic.
func runningPattern(cmd *cobra.Command, o *cli.Options, chart bool) error {
	return cli.Show(o, cmd, func(ctx context.Context, cl *client.Client) (dispatch.RunningPattern, error) {
		v, err := cl.Windows(ctx)
		for _, j := range v.Jobs {
			about := "not known to be periodic"
			if j.Cycle != nil {
				about = j.Cycle.Words()
			}
			if j.Window != nil {
				about += "; " + j.Window.Words
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s of %s on %s: %s\n", j.Job, j.App, j.User,
				anomaly.Counted(j.Nodes, "node"), about)
		}
		if err == nil && v.Pattern == nil {
			err = fmt.Errorf("%w: %s", api.ErrNotFound, v.Problem)
		}
		return v, err
	}, func(w io.Writer, v dispatch.RunningPattern) error {
		if chart {
			return drawPattern(w, v.Set, *v.Pattern, *v.Unplanned)
		}
		return cli.PrintJSON(w, v)
	})
}
