package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"fairway/webui/client"
)

// connect makes the client of the daemon that the flags name.
func (o *options) connect() (*client.Client, error) {
	if err := o.choose(); err != nil {
		return nil, err
	}
	token, err := client.ReadToken(o.tokenFile)
	if err != nil {
		return nil, err
	}
	return client.New(o.addr, token)
}

// ask makes the client of a command, which says first on its error output that the daemon itself is late.
func (o *options) ask(c *cobra.Command) (*client.Client, error) {
	cl, err := o.connect()
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

// show asks the daemon and prints its answer: as JSON where that is wanted, else by write.
func show[T any](o *options, c *cobra.Command, ask func(context.Context, *client.Client) (T, error),
	write func(io.Writer, T) error) error {
	cl, err := o.ask(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := ask(c.Context(), cl)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(c.OutOrStdout(), v)
	}
	return write(c.OutOrStdout(), v)
}
