package webui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// layer answers the machine and its newest second.
type layer struct{ *parts }

func (h layer) machine(_ *http.Request, _ access.Caller) (v api.MachineView, err error) {
	snap := h.Picture.Snapshot()
	v = api.MachineView{Machine: *snap.Machine, Generation: snap.Generation, Observed: snap.Situation.Observed,
		Simulated: snap.Overview.Simulated}
	v.Nodes = api.ListOf(v.Nodes)
	if v.Default == nil {
		v.Default = topology.Mapping{}
	}
	return v, nil
}

func (h layer) overview(r *http.Request, by access.Caller) (v api.Overview, err error) {
	mine, at, err := h.askingAt(r, by)
	if err != nil {
		return v, err
	}
	o := h.Picture.Snapshot().Overview
	if !at.IsZero() {
		if o, err = h.Picture.OverviewAt(r.Context(), at); err != nil {
			return v, err
		}
	}
	o = mine.overview(o)
	o.User, o.Role = by.Name, string(by.Role)
	return o, nil
}

// trend is the layer's last minutes.
func (h layer) trend(_ *http.Request, by access.Caller) (v api.Trend, err error) {
	return h.asking(by).trend(h.Picture.Trend()), nil
}

// nodes answers their newest second, or with names=1 their names alone.
func (h layer) nodes(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
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
		for _, n := range h.Picture.Snapshot().Machine.Nodes {
			if keep(n) {
				names = append(names, n.ID)
			}
		}
		return api.WriteJSON(w, names)
	}
	rows := h.nodesBy(keep)
	addMost(h.Picture, rows)
	if health := q.Get("health"); health != "" {
		rows = slices.DeleteFunc(rows, func(n api.NodeRow) bool { return string(n.State) != health })
	}
	return api.WriteJSON(w, rows)
}

// nodesBy are the nodes that pass keep, with the way that each comes.
func (h layer) nodesBy(keep func(topology.Node) bool) []api.NodeRow {
	rows := h.Picture.Nodes(keep)
	for i := range rows {
		rows[i].Way = wayOf(h.Ingest, rows[i].ID)
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

func (h layer) node(r *http.Request, _ access.Caller) (v api.NodeView, err error) {
	id := topology.NodeID(r.PathValue("id"))
	rows := h.nodesBy(func(n topology.Node) bool { return n.ID == id })
	uses, used := live.Uses(h.Picture, []topology.NodeID{id})[id]
	if len(rows) == 0 && !used {
		return v, fmt.Errorf("node %q: %w", id, api.ErrNotFound)
	}
	v = api.NodeView{NodeRow: api.NodeRow{ID: id, Role: topology.Storage, State: remap.ForwarderOK, // a storage target
		Values: map[string]float64{}}}
	if len(rows) > 0 {
		v = api.NodeView{NodeRow: rows[0], Sources: h.Picture.Sources(id)}
	}
	if used && v.Role != topology.Compute {
		v.Uses = &uses
	}
	v.Sources = api.ListOf(v.Sources)
	return v, nil
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

func (h layer) flow(r *http.Request, _ access.Caller, limit int) (v FlowView, err error) {
	if names := r.URL.Query()["target"]; len(names) > 0 {
		var of []topology.NodeID
		for _, n := range names[:min(len(names), mostTargets)] {
			of = append(of, topology.NodeID(n))
		}
		return FlowView{Flow: live.Flow{At: h.Picture.Snapshot().Overview.At, Links: []live.Link{},
			Storage: []live.StorageLink{}}, Targets: live.TargetUses(h.Picture, of)}, nil
	}
	v = FlowView{Flow: h.Picture.Flow()}
	if j := r.URL.Query().Get("job"); j != "" {
		v.Flow = v.OfJob(topology.JobID(j))
	}
	v.Left = max(0, len(v.Links)-limit) + max(0, len(v.Storage)-limit)
	v.Links, v.Storage = v.Links[:min(limit, len(v.Links))], v.Storage[:min(limit, len(v.Storage))]
	return v, nil
}

func (h layer) interference(_ *http.Request, _ access.Caller) (v live.Interference, err error) {
	return h.Picture.Interference(h.Picture.Flow(), mostJobs), nil
}

// forwarders answers one forwarder's page.
type forwarders struct{ *parts }

func (h forwarders) get(r *http.Request, by access.Caller) (v api.ForwarderDetail, err error) {
	mine, at, err := h.askingAt(r, by)
	if err != nil {
		return v, err
	}
	id := topology.ForwarderID(r.PathValue("id"))
	var d api.ForwarderDetail
	if at.IsZero() {
		d, err = h.Picture.Forwarder(r.Context(), id, r.URL.Query().Get("series") != "0")
	} else {
		d, err = h.Picture.ForwarderAt(r.Context(), id, at)
	}
	if err != nil {
		return v, err
	}
	if d.Life, err = h.life(r.Context(), id, at); err != nil {
		return v, err
	}
	if at.IsZero() {
		for i := range d.ClientNodes {
			d.ClientNodes[i].Way = wayOf(h.Ingest, d.ClientNodes[i].ID)
		}
		d.Options = new(h.Desk.ForwarderOptions(by.Person, h.Picture.Snapshot().Situation, h.noCanary)(id))
		d.Targets = advise.Targets(h.Picture.Snapshot().Situation, id, h.Desk.Promised())
	}
	return mine.forwarder(d)
}

// noCanary says why no canary can be sent through a forwarder; empty: one can, within the sender's limits.
func (h forwarders) noCanary(topology.ForwarderID) string {
	if h.Canaries == nil {
		return "this daemon knows no way to send canaries; set probe.export or probe.mounts in its file"
	}
	return ""
}

// life is what is known of a forwarder's findings; of the past only those that had ended by then.
func (h forwarders) life(ctx context.Context, id topology.ForwarderID, at time.Time) (*api.ForwarderLife, error) {
	all, err := h.Desk.FindingsOf(ctx, id.Node())
	if err != nil {
		return nil, err
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
			life.Next, life.NextFrom = h.Config.Findings.Next(f)
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
func (h forwarders) canary(r *http.Request, by access.Caller, in api.Decision) (v anomaly.Canary, err error) {
	if why := h.noCanary(""); why != "" {
		return v, fmt.Errorf("%w: %s", api.ErrConflict, why)
	}
	return h.Canaries.Ask(r.Context(), by.Person, topology.ForwarderID(r.PathValue("id")), answerOf(r, in.Reason))
}
