package webui

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/remap/policy/evacuate"
	"fairway/webui/access"
	"fairway/webui/api"
)

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
