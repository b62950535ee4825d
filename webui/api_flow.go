package webui

import (
	"net/http"

	"fairway/collector/topology"
	"fairway/webui/live"
)

// mostJobs bounds the interference matrix: it has the square of it in cells.
const mostJobs = 60

// FlowView is a flow, and how many of its smaller links are left out.
type FlowView struct {
	live.Flow
	Left int `json:"left"`
}

func (s *Server) getFlow(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	v := FlowView{Flow: s.cfg.Picture.Flow()}
	if j := r.URL.Query().Get("job"); j != "" {
		v.Flow = v.OfJob(topology.JobID(j))
	}
	v.Left = max(0, len(v.Links)-limit) + max(0, len(v.Storage)-limit)
	v.Links, v.Storage = v.Links[:min(limit, len(v.Links))], v.Storage[:min(limit, len(v.Storage))]
	return writeJSON(w, v)
}

func (s *Server) getInterference(w http.ResponseWriter, _ *http.Request, _ who) error {
	return writeJSON(w, s.cfg.Picture.Interference(s.cfg.Picture.Flow(), mostJobs))
}
