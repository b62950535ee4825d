package site

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/survey"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/scraped"
	"fairway/collector/topology"
)

func newLook(o *cli.Options) *cobra.Command {
	from, named, last := "", "", time.Duration(0)
	c := &cobra.Command{
		Use:   "look --from ADDRESS | DIR",
		Short: "Look at servers through the metrics that a site has already, without an agent",
		Long: "Reads what exporters have counted, as far apart as they were scraped, and says how much of its own " +
			"peak each\n" +
			"server moves, how even a group is, who takes longer than its peers, and what an agent would add. " +
			"Nothing is installed,\n" +
			`moved or written.

` +
			"It knows node_exporter (NFS servers, and NFS clients with its collector mountstats), lustre_exporter " +
			"(HPE, GSI),\n" +
			"lustrefs-exporter, and Telegraf's lustre2 and nfsclient, in a Prometheus or VictoriaMetrics, or in DIR: " +
			"answers of\n" +
			"/api/v1/query to METRIC[6h] in files *.json, and what exporters answered, each in a file NODE@SECONDS.",
		Example: "  fairway look --from prometheus://monitor:9090 --nodes 'gw[1-8]'\n" +
			"  for i in $(seq 480); do for n in oss1 oss2 oss3 oss4; do curl -s $n:9169/metrics " +
			">seen/$n@$(date +%s); done; sleep 15; done\n  fairway look --from seen",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			nodes, err := topology.ParseHostList(named)
			if err != nil {
				return program.BadUsage(fmt.Errorf("--nodes: %w", err))
			}
			if last < time.Minute {
				return program.BadUsage(fmt.Errorf("--last %s: want a minute or more", last))
			}
			a, err := look(c, from, nodes, last, time.Now())
			if err != nil {
				return fmt.Errorf("look: %w", err)
			}
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), a)
			}
			return printSurvey(c.OutOrStdout(), a)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "prometheus://HOST:PORT[/PREFIX], http(s)://..., or a folder of saved answers")
	f.DurationVar(&last, "last", 6*time.Hour, "of a Prometheus: how much of the newest time")
	f.StringVar(&named, "nodes", "", "forwarders or gateways to look at by their network and disks, such as gw[1-8]")
	cli.Require(c, "from")
	return c
}

// look reads what is at an address or in a folder and surveys it.
func look(c *cobra.Command, from string, nodes []topology.NodeID, last time.Duration, now time.Time) (survey.Answer,
	error) {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	s := survey.New(failslow.DefaultSettings().FalseAlarmEvery)
	r := scraped.NewReader(names, s.Take)
	shown := 0
	bad := func(err error) {
		if shown++; shown <= shownRows {
			fmt.Fprintln(c.ErrOrStderr(), "fairway: look:", err)
		}
	}
	var err error
	if strings.Contains(from, "://") {
		var p *scraped.Prometheus
		if p, err = scraped.NewPrometheus(from); err != nil {
			return survey.Answer{}, program.BadUsage(err)
		}
		err = p.Read(c.Context(), r, now.Add(-last), now, bad)
		if errors.As(err, new(*url.Error)) {
			err = program.NoAnswer(err)
		}
	} else if info, noFile := os.Stat(from); noFile != nil {
		err = program.BadUsage(noFile)
	} else if !info.IsDir() {
		err = program.BadUsage(fmt.Errorf("%s is not a folder; want one of answers or expositions that were saved",
			from))
	} else {
		err = r.ReadFolder(from, bad)
	}
	if shown > shownRows {
		fmt.Fprintf(c.ErrOrStderr(), "fairway: look: %d more like these\n", shown-shownRows)
	}
	if err != nil {
		return survey.Answer{}, err
	}
	a := s.Finish(r.Summary())
	if len(a.Groups) == 0 {
		return a, program.BadUsage(fmt.Errorf("%s has nothing that is read here of two scrapes (%d series): want "+
			"node_exporter on NFS servers, lustre_exporter, lustrefs-exporter or Telegraf's lustre2 or nfsclient; "+
			"--nodes names forwarders of other kinds", from, a.Series))
	}
	return a, nil
}

func printSurvey(w io.Writer, a survey.Answer) error {
	const clock = "2006-01-02 15:04:05"
	fmt.Fprintf(w, "%s to %s UTC, every %g s, %d series of %s", a.From.Format(clock), a.To.Format(clock),
		a.EverySeconds, a.Series, strings.Join(a.Exporters, ", "))
	if a.Resets+a.Missed > 0 {
		fmt.Fprintf(w, "; left out: %s of counters, %s", anomaly.Counted(a.Resets, "reset"),
			anomaly.Counted(a.Missed, "missing scrape"))
	}
	fmt.Fprint(w, "\n\n")
	for _, f := range a.Findings {
		until := "until " + f.Until.Format(clock)
		if f.Until.IsZero() {
			until = "and goes on"
		}
		fmt.Fprintf(w, "%s, since %s %s\n", f.Sentence, f.Since.Format(clock), until)
	}
	if len(a.Findings) == 0 {
		fmt.Fprintln(w, "no server takes longer than its peers, as far as they are compared")
	}
	for _, g := range a.Groups {
		if err := printSurveyed(w, g, a.Findings); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nnot known from this:")
	for _, m := range a.Missing {
		if _, err := fmt.Fprintf(w, "  %s: %s\n", m.Question, m.Why); err != nil {
			return err
		}
	}
	return nil
}

// printSurveyed writes one group: the busiest members, and those that differ.
func printSurveyed(w io.Writer, g survey.Group, found []survey.Finding) error {
	fmt.Fprintf(w, "\n%s: %d", g.Name, len(g.Members))
	if g.Idle > 0 {
		fmt.Fprintf(w, " (and %d idle)", g.Idle)
	}
	if g.Imbalance != nil {
		fmt.Fprintf(w, ", imbalance (largest over mean) %.2f", *g.Imbalance)
	}
	if len(g.Compared) > 0 {
		fmt.Fprintf(w, ", compared in %s", strings.Join(g.Compared, ", "))
	} else {
		fmt.Fprintf(w, ", not compared: %s", g.Why)
	}
	fmt.Fprintln(w)
	differs := func(m *survey.Member) bool {
		return slices.ContainsFunc(found, func(f survey.Finding) bool { return f.Group == g.Name && f.Name == m.Name })
	}
	members := slices.Clone(g.Members)
	load := func(m *survey.Member) float64 {
		if m.Mean == nil {
			return math.Inf(-1)
		}
		return *m.Mean
	}
	slices.SortStableFunc(members, func(a, b survey.Member) int { return cmp.Compare(load(&b), load(&a)) })
	var rows [][]string
	for i := range members {
		if m := &members[i]; i < shownRows || differs(m) {
			rows = append(rows, surveyRow(m))
		}
	}
	err := cli.PrintTable(w, []string{"NAME", "NODE", "MEAN", "PEAK", "OF PEAK %", "OCCUPIED %", "TOOK ms"}, rows)
	if left := len(members) - len(rows); left > 0 {
		fmt.Fprintf(w, "%d more with less; --json has them\n", left)
	}
	return err
}

// surveyRow writes a member; a dash is an unknown value.
func surveyRow(m *survey.Member) []string {
	shown := func(v *float64, scale float64, unit string, digits int) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v*scale, 'f', digits, 64) + unit
	}
	unit := m.Load.Info().Unit.Info()
	var share *float64
	if m.Mean != nil && *m.Peak > 0 {
		share = new(*m.Mean / *m.Peak)
	}
	var took []string
	for _, metric := range slices.Sorted(maps.Keys(m.Took)) {
		took = append(took, fmt.Sprintf("%s %.3g", metric.Info().Label, m.Took[metric]*1e3))
	}
	return []string{m.Name, cmp.Or(m.Node, "-"), shown(m.Mean, unit.Scale, " "+unit.Shown, 1), shown(m.Peak, unit.Scale,
		" "+unit.Shown, 1), shown(share, 100, "", 0), shown(m.Occupancy, 100, "", 0),
		cmp.Or(strings.Join(took, ", "), "-")}
}
