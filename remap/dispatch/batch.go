package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"fairway/collector/logs/slurm"
	"fairway/collector/topology"
)

// Batch asks the batch system which jobs there are.
type Batch struct {
	Jobs    *Dispatcher
	Command []string // lists the jobs; empty: hooks alone report them
	Every   time.Duration
	Log     *slog.Logger
}

// batchAfter is how long after a start the jobs are asked for first: the agents, whom the plans of
// ended jobs concern, connect meanwhile.
const batchAfter = 5 * time.Second

// batchWithin is after how long a question is given up: the next one comes soon enough.
const batchWithin = 10 * time.Second

// Run compares the known jobs with the batch system's now and then, until ctx ends: a hook may
// have failed, or have been called while this daemon was away. Where it cannot be asked, what could not be
// taken back at a job's end is still tried again.
func (b *Batch) Run(ctx context.Context) {
	next := time.NewTimer(batchAfter)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		b.look(ctx, time.Now())
		next.Reset(b.Every)
	}
}

func (b *Batch) look(ctx context.Context, now time.Time) {
	if len(b.Command) > 0 {
		err := b.reconcile(ctx, now)
		if err == nil || ctx.Err() != nil {
			return
		}
		b.Log.Warn("the batch system's jobs are not known; jobs begin and end by its hooks alone", "err", err)
	}
	again, err := b.Jobs.TakeBackAgain(ctx, now)
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("the plans of jobs that have ended could not be looked at", "err", err)
	}
	if len(again) > 0 {
		b.Log.Warn("plans that could not be taken back at their job's end are taken back again", "jobs", again)
	}
}

func (b *Batch) reconcile(ctx context.Context, now time.Time) error {
	jobs, err := slurm.Ask(ctx, b.Command, batchWithin, slurm.Options{Zone: time.Local})
	if err != nil {
		return err
	}
	b.Jobs.Expect(expectJobs(jobs))
	r, err := b.Jobs.Reconcile(ctx, now, listJobs(jobs))
	if len(r.Began)+len(r.Ended)+len(r.Again) > 0 {
		b.Log.Warn("the batch system knows better which jobs run; were its hooks called?", "began", r.Began, "ended",
			r.Ended, "taken_back_again", r.Again)
	}
	return err
}

// notYet are the states of a job without nodes, atEdge those in which one of its hooks may be under way.
var (
	notYet = []string{"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
	atEdge = []string{"CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING"}
)

// listJobs are the jobs that have nodes, under the number that their hooks use.
func listJobs(jobs []slurm.Job) (out []Listed) {
	for i := range jobs {
		j := &jobs[i]
		if j.Step != "" || len(j.Nodes) == 0 || j.Start.IsZero() || slices.Contains(notYet, j.State) {
			continue
		}
		l := Listed{Start: j.Start, Starting: slices.Contains(atEdge, j.State),
			Request: Request{Job: hooksID(j), User: j.User, App: slurm.Application(j.Name, j.Comment),
				Project: project(j), Nodes: j.Nodes}}
		if l.QOS = j.QOS; j.Priority != nil {
			l.Priority = float64(max(*j.Priority, 0))
		}
		if j.Ended() {
			if l.End = j.End; l.End.IsZero() {
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

// hooksID is the number that the job's hooks see, and project its account as they see it.
func hooksID(j *slurm.Job) topology.JobID {
	if j.RawID > 0 {
		return topology.JobID(strconv.FormatInt(j.RawID, 10))
	}
	return j.ID
}

func project(j *slurm.Job) string {
	if j.Account == "(null)" {
		return ""
	}
	return j.Account
}

// expectJobs are the jobs that wait and have a start planned.
func expectJobs(jobs []slurm.Job) (out []Expected) {
	for i := range jobs {
		j := &jobs[i]
		if j.Step == "" && j.State == "PENDING" && !j.Start.IsZero() && j.NodeCount != nil {
			out = append(out, Expected{Job: hooksID(j), User: j.User,
				App: slurm.Application(j.Name, j.Comment), Project: project(j), Nodes: int(*j.NodeCount),
				Start: j.Start})
		}
	}
	return out
}
