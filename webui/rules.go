package webui

import (
	"net/http"
	"time"

	"fairway/anomaly"
	"fairway/remap/journal"
	"fairway/remap/policy/evacuate"
	"fairway/webui/access"
	"fairway/webui/api"
)

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
