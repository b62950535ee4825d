package webui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/tsdb"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/incident"
	"fairway/webui/live"
)

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
