// Command fairway is the operator's tool: the terminal console and the commands that do the same
// from a script.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/console/screen"
	"fairway/webui/api"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { program.Main(run) }

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args []string) int {
	root := newRootOn(os.Stdout, os.Stderr)
	err := program.Run(ctx, root, args)
	if isHook(root, args) {
		return program.Done // even where its own command line is wrong: Slurm would requeue the job
	}
	return exitCode(err)
}

func exitCode(err error) int {
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

// options are the flags that every command has.
type options struct {
	addr      string
	tokenFile string
	site      string
	addrGiven func() bool // on the command line
	json      bool
}

// newRootOn makes the commands, which print to out and say what failed to errs.
func newRootOn(out, errs io.Writer) *cobra.Command {
	root := newRoot()
	root.SetOut(&plain{to: out})
	root.SetErr(&plain{to: errs})
	return root
}

// defaultAddr is the daemon of this host.
const defaultAddr = "unix:/run/fairway/fairwayd.sock"

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "fairway",
		Short: "Watch the I/O forwarding layer and move compute nodes between forwarders",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.show(c, screen.Address{Page: "overview"}) },
	}
	addr := cmp.Or(os.Getenv("FAIRWAY_ADDR"), defaultAddr)
	f := root.PersistentFlags()
	f.StringVar(&o.addr, "addr", addr,
		"the daemon: unix:/path or http(s)://host:port; a cluster's by commas (or FAIRWAY_ADDR)")
	f.StringVar(&o.tokenFile, "token-file", os.Getenv("FAIRWAY_TOKEN_FILE"),
		"file holding a bearer token (or FAIRWAY_TOKEN_FILE)")
	f.StringVar(&o.site, "site", os.Getenv("FAIRWAY_SITE"),
		"a machine of 'fairway sites' instead of --addr (or FAIRWAY_SITE)")
	o.addrGiven = func() bool { return f.Changed("addr") }
	f.BoolVar(&o.json, "json", false, "answer as JSON")
	root.AddCommand(
		newTop(o),
		newOpen(o),
		newTour(o),
		newReplay(o),
		newNodes(o),
		newNode(o),
		newJobs(o),
		newJob(o),
		newPlans(o),
		newPlan(o),
		newStanding(o),
		newRules(o),
		newAlerts(o),
		newRemap(o),
		newLimit(o),
		newFindings(o),
		newDrain(o),
		newExclusions(o),
		newReturn(o),
		newCanary(o),
		newAudit(o),
		newUndo(o),
		newReport(o),
		newOccupancy(o),
		newSignInLink(o),
		newSessions(o),
		newSites(o),
		newAccept(o),
		newDoctor(o),
		newHook(o),
		newKeys(o),
		newVersion(o),
		newBacktest(o),
		newDecide(),
		newFiledomain(),
		newRootcause(),
		newWhy(o),
		newQuery(o),
		newImport(o),
		newPeriodic(o),
		newWindow(o),
		newShares(),
		newRecord(),
		newLustre(),
		newLwfs(),
		newDarshan(),
		newSacct(),
		newLMT(),
		newDetect(o),
		newLook(o),
	)
	return program.Strict(root)
}

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.json {
				return printJSON(c.OutOrStdout(), map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "fairway %s (%s)\n", version, runtime.Version())
			return err
		},
	}
}
