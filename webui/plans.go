package webui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/journal"
	"fairway/remap/policy/evacuate"
	"fairway/remap/policy/periodic"
	"fairway/remap/policy/share"
	"fairway/remap/policy/strictjson"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// plans answers plans and takes decisions on them.
type plans struct{ *parts }

func (h plans) list(r *http.Request, _ access.Caller, limit int) (v []api.PlanRow, err error) {
	plans, err := h.Desk.Plans(r.Context(), limit)
	if err != nil {
		return v, err
	}
	rows := make([]api.PlanRow, 0, len(plans))
	for i := range plans {
		rows = append(rows, live.PlanRow(&plans[i]))
	}
	return rows, nil
}

func (h plans) get(r *http.Request, by access.Caller) (api.PlanView, error) {
	return h.preview(r, by, r.PathValue("id"))
}

// preview is a plan as the caller sees it now.
func (h plans) preview(r *http.Request, by access.Caller, id string) (v api.PlanView, err error) {
	p, err := h.Desk.Preview(r.Context(), by.Person, id)
	if err != nil {
		return v, err
	}
	return h.show(r, &p), nil
}

// mostTracked bounds the plans of the track record: the newest.
const mostTracked = 200

func (h plans) show(r *http.Request, v *remap.Preview) api.PlanView {
	if v.Plan.Effect == nil && h.Effect != nil {
		v.Plan.Effect = h.Effect(v.Plan.ID)
	}
	p := api.PlanView{Plan: v.Plan, Brought: v.Plan.Effect.Text(), Title: v.Title, PreviewHash: v.Hash, Lines: v.Lines,
		Checks: v.Checks,
		Needs:  v.Needs, MayApprove: v.MayApprove, Options: v.Options,
		Expected: v.Expected(), Outcome: v.Plan.Ledger.Outcome()}
	in := h.Picture.Snapshot().Advice()
	p.Card, p.BackTo = advise.OfPlan(&v.Plan, in), advise.BackTo(&v.Plan, in)
	if v.Plan.State == remap.Proposed {
		// What is so once nodes were moved does not speak for taking them back.
		p.SuggestedReason = advise.ReasonFor(&p.Card, &v.Plan)
		// Without a record of moves before it the plan is shown as well.
		if plans, err := h.Desk.Plans(r.Context(), mostTracked); err == nil {
			p.Track = remap.TrackOf(plans).Text()
		}
	}
	return p
}

func (h plans) propose(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.ManualRemap
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	moves := remap.MoveAll(in.Nodes, in.To)
	for i := range moves {
		moves[i].Limit = in.Limit
	}
	p, err := h.Desk.Propose(r.Context(), by.Person, remap.Request{Job: string(in.Job),
		Key: r.Header.Get("Idempotency-Key"), Moves: moves, Reason: in.Reason, Force: in.Force,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/plans/"+p.ID)
	v, err := h.preview(r, by, p.ID)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, v)
}

// approve answers with the preview that was approved: another one would ask every node again.
func (h plans) approve(r *http.Request, by access.Caller, in api.Decision) (v api.PlanView, err error) {
	p, err := h.Desk.Approve(r.Context(), by.Person, r.PathValue("id"), decisionOf(r, in))
	if err != nil {
		return v, err
	}
	return h.show(r, &p), nil
}

// decision is one of the desk's methods that answer a plan which is not approved by it.
type decision func(d *desk.Desk, ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)

func (h plans) decide(say decision) func(*http.Request, access.Caller, api.Decision) (api.PlanView, error) {
	return func(r *http.Request, by access.Caller, in api.Decision) (api.PlanView, error) {
		if _, err := say(h.Desk, r.Context(), by.Person, r.PathValue("id"), decisionOf(r, in)); err != nil {
			return api.PlanView{}, err
		}
		return h.get(r, by)
	}
}

func decisionOf(r *http.Request, in api.Decision) remap.Answer {
	a := answerOf(r, in.Reason)
	a.Hash = in.PreviewHash
	return a
}

// standing answers the approvals that persons and the site's rules gave beforehand.
type standing struct{ *parts }

// list answers the standing approvals in force.
func (h standing) list(r *http.Request, _ access.Caller) (v []remap.Standing, err error) {
	return h.Desk.Standing(r.Context())
}

func (h standing) allow(r *http.Request, by access.Caller, in api.Allow) (v remap.Standing, err error) {
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return v, fmt.Errorf("%w: ttl %q; want how long, such as 720h", api.ErrInvalid, in.TTL)
	}
	a := answerOf(r, in.Reason)
	return h.Desk.Allow(r.Context(), by.Person, in.App, in.User, ttl, a)
}

func (h standing) revoke(r *http.Request, by access.Caller) (v []remap.Standing, err error) {
	a := answerOf(r, r.URL.Query().Get("reason"))
	if err := h.Desk.Revoke(r.Context(), by.Person, r.PathValue("id"), a); err != nil {
		return v, err
	}
	return h.list(r, by)
}

// rules answers the site's rules about running jobs.
type rules struct{ *parts }

func (h rules) list(_ *http.Request, _ access.Caller) (v evacuate.View, err error) {
	return h.Rules.View(), nil
}

// test answers what the rules would have done; the last seven days without a range.
func (h rules) test(r *http.Request, _ access.Caller) (v evacuate.Tested, err error) {
	from, to, err := parseRange(r, 7*24*time.Hour)
	if err != nil {
		return v, err
	}
	var changes []anomaly.Change
	err = h.records.visit(r.Context(), journal.Wanted{From: from, To: to}, func(rec *journal.Record) bool {
		if rec.Finding != nil {
			changes = append(changes, *rec.Finding)
		}
		return true
	})
	if err != nil {
		return v, err
	}
	would, err := h.Rules.Test(changes)
	return evacuate.Tested{From: from, To: to, Would: would}, err
}

// whatif answers what policies would do; nothing is changed anywhere.
type whatif struct{ *parts }

// shares divides among the jobs that run now.
func (h whatif) shares(r *http.Request, _ access.Caller) (v api.SharesView, err error) {
	q := r.URL.Query()
	p, err := share.ParsePolicy(cmp.Or(q.Get("policy"), "size-fair"))
	if err != nil {
		return v, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	byPriority := slices.Contains(p, share.Priority)
	if byPriority && h.Priority == nil {
		return v, fmt.Errorf(
			"%w: policy %s: jobs' priorities are the batch system's, which this daemon does not ask (slurm.jobs); "+
				"fairway shares takes them from a file", api.ErrInvalid, p)
	}
	v = api.SharesView{Policy: p.String(), Forwarder: topology.ForwarderID(q.Get("forwarder")),
		Jobs: []api.ShareRow{}}
	var jobs []share.Job
	for _, j := range jobsOn(h.Picture.Snapshot().Situation, v.Forwarder) {
		row := api.ShareRow{Job: j.ID, User: j.User, Group: j.Project, Nodes: len(j.Nodes)}
		if byPriority {
			row.Priority = h.Priority(&j)
		}
		v.Jobs = append(v.Jobs, row)
		jobs = append(jobs, share.Job{Name: string(j.ID), User: j.User, Group: j.Project,
			Size: float64(max(len(j.Nodes), 1)), Priority: row.Priority})
	}
	for i, x := range share.Shares(p, jobs) {
		v.Jobs[i].Share = x
	}
	slices.SortStableFunc(v.Jobs, func(a, b api.ShareRow) int { return cmp.Compare(b.Share, a.Share) })
	if g, ok := h.Gathering(); ok {
		v.InForce = &g
	}
	return v, nil
}

// jobsOn are the running jobs with a node that uses a forwarder; all of them for none.
func jobsOn(s *remap.Situation, f topology.ForwarderID) (on []remap.Job) {
	for _, j := range s.Jobs {
		if f == "" || slices.ContainsFunc(j.Nodes,
			func(n topology.NodeID) bool { return slices.Contains(observedOf(s, n), f) }) {
			on = append(on, j)
		}
	}
	return on
}

// newestRuns is how many runs are looked at for those that slow each other.
const newestRuns = 1000

// slowdowns compares runs that shared a forwarder with those that did not.
func (h whatif) slowdowns(_ *http.Request, _ access.Caller) (v []history.Slowdown, err error) {
	runs, err := h.Jobs.Ended(newestRuns)
	return history.Slowdowns(runs), err
}

// windows answers the pattern of the running jobs.
func (h whatif) windows(_ *http.Request, _ access.Caller) (v dispatch.RunningPattern, err error) {
	return h.Jobs.Windows().Pattern(), nil
}

// maxPatternWork bounds the instances that one question may place, over all pattern lengths: about a
// second of work.
const maxPatternWork = 1e7

// periodic plans the I/O of the applications in the question; nothing is changed anywhere.
func (h whatif) periodic(r *http.Request, _ access.Caller) (v api.PatternView, err error) {
	text := r.URL.Query().Get("set")
	if text == "" {
		return v, fmt.Errorf("%w: set: a JSON object as fairway periodic reads it is missing", api.ErrInvalid)
	}
	var set periodic.Set
	if err = strictjson.Read(strings.NewReader(text), int64(len(text)), &set); err == nil {
		set, err = periodic.Complete(set)
	}
	if err != nil {
		return v, fmt.Errorf("%w: set: %w", api.ErrInvalid, err)
	}
	if work := set.Work(); work > maxPatternWork {
		return v, fmt.Errorf(
			"%w: set: %.2g instances over all pattern lengths, more than %.2g; raise eps, lower kprime, or use "+
				"fairway periodic", api.ErrInvalid, work, float64(maxPatternWork))
	}
	p, err := periodic.Schedule(set)
	if err != nil {
		return v, fmt.Errorf("%w: %w; a larger kprime tries longer ones", api.ErrInvalid, err)
	}
	unplanned := periodic.Online(set, periodic.Fair, set.TMin*set.KPrime)
	return api.PatternView{Pattern: p, Unplanned: unplanned, Set: set}, nil
}
