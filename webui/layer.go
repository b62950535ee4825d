package webui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/desk"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
	"fairway/webui/report"
)

// layer answers the machine and its newest second.
type layer struct {
	picture *live.Picture
	ingest  *ingest.Hub
}

func (h *layer) machine(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	snap := h.picture.Snapshot()
	v := api.MachineView{Machine: *snap.Machine, Generation: snap.Generation, Observed: snap.Situation.Observed,
		Simulated: snap.Overview.Simulated}
	if v.Nodes == nil {
		v.Nodes = []topology.Node{}
	}
	if v.Default == nil {
		v.Default = topology.Mapping{}
	}
	return api.WriteJSON(w, v)
}

func (h *layer) overview(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	mine := asking(by, h.picture)
	if err := mine.onlyNow(r); err != nil {
		return err
	}
	at, err := past(r)
	if err != nil {
		return err
	}
	o := h.picture.Snapshot().Overview
	if !at.IsZero() {
		if o, err = h.picture.OverviewAt(r.Context(), at); err != nil {
			return err
		}
	}
	o = mine.overview(o)
	o.User, o.Role = by.Name, string(by.Role)
	return api.WriteJSON(w, o)
}

// trend is the layer's last minutes.
func (h *layer) trend(w http.ResponseWriter, _ *http.Request, by access.Caller) error {
	return api.WriteJSON(w, asking(by, h.picture).trend(h.picture.Trend()))
}

func (h *layer) nodes(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	q := r.URL.Query()
	keep := func(topology.Node) bool { return true }
	if text := q.Get("role"); text != "" {
		role, ok := topology.ParseRole(text)
		if !ok {
			return fmt.Errorf("%w: role %q; there are compute, forwarder, storage and metadata", api.ErrInvalid,
				text)
		}
		keep = func(n topology.Node) bool { return n.Role == role }
	}
	if q.Get("names") == "1" {
		names := []topology.NodeID{}
		for _, n := range h.picture.Snapshot().Machine.Nodes {
			if keep(n) {
				names = append(names, n.ID)
			}
		}
		return api.WriteJSON(w, names)
	}
	rows := h.nodesBy(keep)
	addMost(h.picture, rows)
	if health := q.Get("health"); health != "" {
		rows = slices.DeleteFunc(rows, func(n api.NodeRow) bool { return string(n.State) != health })
	}
	return api.WriteJSON(w, rows)
}

// nodesBy are the nodes that pass keep, with the way that each comes.
func (h *layer) nodesBy(keep func(topology.Node) bool) []api.NodeRow {
	rows := h.picture.Nodes(keep)
	for i := range rows {
		rows[i].Way = wayOf(h.ingest, rows[i].ID)
	}
	return rows
}

// addMost names who does most at each server and forwarder.
func addMost(p *live.Picture, rows []api.NodeRow) {
	var of []topology.NodeID
	for i := range rows {
		if rows[i].Role != topology.Compute {
			of = append(of, rows[i].ID)
		}
	}
	if len(of) == 0 {
		return
	}
	uses := live.Uses(p, of)
	for i := range rows {
		if u, ok := uses[rows[i].ID]; ok && rows[i].Role != topology.Compute {
			rows[i].Attributed, rows[i].Most = u.Attributed, u.Most()
		}
	}
}

// wayOf is how a node's frames come; nil where its own agent is not connected.
func wayOf(hub *ingest.Hub, n topology.NodeID) *api.NodeWay {
	late, ok := hub.Late(n)
	if !ok {
		return nil
	}
	return &api.NodeWay{LateSeconds: late.Seconds()}
}

func (h *layer) node(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	id := topology.NodeID(r.PathValue("id"))
	rows := h.nodesBy(func(n topology.Node) bool { return n.ID == id })
	uses, used := live.Uses(h.picture, []topology.NodeID{id})[id]
	if len(rows) == 0 && !used {
		return fmt.Errorf("node %q: %w", id, api.ErrNotFound)
	}
	v := api.NodeView{NodeRow: api.NodeRow{ID: id, Role: topology.Storage, State: api.StateOK, // a storage target
		Values: map[string]float64{}}}
	if len(rows) > 0 {
		v = api.NodeView{NodeRow: rows[0], Sources: h.picture.Sources(id)}
	}
	if used && v.Role != topology.Compute {
		v.Uses = &uses
	}
	if v.Sources == nil {
		v.Sources = []collector.SourceStatus{}
	}
	return api.WriteJSON(w, v)
}

// mostJobs bounds the interference matrix: it has the square of it in cells.
const mostJobs = 60

// FlowView is a flow, and how many of its smaller links are left out.
type FlowView struct {
	live.Flow
	Left int `json:"left"`
	// Targets are the uses of those that were asked for, which come without links; absent where nobody counts them.
	Targets []api.TargetUse `json:"targets,omitzero"`
}

// mostTargets may be asked for at once.
const mostTargets = 64

func (h *layer) flow(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	if names := r.URL.Query()["target"]; len(names) > 0 {
		var of []topology.NodeID
		for _, n := range names[:min(len(names), mostTargets)] {
			of = append(of, topology.NodeID(n))
		}
		return api.WriteJSON(w, FlowView{Flow: live.Flow{At: h.picture.Snapshot().Overview.At, Links: []live.Link{},
			Storage: []live.StorageLink{}}, Targets: live.TargetUses(h.picture, of)})
	}
	v := FlowView{Flow: h.picture.Flow()}
	if j := r.URL.Query().Get("job"); j != "" {
		v.Flow = v.OfJob(topology.JobID(j))
	}
	v.Left = max(0, len(v.Links)-limit) + max(0, len(v.Storage)-limit)
	v.Links, v.Storage = v.Links[:min(limit, len(v.Links))], v.Storage[:min(limit, len(v.Storage))]
	return api.WriteJSON(w, v)
}

func (h *layer) interference(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, h.picture.Interference(h.picture.Flow(), mostJobs))
}

// forwarders answers one forwarder's page.
type forwarders struct {
	picture  *live.Picture
	ingest   *ingest.Hub
	desk     *desk.Desk
	rules    anomaly.Settings // of a finding's life
	canaries *desk.Canaries   // nil: no way to send any
}

func (h *forwarders) get(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	mine := asking(by, h.picture)
	if err := mine.onlyNow(r); err != nil {
		return err
	}
	at, err := past(r)
	if err != nil {
		return err
	}
	id := topology.ForwarderID(r.PathValue("id"))
	var d api.ForwarderDetail
	if at.IsZero() {
		d, err = h.picture.Forwarder(r.Context(), id, r.URL.Query().Get("series") != "0")
	} else {
		d, err = h.picture.ForwarderAt(r.Context(), id, at)
	}
	if err != nil {
		return err
	}
	if d.Life, err = h.life(r.Context(), id, at); err != nil {
		return err
	}
	if at.IsZero() {
		for i := range d.ClientNodes {
			d.ClientNodes[i].Way = wayOf(h.ingest, d.ClientNodes[i].ID)
		}
		o := h.desk.ForwarderOptions(by.Person, h.picture.Snapshot().Situation, h.noCanary)(id)
		d.Options = &o
		d.Targets = advise.Targets(h.picture.Snapshot().Situation, id, h.desk.Promised())
	}
	if d, err = mine.forwarder(d); err != nil {
		return err
	}
	return api.WriteJSON(w, d)
}

// noCanary says why no canary can be sent through a forwarder; empty: one can, within the sender's limits.
func (h *forwarders) noCanary(topology.ForwarderID) string {
	if h.canaries == nil {
		return "this daemon knows no way to send canaries; set probe.export or probe.mounts in its file"
	}
	return ""
}

// life is what is known of a forwarder's findings; of the past only those that had ended by then.
func (h *forwarders) life(ctx context.Context, id topology.ForwarderID, at time.Time) (*api.ForwarderLife, error) {
	all, err := h.desk.FindingsOf(ctx, id.Node())
	if err != nil {
		return nil, fromDesk(err)
	}
	life := &api.ForwarderLife{Steps: []anomaly.Step{}}
	for i := range all {
		f := &all[i]
		switch {
		// what it was then is its finding's, among those of that second
		case !at.IsZero() && (f.Open() || f.Changed.After(at)):
		case f.Open() && (len(life.Steps) == 0 || f.Kind.Accuses()):
			if life.Steps = f.Steps; len(f.Steps) == 0 { // of a daemon that did not keep them
				life.Steps = []anomaly.Step{{State: f.State, At: f.Changed}}
			}
			life.Next, life.NextFrom = h.rules.Next(f)
		case !f.Open():
			life.Earlier++
			if life.Last == nil || f.Since.After(life.Last.Since) {
				life.Last, life.LastWords = f, remap.FindingWords(f)
			}
		}
	}
	return life, nil
}

// canary sends one canary through a forwarder and answers what it found.
func (h *forwarders) canary(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	if why := h.noCanary(""); why != "" {
		return fmt.Errorf("%w: %s", api.ErrConflict, why)
	}
	var in api.Decision
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	c, err := h.canaries.Ask(r.Context(), by.Person, topology.ForwarderID(r.PathValue("id")), answerOf(r, in.Reason))
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, c)
}

// replay answers the past: what happened when, and the cells of one second.
type replay struct {
	picture *live.Picture
	grids   *live.Grids
	jobs    interface {
		Ended(limit int) ([]history.Run, error)
		Job(id topology.JobID) (history.Run, bool, error)
	}
}

// markSpan is what is listed without a start.
const markSpan = time.Hour

// marks lists what happened in a range: the points that a replay jumps to and a plot shows.
func (h *replay) marks(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	from, to, err := parseRange(r, markSpan)
	if err != nil {
		return err
	}
	marks, err := h.picture.Marks(r.Context(), from, to)
	if err != nil {
		return err
	}
	jobs, err := h.jobMarks(from, to)
	if err != nil {
		return err
	}
	marks = append(marks, jobs...)
	slices.SortStableFunc(marks, func(a, b remap.Mark) int { return a.At.Compare(b.At) })
	return api.WriteJSON(w, marks[max(0, len(marks)-limit):])
}

// markJobs is how many ended jobs are looked at for marks.
const markJobs = 500

// jobMarks lists the starts and ends of jobs, with the forwarders that served them.
func (h *replay) jobMarks(from, to time.Time) (marks []remap.Mark, err error) {
	runs, err := h.jobs.Ended(markJobs)
	if err != nil {
		return nil, err
	}
	for _, j := range h.picture.Snapshot().Situation.Jobs {
		if run, ok, err := h.jobs.Job(j.ID); err == nil && ok {
			runs = append(runs, run)
		}
	}
	for i := range runs {
		r := &runs[i]
		for at, what := range map[time.Time]string{r.Start: "starts", r.End: "ends"} {
			if !at.IsZero() && !at.Before(from) && at.Before(to) {
				marks = append(marks, remap.Mark{At: at, Kind: "job", ID: string(r.Job),
					Text:       fmt.Sprintf("%s: %s, %s", what, r.App, anomaly.Counted(r.Nodes, "node")),
					Forwarders: r.Forwarders})
			}
		}
	}
	return marks, nil
}

// grid answers the cells of all compute nodes in one past second, as the live feed's frames are.
func (h *replay) grid(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	at, err := past(r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("metric")
	metric := gridMetric(name)
	switch {
	case metric < 0:
		return fmt.Errorf("%w: metric %q; there are bw, mdops, latency and err", api.ErrInvalid, name)
	case at.IsZero():
		return fmt.Errorf("%w: at is missing; the present comes over /api/v1/live", api.ErrInvalid)
	}
	frame, err := h.grids.FrameAt(r.Context(), metric, at)
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Length", strconv.Itoa(len(frame)))
	head.Set("Cache-Control", "no-store")
	_, _ = w.Write(frame) // the reader is gone when this fails
	return nil
}

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
