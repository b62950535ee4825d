package webui

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/webui/api"
	"fairway/webui/live"
)

// defaultLimit and maxLimit bound lists.
const (
	defaultLimit = 200
	maxLimit     = 10000
)

func parseLimit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, maxLimit)
	}
	return n, nil
}

func (s *Server) desk() (*desk.Desk, error) {
	if s.cfg.Desk == nil {
		return nil, fmt.Errorf("%w: this daemon keeps no plans", api.ErrUnreachable)
	}
	return s.cfg.Desk, nil
}

func (s *Server) getPlans(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	plans, err := desk.Plans(r.Context(), limit)
	if err != nil {
		return fromDesk(err)
	}
	rows := make([]api.PlanRow, 0, len(plans))
	for i := range plans {
		rows = append(rows, live.PlanRow(&plans[i]))
	}
	return writeJSON(w, rows)
}

func (s *Server) getPlan(w http.ResponseWriter, r *http.Request, by who) error {
	return s.writePlan(w, r, by, r.PathValue("id"))
}

// writePlan answers a plan as the caller sees it now.
func (s *Server) writePlan(w http.ResponseWriter, r *http.Request, by who, id string) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	v, err := desk.Preview(r.Context(), by.Person, id)
	if err != nil {
		return fromDesk(err)
	}
	p := api.PlanView{Plan: v.Plan, Title: v.Title, PreviewHash: v.Hash, Lines: v.Lines, Checks: v.Checks,
		Needs: v.Needs, MayApprove: v.MayApprove,
		Expected: v.Plan.Ledger.Expected(), Outcome: v.Plan.Ledger.Outcome()}
	return writeJSON(w, p)
}

func (s *Server) postPlan(w http.ResponseWriter, r *http.Request, by who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	var in api.ManualRemap
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	p, err := desk.Propose(r.Context(), by.Person, remap.Request{
		Key: r.Header.Get("Idempotency-Key"), Moves: remap.MoveAll(in.Nodes, in.To), Reason: in.Reason, Force: in.Force,
	})
	if err != nil {
		return fromDesk(err)
	}
	w.Header().Set("Location", "/api/v1/plans/"+p.ID)
	return s.writePlan(w, r, by, p.ID)
}

// decision is one thing that can be said to a plan.
type decision func(d *desk.Desk, ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)

var (
	approve  decision = (*desk.Desk).Approve
	reject   decision = (*desk.Desk).Reject
	rollBack decision = (*desk.Desk).RollBack
	stop     decision = (*desk.Desk).Stop
	complete decision = (*desk.Desk).Complete
)

func (s *Server) decide(say decision) func(http.ResponseWriter, *http.Request, who) error {
	return func(w http.ResponseWriter, r *http.Request, by who) error {
		desk, err := s.desk()
		if err != nil {
			return err
		}
		var in api.Decision
		if err := readJSON(w, r, &in); err != nil {
			return err
		}
		id := r.PathValue("id")
		a := remap.Answer{Key: r.Header.Get("Idempotency-Key"), Hash: in.PreviewHash, Reason: in.Reason}
		if _, err := say(desk, r.Context(), by.Person, id, a); err != nil {
			return fromDesk(err)
		}
		return s.writePlan(w, r, by, id)
	}
}

// audit shows the wanted records, the newest first, until visit says no more or the asker goes: the
// journal may be years long.
func (s *Server) audit(ctx context.Context, w journal.Wanted, visit func(*journal.Record) (more bool)) error {
	for rec, err := range s.cfg.Audit(w) {
		if gone := ctx.Err(); gone != nil {
			return fmt.Errorf("%w: the audit was not read to its end: %w", api.ErrUnreachable, gone)
		}
		if err != nil || !visit(rec) {
			return err
		}
	}
	return nil
}

func (s *Server) getAudit(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	entries := []api.AuditEntry{}
	if s.cfg.Audit == nil {
		return writeJSON(w, entries)
	}
	from, to, err := parseRange(r, 10*366*24*60*60*1e9)
	if err != nil {
		return err
	}
	wanted := journal.Wanted{Subject: q.Get("subject"), From: from}
	if q.Get("to") != "" {
		wanted.To = to
	}
	err = s.audit(r.Context(), wanted, func(rec *journal.Record) bool {
		if actor := q.Get("actor"); actor == "" || actor == rec.Actor {
			entries = append(entries, auditEntry(rec))
		}
		return len(entries) < limit
	})
	if err != nil {
		return err
	}
	return writeJSON(w, entries)
}

func auditEntry(rec *journal.Record) api.AuditEntry {
	e := api.AuditEntry{Seq: rec.Seq, At: rec.At, Actor: rec.Actor, From: rec.Via, Action: string(rec.Kind),
		Subject: rec.Plan, Reason: rec.Reason, Result: string(rec.State), Hash: rec.Hash}
	if rec.Exclusion != nil {
		e.Subject = string(rec.Exclusion.Forwarder)
	}
	if rec.Finding != nil {
		e.Result = string(rec.Finding.Finding.State)
	}
	if rec.Canary != nil {
		e.Subject, e.Result = string(rec.Canary.Forwarder), rec.Canary.String()
	}
	if e.Actor == "" {
		e.Actor = "desk"
	}
	if rec.Approval != nil {
		e.Reason = rec.Approval.Reason
	}
	if rec.Error != "" {
		e.Result += ": " + rec.Error
	}
	return e
}
