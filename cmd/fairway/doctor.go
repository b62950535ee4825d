package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/webui/api"
)

// errUnwell is what the doctor's exit code 1 stands for.
var errUnwell = errors.New("something needs attention, see above")

func newDoctor(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and say what to fix: agents, clocks, sources, mapping, driver",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := o.connect()
			if err != nil {
				return err
			}
			defer cl.Close()
			checks, err := cl.Checks(c.Context())
			switch {
			case errors.Is(err, api.ErrUnreachable):
				return fmt.Errorf(
					"%w\n  is fairwayd running? is --addr (now %s) its address, and may you open the socket?", err,
					o.addr)
			case err != nil:
				return err
			}
			daemon := api.Check{Name: "daemon", Level: api.CheckOK, Text: "answers at " + o.addr}
			checks = append([]api.Check{daemon}, checks...)
			if o.json {
				err = printJSON(c.OutOrStdout(), checks)
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

func printChecks(w io.Writer, checks []api.Check) error {
	mark := map[api.CheckLevel]string{api.CheckOK: "ok", api.CheckWarned: "!",
		api.CheckFailed: "FAILED", api.CheckUnknown: "?"}
	for _, c := range checks {
		if _, err := fmt.Fprintf(w, "%-6s  %-8s  %s\n", mark[c.Level], c.Name, c.Text); err != nil {
			return err
		}
		if c.Fix != "" {
			if _, err := fmt.Fprintf(w, "%18s-> %s\n", "", c.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
