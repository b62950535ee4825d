package policies

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/node/tbf"
	"fairway/remap/policy/share"
)

// maxTableBytes bounds a table, bytes: a million jobs.
const maxTableBytes = 512 << 20

// newShares is `fairway shares`: what a sharing policy gives each job of a table, with no daemon.
func newShares() *cobra.Command {
	var policy, idle string
	var chart, here bool
	var lustre tbf.Server
	c := &cobra.Command{
		Use:   "shares --policy POLICY TABLE.json",
		Short: "Work out each job's share of a forwarder under a sharing policy",
		Long: "The policy-driven shares of ThemisIO (Karrels et al., Fine-grained Policy-driven I/O Sharing for " +
			"Burst\n" +
			"Buffers). Reads {\"jobs\":[{\"job\",\"user\",\"group\",\"size\",\"priority\",\"active\"," +
			"\"demand\"}],\"capacity\",\n" +
			"\"servers\"} (size in compute nodes; demand, and capacity of a server, in bytes/s) and prints shares, 0 " +
			"to 1,\n" +
			"and segments of [0,1]; with demands the allocation under opportunity fairness; with servers\n" +
			"({\"S1\":[\"J1\",\"J2\"]}) the local and the global shares and whether they can be reached.\n" +
			"Policies: job-fair, user-fair, size-fair, priority-fair, user-then-job-fair, group-user-size-fair, ...\n" +
			"\"-\" reads standard input.",
		Example: `  echo '{"jobs":[{"job":"1","size":4},{"job":"2","size":1}]}' | fairway shares --policy size-fair -`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := share.ParsePolicy(policy)
			if err != nil {
				return program.BadUsage(err)
			}
			if idle != string(share.Inside) && idle != string(share.Flat) {
				return program.BadUsage(fmt.Errorf("--idle %q is neither inside nor flat", idle))
			}
			if f := cmd.Flags(); f.Changed("tbf") && !(lustre.RPCsPerSec > 0 && lustre.RPCsPerSec <= maxRPCs) {
				return program.BadUsage(fmt.Errorf("--tbf %g: want what a server does, above 0 to %g RPC/s",
					lustre.RPCsPerSec, maxRPCs))
			} else if lustre.Partitions < 1 {
				return program.BadUsage(fmt.Errorf("--tbf-cpts %d: a server has at least one CPU partition",
					lustre.Partitions))
			} else if !f.Changed("tbf") && (here || f.Changed("tbf-cpts")) {
				return program.BadUsage(errors.New("--tbf-cpts and --tbf-here belong to --tbf"))
			}
			var table share.Table
			err = readCase(cmd, args[0], maxTableBytes, &table, func() error { return table.Check(p) })
			if err != nil {
				return err
			}
			answer := table.Answer(p, share.Idle(idle))
			if lustre.RPCsPerSec > 0 {
				if here {
					return applyTBF(cmd, lustre, answer)
				}
				return printTBF(cmd.OutOrStdout(), lustre, answer)
			}
			if chart {
				return drawShares(cmd.OutOrStdout(), answer)
			}
			return cli.PrintJSON(cmd.OutOrStdout(), answer)
		},
	}
	c.Flags().StringVar(&policy, "policy", "", "the sharing policy")
	c.Flags().StringVar(&idle, "idle", string(share.Inside),
		"who uses idle shares: inside (the same user and group first) or flat (all by their shares)")
	c.Flags().Float64Var(&lustre.RPCsPerSec, "tbf", 0,
		"print Lustre NRS-TBF rules instead, for servers that do so many RPC/s")
	c.Flags().IntVar(&lustre.Partitions, "tbf-cpts", 1, "CPU partitions of those servers")
	c.Flags().BoolVar(&here, "tbf-here", false, "with --tbf: run what is missing on this server, by lctl, and print it")
	c.Flags().BoolVar(&chart, "chart", false, "draw bars instead of JSON")
	cli.Require(c, "policy")
	return c
}

// maxRPCs bounds what a server is assumed to do, RPC/s.
const maxRPCs = 1e9

// printTBF writes the commands that give a server without rules the answer's shares, for a person to
// read or a shell on the server to run.
func printTBF(w io.Writer, s tbf.Server, a share.Answer) error {
	rules, err := s.Rates(a.Shares)
	if err != nil {
		return program.BadUsage(err)
	}
	return printCommands(w, append([][]string{s.Enable()}, s.Commands(nil, rules)...))
}

// applyTBF makes the answer true on the server that this runs on, and prints the commands that it took.
func applyTBF(cmd *cobra.Command, s tbf.Server, a share.Answer) error {
	if _, err := s.Rates(a.Shares); err != nil {
		return program.BadUsage(err)
	}
	r := tbf.Runner{Server: s}
	done, err := r.Apply(cmd.Context(), a.Shares)
	return errors.Join(printCommands(cmd.OutOrStdout(), done), err)
}

func printCommands(w io.Writer, commands [][]string) error {
	for _, argv := range commands {
		// no argument holds a quote
		if _, err := fmt.Fprintf(w, "%s '%s'\n", strings.Join(argv[:2], " "), argv[2]); err != nil {
			return err
		}
	}
	return nil
}
