package webui

import (
	"net/http"

	"fairway/collector/topology"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// mostJobs bounds the interference matrix: it has the square of it in cells.
const mostJobs = 60

// FlowView is a flow, and how many of its smaller links are left out.
type FlowView struct {
	live.Flow
	Left int `json:"left"`
}

func (h *layer) flow(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
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
