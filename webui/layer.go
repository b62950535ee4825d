package webui

import (
	"fmt"
	"net/http"
	"slices"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
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
	if len(rows) == 0 {
		return fmt.Errorf("node %q: %w", id, api.ErrNotFound)
	}
	v := api.NodeView{NodeRow: rows[0], Sources: h.picture.Sources(id)}
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
