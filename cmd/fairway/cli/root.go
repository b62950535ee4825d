// Package cli is what fairway's commands share: the flags of all of them, the daemon that they ask, and how they read
// files, print answers and end.
package cli

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/webui/api"
)

// Options are the flags that every command has.
type Options struct {
	Addr      string
	TokenFile string
	Site      string // a machine of the file of sites, in place of Addr
	JSON      bool
	AddrGiven func() bool // on the command line
}

// DefaultAddr is the daemon of this host.
const DefaultAddr = "unix:/run/fairway/fairwayd.sock"

// NewRoot makes the command line of the rooms, each of which adds its commands.
func NewRoot(rooms ...func(root *cobra.Command, o *Options)) *cobra.Command {
	o := &Options{}
	root := &cobra.Command{
		Use:   "fairway",
		Short: "Watch the I/O forwarding layer and move compute nodes between forwarders",
		Args:  cobra.NoArgs,
	}
	addr := cmp.Or(os.Getenv("FAIRWAY_ADDR"), DefaultAddr)
	f := root.PersistentFlags()
	f.StringVar(&o.Addr, "addr", addr,
		"the daemon: unix:/path or http(s)://host:port; a cluster's by commas (or FAIRWAY_ADDR)")
	f.StringVar(&o.TokenFile, "token-file", os.Getenv("FAIRWAY_TOKEN_FILE"),
		"file holding a bearer token (or FAIRWAY_TOKEN_FILE)")
	f.StringVar(&o.Site, "site", os.Getenv("FAIRWAY_SITE"),
		"a machine of 'fairway sites' instead of --addr (or FAIRWAY_SITE)")
	o.AddrGiven = func() bool { return f.Changed("addr") }
	f.BoolVar(&o.JSON, "json", false, "answer as JSON")
	for _, add := range rooms {
		add(root, o)
	}
	return program.Strict(root)
}

// Code is the exit code of a command's outcome.
func Code(err error) int {
	switch {
	case err == nil:
		return program.Done
	case errors.Is(err, api.ErrInvalid):
		return program.Usage
	case errors.Is(err, api.ErrNotAllowed):
		return program.NotAllowed
	case errors.Is(err, api.ErrNotFound):
		return program.NotFound
	case errors.Is(err, api.ErrChanged), errors.Is(err, api.ErrConflict):
		return program.Changed
	case errors.Is(err, api.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return program.Unreachable
	case errors.Is(err, api.ErrPartial):
		return program.Partly
	}
	return program.Code(err)
}

// Require makes flags of a command required.
func Require(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := c.MarkFlagRequired(name); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}
