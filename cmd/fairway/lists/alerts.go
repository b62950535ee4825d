package lists

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/remap/alert"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newAlerts(o *cli.Options) *cobra.Command {
	c := cli.NewList(o, "alerts", "Show who is called when something needs a person, and how delivery goes",
		(*client.Client).Alerts, printAlerts)
	c.AddCommand(cli.NewList(o, "test", "Send a test alert to every receiver", (*client.Client).TestAlerts,
		func(w io.Writer, a api.Alerts) error {
			_, err := fmt.Fprintf(w, "a test alert goes to %s; 'fairway alerts' shows who took it\n",
				anomaly.Counted(len(a.Receivers), "receiver"))
			return err
		}))
	return c
}

func printAlerts(w io.Writer, a api.Alerts) error {
	if len(a.Receivers) == 0 {
		_, err := fmt.Fprintln(w, "nobody is called: no [[alert.receiver]] in the daemon's settings")
		return err
	}
	return cli.PrintRows(w, []string{"RECEIVER", "KIND", "WAITING", "SENT", "LAST", "STATE"}, a.Receivers,
		func(r *alert.Status) []string {
			state := "ok"
			if r.Error != "" {
				state = "fails: " + r.Error
			}
			return []string{r.Receiver, r.Kind, strconv.Itoa(r.Waiting), strconv.FormatUint(r.Sent, 10),
				cli.Stamp(r.LastSent), state}
		})
}
