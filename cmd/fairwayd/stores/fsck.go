package stores

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/tsdb/engine"
)

// Fsck is fairwayd fsck.
func Fsck(path *string) *cobra.Command {
	var repair, asJSON bool
	cmd := &cobra.Command{
		Use:   "fsck [DIR]",
		Short: "Read every byte of the store, say what is damaged, and salvage the rest",
		Long: "Checks the configured store, or the one in DIR. No daemon may have it open. With --repair, damaged " +
			"block files are\n" +
			"written again with everything in them that is intact; the old file stays beside it as FILE.damaged.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			} else {
				conf, err := config.File.Load(*path)
				if err != nil {
					return err
				}
				dir = filepath.Join(conf.StateDir, "store")
			}
			rep, err := engine.Check(dir, repair)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if asJSON {
				if err := json.NewEncoder(program.Raw(out)).Encode(rep); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(out, "%s: %d nodes, %d records in %d log segments, %d columns in %d blocks of %d files\n",
					dir, rep.Nodes, rep.LogRecords, rep.LogSegments, rep.Columns, rep.Blocks, rep.BlockFiles)
				for _, d := range rep.Damages {
					fmt.Fprintln(out, d)
				}
				for _, f := range rep.Repaired {
					fmt.Fprintf(out, "repaired: %s\n", f)
				}
			}
			if len(rep.Damages) > 0 && len(rep.Repaired) == 0 {
				return fmt.Errorf("fsck: %d places are damaged", len(rep.Damages))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "write damaged block files again with what is intact")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}
