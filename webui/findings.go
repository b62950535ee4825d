package webui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// findings answers what the detectors found, and takes what persons say of it.
type findings struct {
	picture   interface{ Snapshot() *live.Snapshot }
	records   records
	incidents incidents
	review    interface {
		Acknowledge(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error)
		Dismiss(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error)
		Silence(ctx context.Context, by remap.Person, id string, d time.Duration, a remap.Answer) (anomaly.Finding,
			error)
		Note(ctx context.Context, by remap.Person, id string, about time.Time, a remap.Answer) (anomaly.Finding, error)
	}
}

func (h *findings) list(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	snap := h.picture.Snapshot()
	all := ownOf(by.Person, snap.Situation).findings(slices.Clone(snap.Overview.Findings))
	switch state := r.URL.Query().Get("state"); state {
	case "":
	case "open":
		all = slices.DeleteFunc(all, func(f anomaly.Finding) bool { return !f.Open() })
	default:
		return fmt.Errorf("%w: state %q; there is open", api.ErrInvalid, state)
	}
	if all == nil {
		all = []anomaly.Finding{}
	}
	return api.WriteJSON(w, all)
}

// get answers one finding with its whole life, from the journal.
func (h *findings) get(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	v, err := h.finding(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if mine := ownOf(by.Person, h.picture.Snapshot().Situation); mine != nil {
		seen := mine.findings([]anomaly.Finding{v.Finding})
		if len(seen) == 0 {
			return fmt.Errorf("finding %q: %w", v.ID, api.ErrNotFound)
		}
		v = api.FindingView{Finding: seen[0], Changes: []anomaly.Change{}}
	}
	v.Options = remap.FindingOptions(by.Person, &v.Finding)
	return api.WriteJSON(w, v)
}

func (h *findings) finding(ctx context.Context, id string) (v api.FindingView, err error) {
	err = h.records.visit(ctx, journal.Wanted{Subject: id}, func(rec *journal.Record) bool {
		if rec.Finding != nil {
			v.Changes = append(v.Changes, *rec.Finding)
		}
		return true
	})
	slices.Reverse(v.Changes)
	if n := len(v.Changes); n > 0 {
		v.Finding = v.Changes[n-1].Finding
	}
	if err == nil && len(v.Changes) == 0 {
		err = fmt.Errorf("finding %q: %w", id, api.ErrNotFound)
	}
	// Between two changes its words and numbers follow the detector.
	snap := h.picture.Snapshot()
	for _, f := range snap.Situation.Findings {
		if f.ID == id && !f.Changed.Before(v.Changed) {
			v.Finding = f
		}
	}
	v.Card = snap.CardOf(&v.Finding)
	v.Sentence = advise.Sentence(&v.Finding)
	return v, err
}

func (h *findings) acknowledge(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	return h.answer(w, r, func(id string, a remap.Answer) (anomaly.Finding, error) {
		return h.review.Acknowledge(r.Context(), by.Person, id, a)
	})
}

func (h *findings) dismiss(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	return h.answer(w, r, func(id string, a remap.Answer) (anomaly.Finding, error) {
		return h.review.Dismiss(r.Context(), by.Person, id, a)
	})
}

func (h *findings) note(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.Note
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	f, err := h.review.Note(r.Context(), by.Person, r.PathValue("id"), in.At, answerOf(r, in.Text))
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, f)
}

func (h *findings) silence(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.Silence
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	long, err := time.ParseDuration(in.For)
	if err != nil {
		return fmt.Errorf("%w: for %q; want how long, such as 4h, or 0s to end a silence", api.ErrInvalid, in.For)
	}
	f, err := h.review.Silence(r.Context(), by.Person, r.PathValue("id"), long, answerOf(r, in.Reason))
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, f)
}

func (h *findings) answer(w http.ResponseWriter, r *http.Request,
	say func(id string, a remap.Answer) (anomaly.Finding, error)) error {
	var in api.Decision
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	f, err := say(r.PathValue("id"), answerOf(r, in.Reason))
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, f)
}
