// Command fairway is the operator's tool: the terminal console and the commands that do the same
// from a script.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fairway/console"
)

// The exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotAllowed  = 4
	exitNotFound    = 5
	exitChanged     = 6
	exitUnreachable = 7
	exitPartly      = 8
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairway:", err)
	}
	if isHook(root, args) {
		return exitDone // even where its own command line is wrong: Slurm would requeue the job
	}
	return exitCode(err)
}

// usageError marks a command line that cannot be understood.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.Is(err, console.ErrInvalid), strings.HasPrefix(err.Error(), "required flag"):
		// cobra gives a missing flag no type of its own.
		return exitUsage
	case errors.Is(err, console.ErrNotAllowed):
		return exitNotAllowed
	case errors.Is(err, console.ErrNotFound):
		return exitNotFound
	case errors.Is(err, console.ErrChanged), errors.Is(err, console.ErrConflict):
		return exitChanged
	case errors.Is(err, console.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return exitUnreachable
	case errors.Is(err, console.ErrPartial):
		return exitPartly
	}
	return exitFailed
}

// options are the flags that every command has.
type options struct {
	addr      string
	tokenFile string
	json      bool
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "fairway",
		Short:         "Watch the I/O forwarding layer and move compute nodes between forwarders",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return o.show(c, console.Address{Page: "overview"}) },
	}
	addr := os.Getenv("FAIRWAY_ADDR")
	if addr == "" {
		addr = "unix:/run/fairway/fairwayd.sock"
	}
	f := root.PersistentFlags()
	f.StringVar(&o.addr, "addr", addr, "the daemon: unix:/path or http(s)://host:port (or FAIRWAY_ADDR)")
	f.StringVar(&o.tokenFile, "token-file", os.Getenv("FAIRWAY_TOKEN_FILE"), "file holding a bearer token (or FAIRWAY_TOKEN_FILE)")
	f.BoolVar(&o.json, "json", false, "answer as JSON")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())}
	})
	root.AddCommand(
		newTop(o),
		newOpen(o),
		newReplay(o),
		newNodes(o),
		newNode(o),
		newJobs(o),
		newJob(o),
		newPlans(o),
		newPlan(o),
		newStanding(o),
		newRemap(o),
		newFindings(o),
		newExclude(o),
		newReturn(o),
		newAudit(o),
		newSignInLink(o),
		newDoctor(o),
		newHook(o),
		newVersion(o),
		newBacktest(o),
		newDecide(),
		newFiledomain(),
		newRootcause(),
		newWhy(o),
		newQuery(o),
		newImport(o),
		newPeriodic(o),
		newShares(),
		newLustre(),
		newLwfs(),
		newDarshan(),
		newSacct(),
		newLMT(),
		newDetect(o),
	)
	markUsage(root)
	return root
}

// markUsage makes wrong arguments of every command exit with the code for usage.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}
