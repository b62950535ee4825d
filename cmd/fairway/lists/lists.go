// Package lists prints what the daemon knows: of nodes, jobs, the layer's occupancy and other sites, who is called and
// who is signed in.
package lists

import (
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/webui/client"
)

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) {
	root.AddCommand(newNodes(o), cli.NewNamed(o, "node NAME",
		"Show everything known of one node's newest second, or who uses a storage target", (*client.Client).Node,
		printNode), cli.NewList(o, "jobs", "List the running jobs and those that ended last", (*client.Client).Jobs,
		printJobs), newJob(o), newOccupancy(o), newReport(o), newSites(o),
		newAlerts(o), newSessions(o), newSignInLink(o))
}
