package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
	"fairway/webui/client"
)

// List lists the running jobs, then those that ended last.
var List = &screen.Listing[api.JobRow]{
	Screen: screen.OnJobs, At: screen.Address{Page: "jobs"},
	Ask: (*client.Client).Jobs, Noun: "job",
	Head:   " JOB        APPLICATION USER    NODES   MB/s  WAIT FOR            RAN 5 MIN       FWDS     STARTED  ENDED",
	Narrow: 80, Whole: 106, // to the end of the graph
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
		head := " " + chart.Left(chart.Clean(string(r.ID)), 10) + " " + chart.Left(chart.Clean(r.App), 11) + " " +
			chart.Left(chart.Clean(r.User), 7) + chart.Right(strconv.Itoa(r.NodeCount), 6)
		graph, forwarders := chart.Left(chart.Missing, graphWidth), chart.Missing
		if now := cmp.Or(r.Now, r.Whole); now == nil {
			head += chart.Row([]int{7, 6, 12}, chart.Missing, chart.Missing, "")
		} else {
			head += chart.Right(chart.Mega(now.MovedBytesPerSec), 7) + waitText(now)
			if now.Forwarders > 0 {
				forwarders = strconv.Itoa(now.Forwarders)
			}
			if len(now.Moved) > 0 {
				graph = s.Palette.Graph(now.Moved, chart.Most(now.Moved), graphWidth, 1)[0]
			}
			if now.Waiting {
				head = s.Palette.Paint(s.Palette.Suspect, head)
			}
		}
		return head + chart.Right(chart.Age(ran), 7) + " " + graph + chart.Right(forwarders, 6) +
			chart.Right(chart.Moment(r.Start, s.Now), 12) + "  " + ended
	},
	Open: func(r *api.JobRow) screen.Address { return screen.AtJob(r.ID, "") },
}

// graphWidth is how wide the last five minutes of a job are.
const graphWidth = 10

// waitText is how much a job waits, and for what, in 18 columns.
func waitText(now *api.JobNow) string {
	if now.Wait == nil {
		return chart.Right(chart.Missing, 6) + strings.Repeat(" ", 12)
	}
	return chart.Right(chart.Ratio(now.Wait)+"%", 6) + " " + chart.Left(chart.Clean(cmp.Or(now.Slow, now.Cause)), 11)
}
