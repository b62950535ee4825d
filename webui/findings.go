package webui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/alert"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/incident"
	"fairway/webui/live"
)

// findings answers what the detectors found, and takes what persons say of it.
type findings struct {
	picture   interface{ Snapshot() *live.Snapshot }
	records   records
	incidents incidents
	shared    func(of []topology.NodeID) []api.SharedTarget // nil: no other sites are known
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
	if h.shared != nil && v.Open() && v.Kind == anomaly.TargetSlow && by.Role.Includes(viewer) {
		v.Shared = &h.shared([]topology.NodeID{v.Node})[0]
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

// incidents answers a finding with all that belongs to it.
type incidents struct {
	finding func(ctx context.Context, id string) (api.FindingView, error)
	picture *live.Picture
	store   tsdb.Store
	desk    *desk.Desk
	effect  func(plan string) *remap.Effect
	version string
}

// get answers JSON, or with format=html a page for outsiders; stand_ins=true leaves every name out. With from or to the
// charts cover these instead of the time around the finding, at most a day.
func (h *incidents) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	v, err := h.finding(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var shown incident.Span
	if q := r.URL.Query(); q.Has("from") || q.Has("to") {
		if shown.From, shown.To, err = parseRange(r, time.Hour); err != nil {
			return err
		}
	}
	snap := h.picture.Snapshot()
	inc, err := incident.Make(r.Context(), incident.Sources{Site: snap.Machine.Name, Version: h.version,
		Situation: snap.Situation, Card: snap.CardOf(&v.Finding), Plan: h.desk.Plan,
		Brought: h.effect, Records: h.desk.History,
		Entry: auditEntry, Store: h.store, Shown: shown}, &v, time.Now())
	if err != nil {
		return err
	}
	if hide, _ := strconv.ParseBool(r.URL.Query().Get("stand_ins")); hide {
		if inc, err = inc.StandIns(names(snap)); err != nil {
			return err
		}
	}
	switch r.URL.Query().Get("format") {
	case "", "json":
		return api.WriteJSON(w, inc)
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", inc.ID+".html"))
		// The page is one file with its styles and its script in it; beside the faces it may do nothing.
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
		var page bytes.Buffer // an answer that has begun could not say why it fails
		if err := inc.HTML(&page); err != nil {
			return err
		}
		_, _ = page.WriteTo(w) // the reader is gone when this fails
		return nil
	}
	return fmt.Errorf("%w: format=%q; want json or html", api.ErrInvalid, r.URL.Query().Get("format"))
}

// names are those of the machine and of the jobs that run.
func names(snap *live.Snapshot) (n incident.Names) {
	for _, node := range snap.Machine.Nodes {
		if node.Role == topology.Forwarder {
			n.Forwarders = append(n.Forwarders, node.ID)
		} else {
			n.Computes = append(n.Computes, node.ID)
		}
	}
	for i := range snap.Situation.Jobs {
		j := &snap.Situation.Jobs[i]
		n.Jobs, n.Users, n.Apps = append(n.Jobs, j.ID), append(n.Users, j.User), append(n.Apps, j.App)
	}
	return n
}

// exclusions answers the feed of forwarders that the batch system keeps out of allocation.
type exclusions struct {
	desk interface {
		Feed() remap.Feed
		AwaitFeed(ctx context.Context, known uint64) (remap.Feed, error)
		Exclude(ctx context.Context, by remap.Person, f topology.ForwarderID, ttl time.Duration,
			a remap.Answer) (remap.Exclusion, error)
		Maintain(ctx context.Context, by remap.Person, f topology.ForwarderID, from time.Time, ttl time.Duration,
			a remap.Answer) (remap.Exclusion, error)
		Return(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) error
	}
}

// get answers the feed. ?generation=N waits until the list is another one than that, at
// most half a lease. If-None-Match is answered 304 with the new lease in the header.
func (h *exclusions) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	f := h.desk.Feed()
	if text := r.URL.Query().Get("generation"); text != "" {
		known, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: generation=%q; want the number of a list that you have", api.ErrInvalid, text)
		}
		if f, err = h.desk.AwaitFeed(r.Context(), known); err != nil {
			return fromDesk(err)
		}
	}
	tag := fmt.Sprintf(`"%d"`, f.Generation)
	w.Header().Set("ETag", tag)
	w.Header().Set("Fairway-Valid-Until", f.ValidUntil.Format(time.RFC3339))
	if r.Header.Get("If-None-Match") == tag {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return api.WriteJSON(w, f)
}

func (h *exclusions) put(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.Exclude
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return fmt.Errorf("%w: ttl %q; want how long, such as 4h", api.ErrInvalid, in.TTL)
	}
	a := answerOf(r, in.Reason)
	f := topology.ForwarderID(r.PathValue("node"))
	var e remap.Exclusion
	switch {
	case in.Maintenance:
		e, err = h.desk.Maintain(r.Context(), by.Person, f, in.From, ttl, a)
	case !in.From.IsZero():
		err = fmt.Errorf("%w: from: only maintenance is planned ahead", api.ErrInvalid)
	default:
		e, err = h.desk.Exclude(r.Context(), by.Person, f, ttl, a)
	}
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, e)
}

func (h *exclusions) remove(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	a := answerOf(r, r.URL.Query().Get("reason"))
	if err := h.desk.Return(r.Context(), by.Person, topology.ForwarderID(r.PathValue("node")), a); err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, h.desk.Feed())
}

// alerts answers who is called, and how delivery goes.
type alerts struct {
	sender *alert.Sender // nil: nobody is called
}

func (h *alerts) get(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	out := api.Alerts{Receivers: []alert.Status{}}
	if h.sender != nil {
		out.Receivers, out.Open = h.sender.Status()
	}
	return api.WriteJSON(w, out)
}

func (h *alerts) test(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	if h.sender == nil {
		return fromDesk(alert.ErrNoReceiver)
	}
	if err := h.sender.Test(r.Context(), by.Person); err != nil {
		return fromDesk(err)
	}
	return h.get(w, r, by)
}
