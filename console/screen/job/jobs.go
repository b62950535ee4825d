package job

import (
	"context"
	"fmt"
	"strconv"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// List lists the running jobs, then those that ended last.
var List = &screen.Listing[api.JobRow]{
	Screen: screen.OnJobs, At: screen.Address{Page: "jobs"},
	Ask: func(ctx context.Context, b screen.Backend) ([]api.JobRow, error) { return b.Jobs(ctx) }, Noun: "job",
	Head: " JOB        APPLICATION    USER       NODES       STARTED     RAN  ENDED",
	Empty: "No job is known. The batch system reports jobs by 'fairway hook dispatch' and 'fairway hook end' in its " +
		"prolog " +
		"and epilog.",
	Title: func(_ *screen.State, rows []api.JobRow) string {
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
	Line: func(s *screen.State, r *api.JobRow) string {
		ended, ran := "running", s.Now.Sub(r.Start)
		if !r.End.IsZero() {
			ended, ran = chart.Moment(r.End, s.Now), r.End.Sub(r.Start)
		}
		return " " + chart.Left(chart.Clean(string(r.ID)), 10) + " " + chart.Left(chart.Clean(r.App), 14) + " " +
			chart.Left(chart.Clean(r.User), 8) +
			chart.Right(strconv.Itoa(r.NodeCount), 8) +
			chart.Right(chart.Moment(r.Start, s.Now), 14) + chart.Right(chart.Age(ran), 8) + "  " + ended
	},
	Open: func(r *api.JobRow) screen.Address { return screen.AtJob(r.ID, "") },
}
