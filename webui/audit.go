package webui

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/api"
)

// records visits the desk's records, the newest first. The journal may be years long.
type records func(journal.Wanted) iter.Seq2[*journal.Record, error]

// audits answers who did what.
type audits struct {
	records records
	report  reports
	undo    undo
}

// visit shows the wanted records until f wants no more or the client goes.
func (all records) visit(ctx context.Context, w journal.Wanted, f func(*journal.Record) (more bool)) error {
	for rec, err := range all(w) {
		if gone := ctx.Err(); gone != nil {
			return fmt.Errorf("%w: the audit was not read to its end: %w", api.ErrUnreachable, gone)
		}
		if err != nil || !f(rec) {
			return err
		}
	}
	return nil
}

func (h *audits) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	entries := []api.AuditEntry{}
	from, to, err := parseRange(r, 10*366*24*60*60*1e9)
	if err != nil {
		return err
	}
	wanted := journal.Wanted{Subject: q.Get("subject"), From: from}
	if q.Get("to") != "" {
		wanted.To = to
	}
	err = h.records.visit(r.Context(), wanted, func(rec *journal.Record) bool {
		if actor := q.Get("actor"); actor == "" || actor == rec.Actor {
			entries = append(entries, auditEntry(rec))
		}
		return len(entries) < limit
	})
	if err != nil {
		return err
	}
	return api.WriteJSON(w, entries)
}

// namesOf lists nodes, of many the first.
func namesOf(nodes map[topology.NodeID]time.Time) (names []string) {
	const most = 20
	for i, n := range slices.Sorted(maps.Keys(nodes)) {
		if i == most {
			return append(names, fmt.Sprintf("and %d more", len(nodes)-most))
		}
		names = append(names, string(n))
	}
	return names
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
	if rec.Revoked != nil {
		e.Subject = strings.Join(namesOf(rec.Revoked), " ")
	}
	if e.Actor == "" {
		e.Actor = "desk"
	}
	if rec.Approval != nil {
		e.Reason = rec.Approval.Reason
	}
	if rec.Effect != nil {
		e.Result = rec.Effect.Text()
	}
	if rec.Error != "" {
		e.Result += ": " + rec.Error
	}
	return e
}
