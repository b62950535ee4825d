package access

import (
	"fmt"
	"net/http"

	"fairway/remap"
	"fairway/webui/api"
)

// List shows the open sessions: an admin all of them, everybody else their own.
func (s *SignIn) List(w http.ResponseWriter, _ *http.Request, by Caller) error {
	if by.Name == "" {
		return api.WriteJSON(w, []api.OpenSession{})
	}
	name := by.Name
	if by.Role.Includes(remap.Admin) {
		name = ""
	}
	return api.WriteJSON(w, s.Gate.sessions.list(name, by.Session))
}

// Revoke ends a session: one's own, or anybody's as an admin. Its feeds end with it.
func (s *SignIn) Revoke(w http.ResponseWriter, r *http.Request, by Caller) error {
	id := r.PathValue("id")
	cookie, found, ok := s.Gate.sessions.byID(id)
	if !ok || by.Name == "" || found.name != by.Name && !by.Role.Includes(remap.Admin) {
		return fmt.Errorf("session %q: %w among those that you may end", id, api.ErrNotFound)
	}
	s.Gate.sessions.end(cookie)
	s.Ended(cookie)
	s.Log.Info("a session was ended", "name", found.name, "by", by.Name, "via", by.Via)
	return s.List(w, r, by)
}
