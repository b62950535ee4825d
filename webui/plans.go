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
	"fairway/remap/queue/tables"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// plans answers plans and takes decisions on them.
type plans struct {
	desk *desk.Desk
	// effect is what a plan under measurement has brought so far; nil: nobody measures.
	effect  func(plan string) *remap.Effect
	picture *live.Picture
}

func (h *plans) list(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	plans, err := h.desk.Plans(r.Context(), limit)
	if err != nil {
		return fromDesk(err)
	}
	rows := make([]api.PlanRow, 0, len(plans))
	for i := range plans {
		rows = append(rows, live.PlanRow(&plans[i]))
	}
	return api.WriteJSON(w, rows)
}

func (h *plans) get(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	return h.write(w, r, by, r.PathValue("id"))
}

// write answers a plan as the caller sees it now.
func (h *plans) write(w http.ResponseWriter, r *http.Request, by access.Caller, id string) error {
	v, err := h.desk.Preview(r.Context(), by.Person, id)
	if err != nil {
		return fromDesk(err)
	}
	return h.show(w, r, &v)
}

// mostTracked bounds the plans of the track record: the newest.
const mostTracked = 200

func (h *plans) show(w http.ResponseWriter, r *http.Request, v *remap.Preview) error {
	if v.Plan.Effect == nil && h.effect != nil {
		v.Plan.Effect = h.effect(v.Plan.ID)
	}
	p := api.PlanView{Plan: v.Plan, Brought: v.Plan.Effect.Text(), Title: v.Title, PreviewHash: v.Hash, Lines: v.Lines,
		Checks: v.Checks,
		Needs:  v.Needs, MayApprove: v.MayApprove, Options: v.Options,
		Expected: v.Expected(), Outcome: v.Plan.Ledger.Outcome()}
	if v.Plan.State == remap.Proposed {
		// Without a record of moves before it the plan is shown as well.
		if plans, err := h.desk.Plans(r.Context(), mostTracked); err == nil {
			p.Track = remap.TrackOf(plans).Text()
		}
	}
	in := h.picture.Snapshot().Advice()
	p.Card, p.BackTo = advise.OfPlan(&v.Plan, in), advise.BackTo(&v.Plan, in)
	p.SuggestedReason = advise.ReasonFor(&p.Card, &v.Plan)
	return api.WriteJSON(w, p)
}

func (h *plans) propose(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.ManualRemap
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	moves := remap.MoveAll(in.Nodes, in.To)
	for i := range moves {
		moves[i].Limit = in.Limit
	}
	p, err := h.desk.Propose(r.Context(), by.Person, remap.Request{Job: string(in.Job),
		Key: r.Header.Get("Idempotency-Key"), Moves: moves, Reason: in.Reason, Force: in.Force,
	})
	if err != nil {
		return fromDesk(err)
	}
	w.Header().Set("Location", "/api/v1/plans/"+p.ID)
	return h.write(w, r, by, p.ID)
}

// approve answers with the preview that was approved: another one would ask every node again.
func (h *plans) approve(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	a, err := readDecision(w, r)
	if err != nil {
		return err
	}
	v, err := h.desk.Approve(r.Context(), by.Person, r.PathValue("id"), a)
	if err != nil {
		return fromDesk(err)
	}
	return h.show(w, r, &v)
}

// decision is one of the desk's methods that answer a plan which is not approved by it.
type decision func(d *desk.Desk, ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)

func (h *plans) decide(say decision) access.Handler {
	return func(w http.ResponseWriter, r *http.Request, by access.Caller) error {
		a, err := readDecision(w, r)
		if err != nil {
			return err
		}
		id := r.PathValue("id")
		if _, err := say(h.desk, r.Context(), by.Person, id, a); err != nil {
			return fromDesk(err)
		}
		return h.write(w, r, by, id)
	}
}

func readDecision(w http.ResponseWriter, r *http.Request) (remap.Answer, error) {
	var in api.Decision
	if err := api.ReadJSON(w, r, &in); err != nil {
		return remap.Answer{}, err
	}
	a := answerOf(r, in.Reason)
	a.Hash = in.PreviewHash
	return a, nil
}

// standing answers the approvals that persons and the site's rules gave beforehand.
type standing struct {
	desk interface {
		Standing(ctx context.Context) ([]remap.Standing, error)
		Allow(ctx context.Context, by remap.Person, app, user string, ttl time.Duration,
			a remap.Answer) (remap.Standing, error)
		Revoke(ctx context.Context, by remap.Person, id string, a remap.Answer) error
	}
	rules rules
}

// list answers the standing approvals in force.
func (h *standing) list(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	all, err := h.desk.Standing(r.Context())
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, all)
}

func (h *standing) allow(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.Allow
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return fmt.Errorf("%w: ttl %q; want how long, such as 720h", api.ErrInvalid, in.TTL)
	}
	a := answerOf(r, in.Reason)
	made, err := h.desk.Allow(r.Context(), by.Person, in.App, in.User, ttl, a)
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, made)
}

func (h *standing) revoke(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	a := answerOf(r, r.URL.Query().Get("reason"))
	if err := h.desk.Revoke(r.Context(), by.Person, r.PathValue("id"), a); err != nil {
		return fromDesk(err)
	}
	return h.list(w, r, by)
}

// rules answers the site's rules about running jobs.
type rules struct {
	policy  *evacuate.Policy
	records records
}

func (h *rules) list(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, h.policy.View())
}

// test answers what the rules would have done; the last seven days without a range.
func (h *rules) test(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	from, to, err := parseRange(r, 7*24*time.Hour)
	if err != nil {
		return err
	}
	var changes []anomaly.Change
	err = h.records.visit(r.Context(), journal.Wanted{From: from, To: to}, func(rec *journal.Record) bool {
		if rec.Finding != nil {
			changes = append(changes, *rec.Finding)
		}
		return true
	})
	if err != nil {
		return err
	}
	would, err := h.policy.Test(changes)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, evacuate.Tested{From: from, To: to, Would: would})
}

// whatif answers what policies would do; nothing is changed anywhere.
type whatif struct {
	picture interface{ Snapshot() *live.Snapshot }
	jobs    interface {
		Ended(limit int) ([]history.Run, error)
		Windows() dispatch.Windows
	}
	priority  func(*remap.Job) float64 // nil: not known
	gathering func() (tables.Gathering, bool)
}

// shares divides among the jobs that run now.
func (h *whatif) shares(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	q := r.URL.Query()
	p, err := share.ParsePolicy(cmp.Or(q.Get("policy"), "size-fair"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	byPriority := slices.Contains(p, share.Priority)
	if byPriority && h.priority == nil {
		return fmt.Errorf(
			"%w: policy %s: jobs' priorities are the batch system's, which this daemon does not ask (slurm.jobs); "+
				"fairway shares takes them from a file", api.ErrInvalid, p)
	}
	v := api.SharesView{Policy: p.String(), Forwarder: topology.ForwarderID(q.Get("forwarder")),
		Jobs: []api.ShareRow{}}
	var jobs []share.Job
	for _, j := range jobsOn(h.picture.Snapshot().Situation, v.Forwarder) {
		row := api.ShareRow{Job: j.ID, User: j.User, Group: j.Project, Nodes: len(j.Nodes)}
		if byPriority {
			row.Priority = h.priority(&j)
		}
		v.Jobs = append(v.Jobs, row)
		jobs = append(jobs, share.Job{Name: string(j.ID), User: j.User, Group: j.Project,
			Size: float64(max(len(j.Nodes), 1)), Priority: row.Priority})
	}
	for i, x := range share.Shares(p, jobs) {
		v.Jobs[i].Share = x
	}
	slices.SortStableFunc(v.Jobs, func(a, b api.ShareRow) int { return cmp.Compare(b.Share, a.Share) })
	if g, ok := h.gathering(); ok {
		v.InForce = &g
	}
	return api.WriteJSON(w, v)
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
func (h *whatif) slowdowns(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	runs, err := h.jobs.Ended(newestRuns)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, history.Slowdowns(runs))
}

// windows answers the pattern of the running jobs.
func (h *whatif) windows(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, h.jobs.Windows().Pattern())
}

// maxPatternWork bounds the instances that one question may place, over all pattern lengths: about a
// second of work.
const maxPatternWork = 1e7

// periodic plans the I/O of the applications in the question; nothing is changed anywhere.
func (h *whatif) periodic(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	text := r.URL.Query().Get("set")
	if text == "" {
		return fmt.Errorf("%w: set: a JSON object as fairway periodic reads it is missing", api.ErrInvalid)
	}
	set, err := periodic.ReadSet(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: set: %w", api.ErrInvalid, err)
	}
	if work := set.Work(); work > maxPatternWork {
		return fmt.Errorf(
			"%w: set: %.2g instances over all pattern lengths, more than %.2g; raise eps, lower kprime, or use "+
				"fairway periodic", api.ErrInvalid, work, float64(maxPatternWork))
	}
	p, err := periodic.Schedule(set)
	if err != nil {
		return fmt.Errorf("%w: %w; a larger kprime tries longer ones", api.ErrInvalid, err)
	}
	unplanned := periodic.Online(set, periodic.Fair, set.TMin*set.KPrime)
	return api.WriteJSON(w, api.PatternView{Pattern: p, Unplanned: unplanned, Set: set})
}
