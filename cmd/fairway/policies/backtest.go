package policies

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/backtest"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// backtestFlags are where the jobs come from and what they run on.
type backtestFlags struct {
	csv, history, taihulight string
	darshan                  []string
	seed                     uint64
	config                   string
	harm                     float64
	machine                  backtest.Machine
}

// backtestAnswer is what --json prints.
type backtestAnswer struct {
	Policies  []*backtest.Result `json:"policies"`
	Slowdowns []history.Slowdown `json:"slowdowns"` // of applications by each other, in the history itself
}

func newBacktest(o *cli.Options) *cobra.Command {
	f := &backtestFlags{machine: backtest.TaihuLight()}
	c := &cobra.Command{
		Use:   "backtest",
		Short: "Replay a history of jobs through every policy, and say who would have gained or lost",
		Long: "Replays jobs through ffm (the fixed mapping), rr-32, " + dispatch.PolicyNames() +
			" on a modelled machine, without a daemon.\n" +
			"The jobs come from a CSV (job, user, app, nodes, start, end, volume_bytes, io_nodes, mode, " +
			"...), from a\n" +
			"daemon's history, or from TaihuLight's job list of 2018 with the I/O of Darshan summaries.",
		Example: "  fairway backtest --csv jobs.csv\n" +
			"  fairway backtest --taihulight taihulight_jobs_2018.csv --darshan edison-summaries.csv.gz --slow 4",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			runs, err := f.runs(c.ErrOrStderr())
			if err != nil {
				return err
			}
			results, err := f.replay(c, runs)
			if err != nil {
				return program.BadUsage(err)
			}
			pairs := history.Slowdowns(runs)
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), backtestAnswer{results, pairs})
			}
			if err := printBacktest(c.OutOrStdout(), results); err != nil {
				return err
			}
			return printSlowdowns(c.OutOrStdout(), pairs)
		},
	}
	fl, m := c.Flags(), &f.machine
	fl.StringVar(&f.csv, "csv", "", "jobs as CSV")
	fl.StringVar(&f.history, "history", "", "jobs of a daemon: STATE_DIR/history")
	fl.StringVar(&f.taihulight, "taihulight", "", "TaihuLight's job list of 2018 (CSV)")
	fl.StringArrayVar(&f.darshan, "darshan", nil,
		"Darshan summaries (CSV, .gz) whose I/O the list's jobs get; may be repeated")
	fl.Uint64Var(&f.seed, "seed", 1, "which application of the list gets which of the summaries")
	fl.StringVar(&f.config, "config", "", "thresholds as JSON, the \"config\" of fairway decide")
	fl.Float64Var(&f.harm, "harm-bound", 0,
		"how much slower than on its default mapping mckp may make a job; 0.05 is 5 %")
	fl.IntVar(&m.Compute, "compute", m.Compute, "compute nodes")
	fl.IntVar(&m.Forwarders, "forwarders", m.Forwarders, "forwarders, those of the default mapping and spare ones")
	fl.IntVar(&m.DefaultRatio, "ratio", m.DefaultRatio, "compute nodes per forwarder of the default mapping")
	fl.Float64Var(&m.FwdBW, "fwd-bw", m.FwdBW, "peak bandwidth of a forwarder, bytes/s")
	fl.Float64Var(&m.CNBW, "cn-bw", m.CNBW, "peak bandwidth of a compute node, bytes/s")
	fl.IntVar(&m.Slow, "slow", 0, "so many default forwarders are fail-slow all the time")
	fl.Float64Var(&m.SlowShare, "slow-share", m.SlowShare, "share of its bandwidth that a slow forwarder has")
	c.MarkFlagsOneRequired("csv", "history", "taihulight")
	c.MarkFlagsMutuallyExclusive("csv", "history", "taihulight")
	return c
}

// runs reads the jobs; rows that cannot be read are named and left out.
func (f *backtestFlags) runs(warn io.Writer) (runs []history.Run, err error) {
	name := cmp.Or(f.csv, f.history, f.taihulight)
	in, err := cli.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if f.taihulight != "" {
		var all []backtest.Summary
		for _, d := range f.darshan {
			s, err := summaries(d)
			if err != nil {
				return nil, err
			}
			all = append(all, s...)
		}
		return backtest.TaihuLight2018(name, in, all, f.seed)
	}
	each, refused := history.ReadCSV(name, in), 0
	if f.history != "" {
		each = history.Read(name, in)
	}
	for r, err := range each {
		if err == nil {
			runs = append(runs, r)
			continue
		}
		if refused++; refused <= 10 {
			fmt.Fprintln(warn, "fairway: left out:", err)
		}
	}
	if refused > 10 {
		fmt.Fprintf(warn, "fairway: left out: %d more\n", refused-10)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: %w", name, backtest.ErrNoJobs)
	}
	return runs, nil
}

func summaries(name string) ([]backtest.Summary, error) {
	in, err := cli.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return backtest.ReadSummaries(name, in)
}

// replay runs every policy, side by side.
func (f *backtestFlags) replay(c *cobra.Command, runs []history.Run) ([]*backtest.Result, error) {
	var limits dfra.Config
	if f.config != "" {
		err := readCase(c, f.config, cli.MaxFileBytes, &limits, func() error { return limits.Validate() })
		if err != nil {
			return nil, err
		}
	}
	policies := []backtest.Policy{backtest.FFM, backtest.RR}
	for _, p := range dispatch.Policies(f.harm) {
		policies = append(policies, backtest.Policy{Name: p.Name, Decide: p.Decide, Arbitrates: p.Arbitrates})
	}
	results, errs := make([]*backtest.Result, len(policies)), make([]error, len(policies))
	var wait sync.WaitGroup
	for i, p := range policies {
		wait.Go(func() { results[i], errs[i] = backtest.Run(f.machine, limits, runs, p) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errs[0]
	}
	for _, r := range results[1:] {
		r.Compare(results[0])
	}
	return results, nil
}

func printBacktest(w io.Writer, results []*backtest.Result) error {
	first := results[0]
	fmt.Fprintf(w, "%s replayed", anomaly.Counted(first.Jobs, "job"))
	if first.Unplaced > 0 {
		fmt.Fprintf(w, "; left out for want of free compute nodes: %d more", first.Unplaced)
	}
	if first.Checked > 0 {
		fmt.Fprintf(w, "; the last run predicted the next one within 20 %% in %.1f %% of %s",
			100*float64(first.Right)/float64(first.Checked), anomaly.Counted(first.Checked, "case"))
	}
	fmt.Fprint(w, "\n\n")
	head := []string{"POLICY", "GRANTED", "SHARE", "CORE-H", "MORE", "ALONE", "STEERED", "IN USE", "PEAK"}
	for _, c := range first.Classes {
		head = append(head, c.Name)
	}
	head = append(head, "GAIN", "LOSE", "NODE-H SAVED", "LOST")
	var rows [][]string
	for _, r := range results {
		row := []string{r.Policy, fmt.Sprint(r.Granted), percent(float64(r.Granted) / float64(max(1, r.Jobs))),
			percent(r.CoreHours),
			fmt.Sprint(r.Upgraded), fmt.Sprint(r.Isolated), fmt.Sprint(r.Steered), fmt.Sprintf("%.1f", r.MeanInUse),
			fmt.Sprint(r.PeakInUse)}
		for _, c := range r.Classes {
			cell := "-"
			if c.Jobs > 0 {
				cell = fmt.Sprintf("~%.4g s", c.Seconds)
			}
			row = append(row, cell)
		}
		if a := r.Against; a != nil {
			row = append(row, fmt.Sprint(a.Gain), fmt.Sprint(a.Lose), fmt.Sprintf("~%.4g", a.NodeHoursSaved),
				fmt.Sprintf("~%.4g", a.NodeHoursLost))
		} else {
			row = append(row, "-", "-", "-", "-")
		}
		rows = append(rows, row)
	}
	if err := cli.PrintTable(w, head, rows); err != nil {
		return err
	}
	for _, r := range results {
		if len(r.FirstFailed) > 0 {
			fmt.Fprintf(w, "\nunder %s no more forwarders because of, the first test that failed: %s\n", r.Policy,
				failedWords(r))
		}
	}
	for _, r := range results {
		if r.Against == nil || len(r.Against.Worst) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nwho loses most under %s:\n", r.Policy)
		for _, l := range r.Against.Worst {
			fmt.Fprintf(w, "  job %s (%s of %s, %s): ~%.4g s of I/O instead of ~%.4g s\n", l.Job, l.App, l.User,
				anomaly.Counted(l.Nodes, "node"), l.Seconds, l.DefaultSecond)
		}
	}
	return nil
}

// printSlowdowns says who slowed whom where the history has the runs' forwarders.
func printSlowdowns(w io.Writer, pairs []history.Slowdown) error {
	if len(pairs) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\ntime for each byte beside another application on the same forwarders, against runs alone there:")
	return cli.PrintRows(w, []string{"APPLICATION", "BESIDE", "TAKES", "RUNS", "ALONE"}, pairs,
		func(p *history.Slowdown) []string {
			return []string{p.App, p.Beside, fmt.Sprintf("%.2fx", p.Times), fmt.Sprint(p.Runs), fmt.Sprint(p.Alone)}
		})
}

// failedWords lists the tests of DFRA in their order, with the jobs that failed each first.
func failedWords(r *backtest.Result) string {
	var words []string
	for _, test := range []string{"history", "volume", "io-nodes", "metadata"} {
		n := r.FirstFailed[test]
		words = append(words, fmt.Sprintf("%s %d (%s)", test, n, percent(float64(n)/float64(max(1, r.Jobs)))))
	}
	return strings.Join(words, ", ")
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
