package webui

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"fairway/remap"
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
