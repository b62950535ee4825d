// Package logs explains jobs by logs: prints what is understood of the files of Darshan, Slurm, Lustre and LWFS, and
// asks the archive of them.
package logs

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newDarshan(), newSacct(), newLMT(), newLustre(), newLwfs(), newRootcause(), newWhy(o), newQuery(o),
		newImport(o))
}
