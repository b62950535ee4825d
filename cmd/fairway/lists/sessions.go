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
	c := cli.NewList(o, "sessions", "List or end the browsers that are signed in", (*client.Client).Sessions,
		printSessions)
	c.Long = "List the browsers that are signed in: an admin sees all of them, everybody else their own.\n" +
		"A person has a few at a time; signing in once more ends the oldest."
	end := cli.NewNamed(o, "end ID", "End a session, and the live feeds that it has open", (*client.Client).EndSession,
		printSessions)
	end.Example = "  fairway sessions end 1f0c2a9be4d7"
	c.AddCommand(end)
	return c
}

func printSessions(w io.Writer, all []api.OpenSession) error {
	return cli.PrintRows(w, []string{"ID", "NAME", "ROLE", "BY", "FROM", "BEGUN", "UNTIL"}, all,
		func(s *api.OpenSession) []string {
			return []string{s.ID, s.Name, string(s.Role), s.By, s.From, cli.Stamp(s.Begun), cli.Stamp(s.Expires)}
		})
}

func newSignInLink(o *cli.Options) *cobra.Command {
	c := cli.NewList(o, "sign-in-link", "Print an address that signs you in at the browser, once",
		(*client.Client).SignInLink, func(w io.Writer, l api.SignInLink) error {
			_, err := fmt.Fprintf(w, "%s\nsigns in %s (%s), once, until %s\n", l.Address, l.Name, l.Role,
				cli.Stamp(l.Until))
			return err
		})
	c.Long = "Print an address that signs its first visitor in at the browser as you, with the role that you have " +
		"on the\n" +
		"daemon's unix socket. It works once and only there; the next link ends the one before."
	return c
}
