// Command fairway is the operator's tool: the terminal console and the commands that do the same
// from a script.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/fairway/decisions"
	"fairway/cmd/fairway/hook"
	"fairway/cmd/fairway/lists"
	"fairway/cmd/fairway/logs"
	"fairway/cmd/fairway/policies"
	"fairway/cmd/fairway/site"
	"fairway/cmd/fairway/terminal"
	"fairway/cmd/program"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { program.Main(run) }

// run is main without the process.
func run(ctx context.Context, args []string) int {
	root := newRootOn(os.Stdout, os.Stderr)
	err := program.Run(ctx, root, args)
	if hook.Is(root, args) {
		return program.Done // even where its own command line is wrong: Slurm would requeue the job
	}
	return cli.Code(err)
}

// newRootOn makes the commands, which print to out and say what failed to errs.
func newRootOn(out, errs io.Writer) *cobra.Command {
	root := newRoot()
	root.SetOut(out)
	root.SetErr(errs)
	return root
}

func newRoot() *cobra.Command {
	return cli.NewRoot(under("Look at it", terminal.Add), under("Ask the daemon", lists.Add),
		under("Decide", decisions.Add), under("Check a site, or look at servers without a daemon", site.Add),
		under("Explain jobs by their logs", logs.Add), under("Work out what a policy would do", policies.Add),
		under("In the batch system's hooks and in jobs", hook.Add), addVersion)
}

// under lists the commands of a room under a heading of the help.
func under(title string, add func(*cobra.Command, *cli.Options)) func(*cobra.Command, *cli.Options) {
	return func(root *cobra.Command, o *cli.Options) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		add(root, o)
		for _, c := range root.Commands() {
			c.GroupID = cmp.Or(c.GroupID, title)
		}
	}
}

func addVersion(root *cobra.Command, o *cli.Options) {
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "fairway %s (%s)\n", version, runtime.Version())
			return err
		},
	})
}
