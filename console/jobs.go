package console

import (
	"fmt"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// JobRow is a job in a list. An ended one has no nodes any more, only their number.
type JobRow struct {
	remap.Job
	NodeCount int       `json:"node_count"`
	End       time.Time `json:"end,omitzero"`
}

// JobView is one job: where its nodes are, what they do, what was decided for it, and what it did.
type JobView struct {
	JobRow
	Forwarders map[topology.ForwarderID]int `json:"forwarders"` // with the number of the job's nodes on each now
	Plans      []string                     `json:"plans"`      // newest first
	// Served are the forwarders over the run, known at its end.
	Served []topology.ForwarderID `json:"served_by"`
	// The newest second over all its nodes; nil where none of them is heard.
	ReadBytesPerSec  *float64 `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64 `json:"write_bytes_per_sec"`
	MetaOpsPerSec    *float64 `json:"meta_ops_per_sec"`
	// Decision is what the policy said at the job's start; nil when it was not asked since the
	// daemon's own start.
	Decision *dispatch.Answer `json:"decision"`
	// Profile is nil for a job that runs, or of which nothing was collected; Pending says that it is
	// being made.
	Pending bool             `json:"pending"`
	Profile *history.Profile `json:"profile"`
}

// jobsList lists the running jobs, then those that ended last.
var jobsList = &listing[JobRow]{
	page: onJobs, addr: Address{Page: "jobs"}, ask: (*asker).jobs, noun: "job",
	head:  " JOB        APPLICATION    USER       NODES       STARTED     RAN  ENDED",
	empty: "No job is known. The batch system tells by 'fairway hook dispatch' and 'fairway hook end' in its prolog and epilog.",
	title: func(_ *State, rows []JobRow) string {
		running := 0
		for i := range rows {
			if rows[i].End.IsZero() {
				running++
			}
		}
		return fmt.Sprintf(" jobs   %d running, %d of the ended", running, len(rows)-running)
	},
	line: func(s *State, r *JobRow) string {
		ended, ran := "running", s.Now.Sub(r.Start)
		if !r.End.IsZero() {
			ended, ran = moment(r.End, s.Now), r.End.Sub(r.Start)
		}
		return " " + left(clean(string(r.ID)), 10) + " " + left(clean(r.App), 14) + " " + left(clean(r.User), 8) + right(strconv.Itoa(r.NodeCount), 8) +
			right(moment(r.Start, s.Now), 14) + right(age(ran), 8) + "  " + ended
	},
	open: func(r *JobRow) page { return newJobPage(string(r.ID)) },
}
