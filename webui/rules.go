package webui

import (
	"iter"
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
	records func(journal.Wanted) iter.Seq2[*journal.Record, error]
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
	for rec, err := range h.records(journal.Wanted{From: from, To: to}) {
		if err != nil {
			return err
		}
		if rec.Finding != nil {
			changes = append(changes, *rec.Finding)
		}
	}
	would, err := h.policy.Test(changes)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, evacuate.Tested{From: from, To: to, Would: would})
}
