package webui

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/report"
)

// records visits the desk's records, the newest first. The journal may be years long.
type records func(journal.Wanted) iter.Seq2[*journal.Record, error]

// audits answers who did what.
type audits struct{ *parts }

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

func (h audits) get(r *http.Request, _ access.Caller, limit int) (v []api.AuditEntry, err error) {
	q := r.URL.Query()
	entries := []api.AuditEntry{}
	from, to, err := parseRange(r, 10*366*24*60*60*1e9)
	if err != nil {
		return v, err
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
	return entries, err
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
	e := api.AuditEntry{Seq: rec.Seq, At: rec.At, Actor: cmp.Or(rec.Actor, "desk"), From: rec.Via,
		Action:  string(rec.Kind),
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

// undo takes back what a person did last, as the journal has it.
type undo struct{ *parts }

// undoable is how long ago an act may be.
const undoable = 24 * time.Hour

// act is what somebody did last; do takes it back.
type act struct {
	api.LastAct
	do func(ctx context.Context, a remap.Answer) error
}

// offer says how the act is taken back.
func (a *act) offer(undo string, do func(context.Context, remap.Answer) error) {
	a.Undo, a.do = undo, do
}

func (h undo) get(r *http.Request, by access.Caller) (v api.LastAct, err error) {
	a, err := h.findLast(r.Context(), by.Person)
	return a.LastAct, err
}

func (h undo) post(r *http.Request, by access.Caller, in api.Undo) (v api.LastAct, err error) {
	a, err := h.findLast(r.Context(), by.Person)
	switch {
	case err != nil:
		return v, err
	case a.Seq != in.Seq:
		return v, fmt.Errorf("undo: %w: since then you %s", api.ErrChanged, a.Did)
	case a.do == nil:
		return v, fmt.Errorf("undo: %w: you %s; %s", api.ErrConflict, a.Did, a.WhyNot)
	}
	return a.LastAct, a.do(r.Context(), answerOf(r, "taken back"))
}

// findLast finds a person's newest act and how it is taken back.
func (h undo) findLast(ctx context.Context, by remap.Person) (a act, err error) {
	var rec *journal.Record
	err = h.records.visit(ctx, journal.Wanted{From: time.Now().Add(-undoable)}, func(r *journal.Record) bool {
		if r.Actor == by.Name && r.Kind != journal.StepCanaryDone {
			rec = r
		}
		return rec == nil
	})
	if err == nil && rec == nil {
		err = fmt.Errorf("undo: %w: the audit has no act of %s in the last day", api.ErrNotFound, by.Name)
	}
	if err != nil {
		return a, err
	}
	a.Seq, a.At = rec.Seq, rec.At
	switch {
	case rec.Finding != nil:
		err = h.undoFinding(ctx, by, rec, &a)
	case rec.Exclusion != nil:
		h.undoExclusion(by, rec, &a)
	case rec.Kind == journal.StepPropose || rec.Kind == journal.StepApprove || rec.Kind == journal.StepComplete:
		err = h.undoPlan(ctx, by, rec, &a)
	case rec.Kind == journal.StepStop:
		a.Did, a.WhyNot = "stopped "+rec.Plan, "complete it to move the rest, or roll it back"
	case rec.Canary != nil:
		a.Did, a.WhyNot = "sent a canary", "it has come back and changed nothing"
	default:
		did := map[journal.RecordKind]string{journal.StepReject: "rejected", journal.StepWithdraw: "withdrew",
			journal.StepRollBack: "rolled back", journal.StepHold: "asked to roll back", journal.StepAllow: "allowed",
			journal.StepRevoke: "revoked"}[rec.Kind]
		a.Did, a.WhyNot = cmp.Or(did, "did "+string(rec.Kind)+" of")+" "+rec.Plan, "no key takes that back"
	}
	return a, err
}

// undoPlan withdraws a plan that waits and rolls back one that has moved nodes.
func (h undo) undoPlan(ctx context.Context, by remap.Person, rec *journal.Record, a *act) error {
	id := rec.Plan
	p, err := h.Desk.Plan(ctx, id)
	if err != nil {
		return err
	}
	a.Did = map[journal.RecordKind]string{journal.StepPropose: "proposed ", journal.StepApprove: "approved ",
		journal.StepComplete: "completed "}[rec.Kind] + id
	say := func(call decision) func(context.Context, remap.Answer) error {
		return func(ctx context.Context, answer remap.Answer) error {
			_, err := call(h.Desk, ctx, by, id, answer)
			return err
		}
	}
	switch {
	case p.State.Refuses(remap.ActWithdraw) == "":
		a.offer("withdraw "+id+": nothing has moved", say((*desk.Desk).Withdraw))
	case rec.Kind == journal.StepPropose:
		a.WhyNot = fmt.Sprintf("%s is %s by now; its page rolls it back", id, p.State)
	case p.State.Refuses(remap.ActRollBack) != "":
		a.WhyNot = p.State.Refuses(remap.ActRollBack)
	default:
		if a.WhyNot, err = h.Desk.NoWayBack(ctx, id); err == nil && a.WhyNot == "" {
			a.offer("roll back "+id+": its nodes go back to where they were", say((*desk.Desk).RollBack))
		}
	}
	return err
}

// undoExclusion returns what was drained, and drains again what was returned, for the time that was left.
func (h undo) undoExclusion(by remap.Person, rec *journal.Record, a *act) {
	e, left := rec.Exclusion, time.Until(rec.Exclusion.Until).Round(time.Second)
	f, back := e.Forwarder, rec.Kind == journal.StepReturn
	reason, out := h.Desk.Excluded()[f]
	a.Did = fmt.Sprintf("drained %s", f)
	if back {
		a.Did = fmt.Sprintf("returned %s", f)
	}
	switch {
	case !back && (out || rec.Kind == journal.StepMaintenance):
		a.Did += " (" + e.Reason + ")"
		a.offer(fmt.Sprintf("take %s back into allocation", f), func(ctx context.Context, answer remap.Answer) error {
			return h.Desk.Return(ctx, by, f, answer)
		})
	case !back:
		a.WhyNot = "it is in allocation again"
	case out:
		a.WhyNot = "it is drained again: " + reason
	case left < time.Second:
		a.WhyNot = "its lease would have ended"
	default:
		a.offer(fmt.Sprintf("drain %s for %s", f, left), func(ctx context.Context, answer remap.Answer) error {
			answer.Reason = e.Reason
			_, err := h.Desk.Exclude(ctx, by, f, left, answer)
			return err
		})
	}
}

// undoFinding lifts a silence or an acknowledgement: what the finding had before it.
func (h undo) undoFinding(ctx context.Context, by remap.Person, rec *journal.Record, a *act) error {
	f, before := &rec.Finding.Finding, anomaly.Finding{}
	now := rec.Finding
	n := 0
	err := h.records.visit(ctx, journal.Wanted{Subject: f.ID}, func(r *journal.Record) bool {
		switch {
		case r.Finding == nil:
		case n == 0: // as it is now
			now, n = r.Finding, 1
		}
		if r.Finding != nil && r.Seq < rec.Seq {
			before, n = r.Finding.Finding, 2
		}
		return n < 2
	})
	a.Did = fmt.Sprintf("judged %s: %s", f.ID, rec.Finding.Why)
	owned, silenced := f.Owner != before.Owner, !f.Silenced.Equal(before.Silenced)
	switch {
	case err != nil:
	case !rec.Finding.Noted.IsZero():
		a.WhyNot = "a note stays; write another one"
	case !now.Finding.Open():
		a.WhyNot = fmt.Sprintf("%s is %s", f.ID, now.Finding.State)
	case owned && now.Finding.Owner == f.Owner:
		a.offer("give "+f.ID+" back", func(ctx context.Context, answer remap.Answer) error {
			_, err := h.Review.Release(ctx, by, f.ID, before.Owner, answer)
			return err
		})
	case silenced && now.Finding.Silenced.Equal(f.Silenced):
		left := max(0, time.Until(before.Silenced).Round(time.Minute))
		a.offer(map[bool]string{true: "end the silence of " + f.ID, false: "silence " + f.ID + " as before"}[left == 0],
			func(ctx context.Context, answer remap.Answer) error {
				_, err := h.Review.Silence(ctx, by, f.ID, left, answer)
				return err
			})
	default:
		a.WhyNot = "it has changed since"
	}
	return err
}

// reports answers what happened in a week or a month.
type reports struct{ *parts }

const (
	reportSpan = 7 * 24 * time.Hour
	// maxReportSpan bounds what one request adds up.
	maxReportSpan = 400 * 24 * time.Hour
)

func (h reports) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	from, to, err := parseRange(r, reportSpan)
	if err != nil {
		return err
	}
	if to.Sub(from) > maxReportSpan {
		return fmt.Errorf("%w: from and to are %.0f days apart; want at most %.0f", api.ErrInvalid,
			to.Sub(from).Hours()/24, maxReportSpan.Hours()/24)
	}
	findings, err := h.Desk.Findings(r.Context())
	if err != nil {
		return err
	}
	snap := h.Picture.Snapshot()
	now := map[string]*anomaly.Finding{} // what they cost grows between the journal's changes
	for i := range snap.Overview.Findings {
		now[snap.Overview.Findings[i].ID] = &snap.Overview.Findings[i]
	}
	s := report.Sources{Site: snap.Machine.Name, Version: h.Version, Runs: h.Runs, Records: h.Desk.History,
		Plan: h.Desk.Plan, Store: h.Store}
	for i := range findings {
		f := &findings[i]
		if newer := now[f.ID]; newer != nil && !newer.Changed.Before(f.Changed) {
			f = newer
		}
		if f.Open() {
			s.Open = append(s.Open, *f)
		}
	}
	nodes, err := h.Store.Nodes(r.Context())
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Role == topology.Forwarder {
			s.Forwarders = append(s.Forwarders, n.Node)
		}
	}
	made, err := report.Make(r.Context(), s, from, to, time.Now())
	if err != nil {
		return err
	}
	switch r.URL.Query().Get("format") {
	case "", "json":
		return api.WriteJSON(w, made)
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// The page is one file with its styles in it, so that it can be sent on; it has no script.
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		return made.HTML(w)
	case "markdown":
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		return made.Markdown(w)
	}
	return fmt.Errorf("%w: format=%q; want json, html or markdown", api.ErrInvalid, r.URL.Query().Get("format"))
}
