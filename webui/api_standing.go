package webui

import (
	"fmt"
	"net/http"
	"time"

	"fairway/remap"
	"fairway/remap/desk"
	"fairway/webui/api"
)

const standingPath = "/api/v1/standing"

func (s *Server) getStanding(w http.ResponseWriter, r *http.Request, _ who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	return writeStanding(w, r, desk)
}

// writeStanding answers the standing approvals in force.
func writeStanding(w http.ResponseWriter, r *http.Request, desk *desk.Desk) error {
	all, err := desk.Standing(r.Context())
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, all)
}

func (s *Server) postStanding(w http.ResponseWriter, r *http.Request, by who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	var in api.Allow
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return fmt.Errorf("%w: ttl %q; want how long, such as 720h", api.ErrInvalid, in.TTL)
	}
	a := remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: in.Reason}
	made, err := desk.Allow(r.Context(), by.Person, in.App, in.User, ttl, a)
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, made)
}

func (s *Server) deleteStanding(w http.ResponseWriter, r *http.Request, by who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	a := remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: r.URL.Query().Get("reason")}
	if err := desk.Revoke(r.Context(), by.Person, r.PathValue("id"), a); err != nil {
		return fromDesk(err)
	}
	return writeStanding(w, r, desk)
}
