package policies

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap/policy/filedomain"
)

// newFiledomain is `fairway filedomain`: how a collective MPI-IO region is divided and what its locks
// cost, from a case file, with no daemon.
func newFiledomain() *cobra.Command {
	return &cobra.Command{
		Use:   "filedomain CASE.json",
		Short: "Divide a collective MPI-IO region among aggregators and advise hints",
		Long: "The file domain methods of Northwestern's Scalable I/O Optimizations for Peta-scale Systems.\n" +
			"Reads {\"start\",\"end\",\"stripe_size\",\"servers\",\"aggregators\",\"method\"} (bytes, end exclusive) " +
			"and\n" +
			"prints each aggregator's requests, lock conflicts for each server, lock requests and advised hints.\n" +
			"Methods: even, aligned, stripe-size, static-cyclic, group-cyclic, transpose. \"-\" reads standard input.",
		Example: "  echo '{\"start\":0,\"end\":1073741824,\"stripe_size\":1048576,\"servers\":8,\"aggregators\":16," +
			"\"method\":\"group-cyclic\"}' |\n" +
			`    fairway filedomain -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c filedomain.Case
			if err := readCase(cmd, args[0], cli.MaxFileBytes, &c, func() error { return c.Check() }); err != nil {
				return err
			}
			return json.NewEncoder(program.Raw(cmd.OutOrStdout())).Encode(struct {
				filedomain.Answer
				Advice filedomain.Advice `json:"advice"`
			}{filedomain.Divide(c), filedomain.Advise(c)})
		},
	}
}
