package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/webui/client"
)

// choose puts the address and the token of --site in place.
func (o *Options) choose() error {
	if o.Site == "" {
		return nil
	}
	if o.AddrGiven() {
		return program.BadUsage(errors.New("--site and --addr both name a daemon: leave one out"))
	}
	path := program.SitesPath()
	s, err := program.ReadSites(path)
	if err != nil {
		return err
	}
	e, ok := s[o.Site]
	if !ok {
		return program.BadUsage(fmt.Errorf("%s has no site %q; it has %s", path, o.Site,
			strings.Join(slices.Sorted(maps.Keys(s)), ", ")))
	}
	o.Addr, o.Site = e.Addr, ""
	if e.TokenFile != "" {
		o.TokenFile = e.TokenFile
	}
	return nil
}

// Connect makes the client of the daemon that the flags name.
func (o *Options) Connect() (*client.Client, error) {
	if err := o.choose(); err != nil {
		return nil, err
	}
	token, err := client.ReadToken(o.TokenFile)
	if err != nil {
		return nil, program.BadUsage(err)
	}
	return client.New(o.Addr, token)
}

// Ask makes the client of a command, which says first on its error output that the daemon itself is late.
func (o *Options) Ask(c *cobra.Command) (*client.Client, error) {
	cl, err := o.Connect()
	if err != nil {
		return nil, err
	}
	var once sync.Once
	cl.WhenLate = func(seconds string) {
		once.Do(func() {
			fmt.Fprintf(c.ErrOrStderr(),
				"fairway's own daemon was %s s late: what looks slow or silent may be only that\n", seconds)
		})
	}
	return cl, nil
}

// NewList makes a command without arguments that prints the answer to one question.
func NewList[T any](o *Options, use, short string, ask func(*client.Client, context.Context) (T, error),
	write func(io.Writer, T) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return Show(o, c, func(ctx context.Context, cl *client.Client) (T, error) { return ask(cl, ctx) }, write)
	}}
}

// NewNamed makes a command that prints the answer about what its argument names.
func NewNamed[K ~string, T any](o *Options, use, short string,
	ask func(*client.Client, context.Context, K) (T, error), write func(io.Writer, T) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return Show(o, c, func(ctx context.Context, cl *client.Client) (T, error) {
				return ask(cl, ctx, K(args[0]))
			}, write)
		}}
}

// Show asks the daemon and prints its answer: as JSON where that is wanted, else by write.
func Show[T any](o *Options, c *cobra.Command, ask func(context.Context, *client.Client) (T, error),
	write func(io.Writer, T) error) error {
	cl, err := o.Ask(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := ask(c.Context(), cl)
	if err != nil {
		return err
	}
	if o.JSON {
		return PrintJSON(c.OutOrStdout(), v)
	}
	return write(c.OutOrStdout(), v)
}
