package lists

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/console/chart"
	"fairway/console/screen/replay"
	"fairway/tsdb"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newOccupancy(o *cli.Options) *cobra.Command {
	var name string
	var names []string
	for _, s := range replay.CalendarSpans {
		names = append(names, s.Name)
	}
	c := &cobra.Command{
		Use:   "occupancy",
		Short: "Show how often forwarders were near their peak: minimum, average and maximum over them, by time",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			i := slices.Index(names, name)
			if i < 0 {
				return program.BadUsage(fmt.Errorf("--span %s: there are %s", name, strings.Join(names, ", ")))
			}
			span := replay.CalendarSpans[i]
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (api.OccupancyView, error) {
				return cl.Occupancy(ctx, span.Range, span.Bucket)
			}, printOccupancy)
		},
	}
	c.Flags().StringVar(&name, "span", "month",
		strings.Join(names, ", ")+": the last hour by minute, day by hour, 30 days by day")
	return c
}

func printOccupancy(w io.Writer, v api.OccupancyView) error {
	if len(v.Layer) == 0 {
		_, err := fmt.Fprintln(w, "no second is stored in this range yet; 'fairway doctor' says whether agents run")
		return err
	}
	if err := cli.PrintRows(w, []string{"FROM", "FORWARDERS", "MIN %", "AVG %", "MAX %", "IMBALANCE %"}, v.Layer,
		func(l *tsdb.LayerOccupancy) []string {
			return []string{time.UnixMilli(l.TimeMillis).UTC().Format(time.RFC3339), strconv.Itoa(l.Nodes),
				chart.Ratio(&l.Min), chart.Ratio(&l.Mean), chart.Ratio(&l.Max), chart.Ratio(&l.Imbalance)}
		}); err != nil {
		return err
	}
	if len(v.NoPeak) > 0 {
		_, err := fmt.Fprintf(w, "not counted, their peak is not known (peak_bytes_per_sec in fairwayd.toml): %s\n",
			anomaly.Counted(len(v.NoPeak), "forwarder"))
		return err
	}
	return nil
}
