// Package lists prints what the daemon knows: of nodes, jobs, the layer's occupancy and other sites, who is called and
// who is signed in.
package lists

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newNodes(o), newNode(o), newJobs(o), newJob(o), newOccupancy(o), newReport(o), newSites(o),
		newAlerts(o), newSessions(o), newSignInLink(o))
}
