package lists

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newNodes(o *cli.Options) *cobra.Command {
	var role, health string
	c := &cobra.Command{
		Use:   "nodes",
		Short: "List nodes with their newest second",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) ([]api.NodeRow, error) {
				return cl.Nodes(ctx, role, health)
			}, printNodes)
		},
	}
	c.Flags().StringVar(&role, "role", "forwarder", "compute, forwarder, storage, metadata or \"\" for all")
	c.Flags().StringVar(&health, "health", "",
		"only this state: ok, idle, suspect, slow, trial, drained, dedicated, silent")
	return c
}

func printNodes(w io.Writer, nodes []api.NodeRow) error {
	heads := []string{"NODE", "ROLE", "STATE", "FORWARDER", "READ MB/s", "WRITE MB/s", "META/s", "QUEUE", "LATE s"}
	const afterWrites = 6
	routers := slices.ContainsFunc(nodes, func(n api.NodeRow) bool {
		_, routes := n.Values["routed_bytes"]
		return routes
	})
	if routers {
		heads = slices.Insert(heads, afterWrites, "ROUTED MB/s")
	}
	used := slices.ContainsFunc(nodes, func(n api.NodeRow) bool { return n.Attributed != nil })
	if used {
		heads = append(heads, "MOST", "ATTRIBUTED %")
	}
	rows := make([][]string, 0, len(nodes))
	for _, n := range nodes {
		lateness := "-"
		if n.Way != nil {
			lateness = strconv.FormatFloat(n.Way.LateSeconds, 'f', 1, 64)
		}
		state := string(n.State)
		if n.Role == topology.Forwarder {
			state = n.State.Text(nil) // as both faces write it
		}
		row := []string{string(n.ID), n.Role.String(), state, forwarderOf(n),
			rate(n.Values, "read_bytes", 1e6), rate(n.Values, "write_bytes", 1e6), rate(n.Values, "meta_ops", 1),
			rate(n.Values, "queue_len", 1), lateness}
		if routers {
			row = slices.Insert(row, afterWrites, rate(n.Values, "routed_bytes", 1e6))
		}
		if used {
			most := "-"
			if n.Most != nil {
				most = n.Most.Who
			}
			row = append(row, most, chart.Ratio(n.Attributed))
		}
		rows = append(rows, row)
	}
	return cli.PrintTable(w, heads, rows)
}

func forwarderOf(n api.NodeRow) string {
	if n.Lost {
		return fmt.Sprintf("none (%s lost)", n.Forwarder)
	}
	if len(n.Shares) > 0 {
		parts := make([]string, len(n.Shares))
		for i, s := range n.Shares {
			parts[i] = fmt.Sprintf("%s %.0f%%", s.Forwarder, 100*s.Part)
		}
		if n.SharesAssumed {
			parts[0] = "about " + parts[0]
		}
		return strings.Join(parts, " ")
	}
	return chart.OrMissing(string(n.Forwarder))
}

// rate is a value in another unit, "-" where it is not known.
func rate(values map[string]float64, name string, unit float64) string {
	v, ok := values[name]
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(v/unit, 'f', 1, 64)
}

func printNode(w io.Writer, n api.NodeView) error {
	fmt.Fprintf(w, "%s  %s  %s  last seen %s\n", n.ID, n.Role, n.State,
		cli.Stamp(n.LastSeen))
	switch {
	case n.Lost:
		fmt.Fprintf(w, "no forwarder: %s does not answer its mount, operations wait (mapping generation %d)\n",
			n.Forwarder, n.Generation)
	case n.Forwarder != "":
		fmt.Fprintf(w, "uses %s (mapping generation %d)\n", n.Forwarder, n.Generation)
	}
	if n.Way != nil { // its agent is connected
		fmt.Fprintf(w, "newest second %.1f s after its end\n", n.Way.LateSeconds)
	}
	for _, src := range n.Sources {
		if src.Err != "" {
			fmt.Fprintf(w, "source %s fails (%s since the agent's start): %s\n", src.Name,
				anomaly.Counted(int64(src.Failures), "time"), src.Err)
		}
	}
	rows := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(n.Values)) {
		v := n.Values[name]
		m, _ := collector.ParseMetric(name)
		rows = append(rows, []string{name, strings.TrimSpace(chart.Metric(m, &v) + " " + m.Info().Unit.Info().Shown)})
	}
	if n.Uses != nil {
		if err := printUses(w, n.Uses); err != nil || len(rows) == 0 {
			return err
		}
		fmt.Fprintln(w)
	}
	return cli.PrintTable(w, []string{"METRIC", "VALUE"}, rows)
}

// printUses lists who works at a server, and what nobody is known for.
func printUses(w io.Writer, u *api.Uses) error {
	if u.Unknown != "" {
		fmt.Fprintf(w, "who uses it: %s\n", u.Unknown)
	}
	if u.Note != "" {
		fmt.Fprintln(w, u.Note)
	}
	if len(u.Rows) == 0 {
		return nil
	}
	return cli.PrintRows(w, []string{"WHO", "IS", "READ MB/s", "WRITE MB/s", "META/s", "BYTES %", "META %"}, u.Rows,
		func(r *api.Use) []string {
			return []string{r.Who, cmp.Or(r.Why, r.Kind), chart.Mega(&r.ReadBytesPerSec),
				chart.Mega(&r.WriteBytesPerSec), chart.Count(&r.MetaOpsPerSec), chart.Ratio(r.BytesPart),
				chart.Ratio(r.MetaPart)}
		})
}
