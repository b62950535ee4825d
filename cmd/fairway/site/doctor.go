package site

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/api"
)

// errUnwell is what the doctor's exit code 1 stands for.
var errUnwell = errors.New("something needs attention, see above")

func newDoctor(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and say what to fix: agents, clocks, sources, mapping, driver",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := o.Ask(c)
			if err != nil {
				return err
			}
			defer cl.Close()
			checks, err := cl.Checks(c.Context())
			switch {
			case errors.Is(err, api.ErrUnreachable):
				return fmt.Errorf("%w\nnext: %s", err, notThere(o.Addr))
			case err != nil:
				return err
			}
			daemon := api.Check{Name: "daemon", Level: api.CheckOK, Text: "answers at " + o.Addr}
			checks = append([]api.Check{daemon}, checks...)
			if o.JSON {
				err = cli.PrintJSON(c.OutOrStdout(), checks)
			} else {
				err = printChecks(c.OutOrStdout(), checks)
			}
			for _, check := range checks {
				if err == nil && check.Level == api.CheckFailed {
					err = errUnwell
				}
			}
			return err
		},
	}
}

// settingsFile is where the daemon of this host has its settings.
const settingsFile = "/etc/fairway/fairwayd.toml"

// notThere is the next step where no daemon answers.
func notThere(addr string) string {
	const check = "is --addr (now %s) its address, and may you open the socket?"
	if _, local := strings.CutPrefix(addr, "unix:"); local {
		if _, err := os.Stat(settingsFile); errors.Is(err, fs.ErrNotExist) {
			return "fairwayd init, which writes the settings of a new site; if fairwayd runs elsewhere: " +
				fmt.Sprintf(check, addr)
		}
		return "systemctl enable --now fairwayd; if it runs: " + fmt.Sprintf(check, addr)
	}
	return "start fairwayd there; if it runs: " + fmt.Sprintf(check, addr)
}

// nextStep is what to do first: mend what failed, then what is warned of.
func nextStep(checks []api.Check) string {
	for _, level := range []api.CheckLevel{api.CheckFailed, api.CheckWarned} {
		for _, c := range checks {
			if c.Level == level && c.Fix != "" {
				return c.Fix
			}
		}
	}
	return "nothing: all is well"
}

func printChecks(w io.Writer, checks []api.Check) error {
	mark := map[api.CheckLevel]string{api.CheckOK: "ok", api.CheckWarned: "!",
		api.CheckFailed: "FAILED", api.CheckUnknown: "?"}
	for _, c := range checks {
		if _, err := fmt.Fprintf(w, "%-6s  %-10s  %s\n", mark[c.Level], c.Name, c.Text); err != nil {
			return err
		}
		if c.Fix != "" {
			if _, err := fmt.Fprintf(w, "%20s-> %s\n", "", c.Fix); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "next: %s\n", nextStep(checks))
	return err
}
