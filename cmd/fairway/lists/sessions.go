package lists

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/api"
	"fairway/webui/client"
)

func newSessions(o *cli.Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List or end the browsers that are signed in",
		Long: "List the browsers that are signed in: an admin sees all of them, everybody else their own.\n" +
			"A person has a few at a time; signing in once more ends the oldest.",
		Args: cobra.NoArgs,
		RunE: cli.Print(o, (*client.Client).Sessions, printSessions),
	}
	c.AddCommand(&cobra.Command{
		Use:     "end ID",
		Short:   "End a session, and the live feeds that it has open",
		Example: "  fairway sessions end 1f0c2a9be4d7",
		Args:    cobra.ExactArgs(1),
		RunE:    cli.PrintNamed(o, (*client.Client).EndSession, printSessions),
	})
	return c
}

func printSessions(w io.Writer, all []api.OpenSession) error {
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{s.ID, s.Name, string(s.Role), s.By, s.From, cli.Stamp(s.Begun),
			cli.Stamp(s.Expires)})
	}
	return cli.PrintTable(w, []string{"ID", "NAME", "ROLE", "BY", "FROM", "BEGUN", "UNTIL"}, rows)
}

func newSignInLink(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "sign-in-link",
		Short: "Print an address that signs you in at the browser, once",
		Long: "Print an address that signs its first visitor in at the browser as you, with the role that you have " +
			"on the\n" +
			"daemon's unix socket. It works once and only there; the next link ends the one before.",
		Args: cobra.NoArgs,
		RunE: cli.Print(o, (*client.Client).SignInLink, func(w io.Writer, l api.SignInLink) error {
			_, err := fmt.Fprintf(w, "%s\nsigns in %s (%s), once, until %s\n", l.Address, l.Name, l.Role,
				cli.Stamp(l.Until))
			return err
		}),
	}
}
