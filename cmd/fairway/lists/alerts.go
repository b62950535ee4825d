package lists

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newAlerts(o *cli.Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "alerts",
		Short: "Show who is called when something needs a person, and how delivery goes",
		Args:  cobra.NoArgs,
		RunE:  cli.Print(o, (*client.Client).Alerts, printAlerts),
	}
	c.AddCommand(&cobra.Command{
		Use:   "test",
		Short: "Send a test alert to every receiver",
		Args:  cobra.NoArgs,
		RunE: cli.Print(o, (*client.Client).TestAlerts, func(w io.Writer, a api.Alerts) error {
			_, err := fmt.Fprintf(w, "a test alert goes to %s; 'fairway alerts' shows who took it\n",
				anomaly.Counted(len(a.Receivers), "receiver"))
			return err
		}),
	})
	return c
}

func printAlerts(w io.Writer, a api.Alerts) error {
	if len(a.Receivers) == 0 {
		_, err := fmt.Fprintln(w, "nobody is called: no [[alert.receiver]] in the daemon's settings")
		return err
	}
	rows := make([][]string, 0, len(a.Receivers))
	for _, r := range a.Receivers {
		state := "ok"
		if r.Error != "" {
			state = "fails: " + r.Error
		}
		rows = append(rows, []string{r.Receiver, r.Kind, strconv.Itoa(r.Waiting), strconv.FormatUint(r.Sent, 10),
			cli.Stamp(r.LastSent), state})
	}
	return cli.PrintTable(w, []string{"RECEIVER", "KIND", "WAITING", "SENT", "LAST", "STATE"}, rows)
}
