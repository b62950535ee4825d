package webui

import (
	"context"
	"net/http"

	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/desk"
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
