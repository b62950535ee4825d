package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/remap/journal"
)

// defaultJournal is where fairwayd keeps it unless state_dir says otherwise.
const defaultJournal = "/var/lib/fairway/journal"

func newAuditVerify(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [JOURNAL]",
		Short: "Check every record, checksum and link of the journal, without the daemon",
		Long: "Check every record, checksum and link of the journal (default " + defaultJournal +
			"), without the daemon and without changing it.\n" +
			"The last hash printed stands for everything before it: kept elsewhere, it shows later whether anything " +
			"was changed.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := defaultJournal
			if len(args) == 1 {
				path = args[0]
			}
			sum, err := journal.Verify(path)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(c.OutOrStdout(), sum)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is whole: %d records from %s to %s, last hash %s\n", path,
				sum.Records, stamp(sum.First), stamp(sum.Last), sum.LastHash)
			if err == nil && sum.TornBytes > 0 {
				_, err = fmt.Fprintf(c.OutOrStdout(),
					"its end, %d bytes, was not finished and never answered (%s); the daemon moves it to a file "+
						"beside the journal at its next start\n", sum.TornBytes, sum.Torn)
			}
			return err
		},
	}
}
