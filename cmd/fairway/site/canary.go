package site

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/console/chart"
	"fairway/webui/client"
)

func newCanary(o *cli.Options) *cobra.Command {
	c := cli.NewNamed(o, "canary FORWARDER",
		"Send one small write, read and stat through a forwarder, and compare what they take", (*client.Client).Canary,
		printCanary)
	c.Long = "Sends one canary: a small write, a read of it and a stat through the forwarder, as the detectors do\n" +
		"by themselves. At most one in 10 s (detector.suspect_probe_every), never two at once on a forwarder.\n" +
		"It needs the role operator and stands in the audit with its result. The times are beside the median\n" +
		"of the newest canaries through the forwarders that nobody suspects."
	return c
}

func printCanary(w io.Writer, c anomaly.Canary) error {
	rows := [][]string{}
	for _, one := range []struct {
		name        string
		took, peers *float64
	}{{"write", c.Took.Write, c.Peers.Write}, {"read", c.Took.Read, c.Peers.Read},
		{"stat", c.Took.Stat, c.Peers.Stat}} {
		rows = append(rows, []string{one.name, chart.Millis(one.took), chart.Millis(one.peers)})
	}
	if err := cli.PrintTable(w, []string{"CANARY", string(c.Forwarder) + " ms", "PEERS ms"}, rows); err != nil {
		return err
	}
	if c.Error != "" {
		_, err := fmt.Fprintln(w, "failed:", c.Error)
		return err
	}
	_, err := fmt.Fprintf(w, "%s, peers: %s\n", c.At.Local().Format("15:04:05"),
		anomaly.Counted(c.PeersOf, "forwarder"))
	return err
}
