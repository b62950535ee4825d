package site

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly/recorded"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/webui/client"
)

// shownRows bounds how many bad rows are named; all are counted.
const shownRows = 20

func newDetect(o *cli.Options) *cobra.Command {
	set := recorded.DefaultSettings()
	live, last := false, time.Duration(0)
	c := &cobra.Command{
		Use:   "detect DIR",
		Short: "Find fail-slow forwarders in a recorded trace (docs/detection.md)",
		Long: "Reads samples.csv[.gz] and, where they are, nodes.csv, jobs.csv, backend.csv[.gz] and probe.csv[.gz]\n" +
			"from DIR, as if they arrived now, and writes events as CSV (type,node,start,end,detail; seconds " +
			"of the column rx), or with\n" +
			"--json one object a line with the jobs, the sentence and the confidence too. targets.csv[.gz] and " +
			"Darshan logs (*.darshan)\n" +
			"in DIR are judged for slow storage targets (target_slow), with or without samples; so are the disks " +
			"of hosts, a folder each at\n" +
			"or below DIR, with CSV files of the columns ts, disk_id and latency. With --occupancy, and always in " +
			"JSON,\n" +
			`each day (UTC) ends with the occupancy of every forwarder and of the layer (node *).

` +
			"With --live nothing is judged: the newest seconds of the running site (--last) are taken out of " +
			"its daemon and written into\n" +
			`DIR as such a trace, to be judged with other settings, kept or sent.`,
		Example: "  fairway detect /data/trace-2026-11-20 > events.csv\n  fairway detect --live --last 6h ./trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if live {
				return recordLive(o, c, args[0], last)
			}
			if err := set.Validate(); err != nil {
				return program.BadUsage(err)
			}
			set.Occupancy = set.Occupancy || o.JSON
			to := c.OutOrStdout()
			if o.JSON {
				to = program.Raw(to)
			}
			out := bufio.NewWriter(to)
			lines := json.NewEncoder(out)
			emit := func(e recorded.Event) error { return lines.Encode(e) }
			if !o.JSON {
				var err error
				if emit, err = recorded.WriteCSV(out); err != nil {
					return err
				}
			}
			shown := 0
			sum, err := recorded.Detect(c.Context(), args[0], set, emit, func(e *recorded.RowError) {
				if shown++; shown <= shownRows {
					fmt.Fprintln(c.ErrOrStderr(), "fairway: detect:", e)
				}
			})
			if sum.Bad > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "fairway: detect: %d rows could not be used, of %d rows in %d seconds\n",
					sum.Bad, sum.Rows, sum.Seconds)
			}
			if err != nil && sum.Rows == 0 { // nothing was understood: not even the header is written
				return program.BadUsage(fmt.Errorf("detect: %w", err))
			}
			if left := out.Flush(); err == nil { // else it says the same once more
				err = left
			}
			if err != nil {
				return fmt.Errorf("detect: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&live, "live", false, "record a trace from the running site into DIR, which must be empty or not there")
	f.DurationVar(&last, "last", time.Hour, "with --live: how much of the newest time")
	f.DurationVar(&set.FailSlow.FalseAlarmEvery, "false-alarm-every", set.FailSlow.FalseAlarmEvery,
		"mean time between false alarms of one healthy node that the test promises")
	f.Float64Var(&set.FailSlow.PeakBytesPerSec, "peak", 0, "what a forwarder can move, bytes/s; 0 learns it")
	f.BoolVar(&set.Occupancy, "occupancy", false, "say each day's occupancy too")
	f.Float64Var(&set.Life.MaxExcluded, "max-excluded", set.Life.MaxExcluded,
		"largest share of the forwarders to exclude at once")
	f.IntVar(&set.Life.HealthyFloor, "healthy-floor", set.Life.HealthyFloor,
		"smallest number of healthy forwarders to leave")
	return c
}

// recordLive is detect --live.
func recordLive(o *cli.Options, c *cobra.Command, dir string, last time.Duration) error {
	if last < time.Second {
		return program.BadUsage(fmt.Errorf("--last %s: want a second or more", last))
	}
	return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (recordedTrace, error) {
		r, err := recordSite(ctx, cl, dir, last, time.Now())
		if err != nil {
			return recordedTrace{}, fmt.Errorf("detect --live: %w", err)
		}
		return recordedTrace{dir, r.begin.UTC(), r.end.UTC(), len(r.forwarders), r.rows}, nil
	}, func(w io.Writer, t recordedTrace) error {
		_, err := fmt.Fprintf(w, "%s holds %d rows of %d forwarders, %s to %s; 'fairway detect %s' judges them\n",
			t.Dir, t.Rows, t.Forwarders,
			t.From.Format(time.RFC3339), t.To.Format(time.RFC3339), t.Dir)
		return err
	})
}

// recordedTrace is what was recorded.
type recordedTrace struct {
	Dir        string    `json:"dir"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Forwarders int       `json:"forwarders"`
	Rows       int       `json:"rows"`
}
