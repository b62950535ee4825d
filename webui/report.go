package webui

import (
	"fmt"
	"net/http"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
	"fairway/webui/report"
)

// reports answers what happened in a week or a month.
type reports struct {
	picture *live.Picture
	store   tsdb.Store
	desk    *desk.Desk
	runs    func(visit func(history.Run) error) error // nil without a history
	version string
}

const (
	reportSpan = 7 * 24 * time.Hour
	// maxReportSpan bounds what one request adds up.
	maxReportSpan = 400 * 24 * time.Hour
)

func (h *reports) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	from, to, err := parseRange(r, reportSpan)
	if err != nil {
		return err
	}
	if to.Sub(from) > maxReportSpan {
		return fmt.Errorf("%w: from and to are %.0f days apart; want at most %.0f", api.ErrInvalid,
			to.Sub(from).Hours()/24, maxReportSpan.Hours()/24)
	}
	findings, err := h.desk.Findings(r.Context())
	if err != nil {
		return fromDesk(err)
	}
	snap := h.picture.Snapshot()
	now := map[string]*anomaly.Finding{} // what they cost grows between the journal's changes
	for i := range snap.Overview.Findings {
		now[snap.Overview.Findings[i].ID] = &snap.Overview.Findings[i]
	}
	s := report.Sources{Site: snap.Machine.Name, Version: h.version, Runs: h.runs, Records: h.desk.History,
		Plan: h.desk.Plan, Store: h.store}
	for i := range findings {
		f := &findings[i]
		if newer := now[f.ID]; newer != nil && !newer.Changed.Before(f.Changed) {
			f = newer
		}
		if f.Open() {
			s.Open = append(s.Open, *f)
		}
	}
	nodes, err := h.store.Nodes(r.Context())
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
