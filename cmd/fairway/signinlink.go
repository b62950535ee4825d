package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/webui/api"
	"fairway/webui/client"
)

func newSignInLink(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "sign-in-link",
		Short: "Print an address that signs you in at the browser, once",
		Long: "Print an address that signs its first visitor in at the browser as you, with the role that you have " +
			"on the\n" +
			"daemon's unix socket. It works once and only there; the next link ends the one before.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(o, c, func(ctx context.Context, cl *client.Client) (api.SignInLink,
				error) {
				return cl.SignInLink(ctx)
			},
				func(w io.Writer, l api.SignInLink) error {
					_, err := fmt.Fprintf(w, "%s\nsigns in %s (%s), once, until %s\n", l.Address, l.Name, l.Role,
						stamp(l.Until))
					return err
				})
		},
	}
}
