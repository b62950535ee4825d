package console

import (
	"context"
	"fmt"
	"strconv"

	"fairway/webui/api"
)

// jobsList lists the running jobs, then those that ended last.
var jobsList = &Listing[api.JobRow]{
	Screen: onJobs, At: Address{Page: "jobs"}, Ask: func(ctx context.Context, b Backend) ([]api.JobRow, error) { return b.Jobs(ctx) }, Noun: "job",
	Head: " JOB        APPLICATION    USER       NODES       STARTED     RAN  ENDED",
	Empty: "No job is known. The batch system tells by 'fairway hook dispatch' and 'fairway hook end' in its prolog " +
		"and epilog.",
	Title: func(_ *State, rows []api.JobRow) string {
		running := 0
		for i := range rows {
			if rows[i].End.IsZero() {
				running++
			}
		}
		ended := "none that ended is known"
		if n := len(rows) - running; n > 0 {
			ended = fmt.Sprintf("%d that ended last", n)
		}
		return fmt.Sprintf(" jobs   %d running, %s", running, ended)
	},
	Line: func(s *State, r *api.JobRow) string {
		ended, ran := "running", s.Now.Sub(r.Start)
		if !r.End.IsZero() {
			ended, ran = moment(r.End, s.Now), r.End.Sub(r.Start)
		}
		return " " + left(clean(string(r.ID)), 10) + " " + left(clean(r.App), 14) + " " + left(clean(r.User), 8) +
			right(strconv.Itoa(r.NodeCount), 8) +
			right(moment(r.Start, s.Now), 14) + right(age(ran), 8) + "  " + ended
	},
	Open: func(r *api.JobRow) Address { return AtJob(r.ID, "") },
}
