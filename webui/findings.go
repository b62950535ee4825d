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
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/incident"
	"fairway/webui/live"
)

// findings answers what the detectors found, and takes what persons say of it.
type findings struct{ *parts }

func (h findings) list(r *http.Request, by access.Caller) (v []anomaly.Finding, err error) {
	snap := h.Picture.Snapshot()
	all := ownOf(by.Person, snap.Situation).findings(slices.Clone(snap.Overview.Findings))
	switch state := r.URL.Query().Get("state"); state {
	case "":
	case "open":
		all = slices.DeleteFunc(all, func(f anomaly.Finding) bool { return !f.Open() })
	default:
		return v, fmt.Errorf("%w: state %q; there is open", api.ErrInvalid, state)
	}
	return api.ListOf(all), nil
}

// get answers one finding with its whole life, from the journal.
func (h findings) get(r *http.Request, by access.Caller) (v api.FindingView, err error) {
	if v, err = h.finding(r.Context(), r.PathValue("id")); err != nil {
		return v, err
	}
	if mine := ownOf(by.Person, h.Picture.Snapshot().Situation); mine != nil {
		seen := mine.findings([]anomaly.Finding{v.Finding})
		if len(seen) == 0 {
			return v, fmt.Errorf("finding %q: %w", v.ID, api.ErrNotFound)
		}
		v = api.FindingView{Finding: seen[0], Changes: []anomaly.Change{}}
	}
	if h.Shared != nil && v.Open() && v.Kind == anomaly.TargetSlow && by.Role.Includes(viewer) {
		v.Shared = &h.Shared([]topology.NodeID{v.Node})[0]
	}
	v.Options = remap.FindingOptions(by.Person, &v.Finding)
	return v, nil
}

func (h findings) finding(ctx context.Context, id string) (v api.FindingView, err error) {
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
	snap := h.Picture.Snapshot()
	for _, f := range snap.Situation.Findings {
		if f.ID == id && !f.Changed.Before(v.Changed) {
			v.Finding = f
		}
	}
	v.Card = snap.CardOf(&v.Finding)
	v.Sentence = advise.Sentence(&v.Finding)
	return v, err
}

func (h findings) acknowledge(r *http.Request, by access.Caller, in api.Decision) (anomaly.Finding, error) {
	return h.Review.Acknowledge(r.Context(), by.Person, r.PathValue("id"), answerOf(r, in.Reason))
}

func (h findings) dismiss(r *http.Request, by access.Caller, in api.Decision) (anomaly.Finding, error) {
	return h.Review.Dismiss(r.Context(), by.Person, r.PathValue("id"), answerOf(r, in.Reason))
}

func (h findings) note(r *http.Request, by access.Caller, in api.Note) (v anomaly.Finding, err error) {
	return h.Review.Note(r.Context(), by.Person, r.PathValue("id"), in.At, answerOf(r, in.Text))
}

func (h findings) silence(r *http.Request, by access.Caller, in api.Silence) (v anomaly.Finding, err error) {
	long, err := time.ParseDuration(in.For)
	if err != nil {
		return v, fmt.Errorf("%w: for %q; want how long, such as 4h, or 0s to end a silence", api.ErrInvalid, in.For)
	}
	return h.Review.Silence(r.Context(), by.Person, r.PathValue("id"), long, answerOf(r, in.Reason))
}

// incidents answers a finding with all that belongs to it.
type incidents struct{ *parts }

// get answers JSON, or with format=html a page for outsiders; stand_ins=true leaves every name out. With from or to the
// charts cover these instead of the time around the finding, at most a day.
func (h incidents) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	v, err := findings(h).finding(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var shown incident.Span
	if q := r.URL.Query(); q.Has("from") || q.Has("to") {
		if shown.From, shown.To, err = parseRange(r, time.Hour); err != nil {
			return err
		}
	}
	snap := h.Picture.Snapshot()
	inc, err := incident.Make(r.Context(), incident.Sources{Site: snap.Machine.Name, Version: h.Version,
		Situation: snap.Situation, Card: snap.CardOf(&v.Finding), Plan: h.Desk.Plan,
		Brought: h.Effect, Records: h.Desk.History,
		Entry: auditEntry, Store: h.Store, Shown: shown}, &v, time.Now())
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
func names(snap *live.Snapshot) incident.Names {
	n := incident.Names{}
	for _, node := range snap.Machine.Nodes {
		what := "node"
		if node.Role == topology.Forwarder {
			what = "forwarder"
		}
		n.Add(what, string(node.ID))
	}
	for i := range snap.Situation.Jobs {
		j := &snap.Situation.Jobs[i]
		n.Add("job", string(j.ID))
		n.Add("user", j.User)
		n.Add("application", j.App)
	}
	return n
}

// exclusions answers the feed of forwarders that the batch system keeps out of allocation.
type exclusions struct{ *parts }

// get answers the feed. ?generation=N waits until the list is another one than that, at
// most half a lease. If-None-Match is answered 304 with the new lease in the header.
func (h exclusions) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	f := h.Desk.Feed()
	if text := r.URL.Query().Get("generation"); text != "" {
		known, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: generation=%q; want the number of a list that you have", api.ErrInvalid, text)
		}
		if f, err = h.Desk.AwaitFeed(r.Context(), known); err != nil {
			return err
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

func (h exclusions) put(r *http.Request, by access.Caller, in api.Exclude) (v remap.Exclusion, err error) {
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return v, fmt.Errorf("%w: ttl %q; want how long, such as 4h", api.ErrInvalid, in.TTL)
	}
	a := answerOf(r, in.Reason)
	f := topology.ForwarderID(r.PathValue("node"))
	switch {
	case in.Maintenance:
		return h.Desk.Maintain(r.Context(), by.Person, f, in.From, ttl, a)
	case !in.From.IsZero():
		return v, fmt.Errorf("%w: from: only maintenance is planned ahead", api.ErrInvalid)
	}
	return h.Desk.Exclude(r.Context(), by.Person, f, ttl, a)
}

func (h exclusions) remove(r *http.Request, by access.Caller) (v remap.Feed, err error) {
	a := answerOf(r, r.URL.Query().Get("reason"))
	err = h.Desk.Return(r.Context(), by.Person, topology.ForwarderID(r.PathValue("node")), a)
	return h.Desk.Feed(), err
}

// alerts answers who is called, and how delivery goes.
type alerts struct{ *parts }

func (h alerts) get(*http.Request, access.Caller) (api.Alerts, error) {
	out := api.Alerts{Receivers: []alert.Status{}}
	if h.Alerts != nil {
		out.Receivers, out.Open = h.Alerts.Status()
	}
	return out, nil
}

func (h alerts) test(r *http.Request, by access.Caller) (api.Alerts, error) {
	if h.Alerts == nil {
		return api.Alerts{}, alert.ErrNoReceiver
	}
	if err := h.Alerts.Test(by.Person); err != nil {
		return api.Alerts{}, err
	}
	return h.get(r, by)
}
