package webui

import (
	"fmt"
	"net/http"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

func (s *Server) jobs() (*dispatch.Dispatcher, error) {
	if s.cfg.Jobs == nil {
		return nil, fmt.Errorf("%w: this daemon keeps no jobs", api.ErrUnreachable)
	}
	return s.cfg.Jobs, nil
}

func jobRow(r *history.Run) api.JobRow {
	nodes := r.NodeList
	if nodes == nil {
		nodes = []topology.NodeID{}
	}
	return api.JobRow{Job: remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: nodes,
		Start: r.Start}, NodeCount: r.Nodes, End: r.End}
}

func (s *Server) getJobs(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	rows := []api.JobRow{}
	switch state := r.URL.Query().Get("state"); state {
	case "", "running", "ended", "all":
		if state != "ended" {
			jobs := s.cfg.Picture.Snapshot().Situation.Jobs
			for _, j := range jobs[:min(limit, len(jobs))] {
				rows = append(rows, api.JobRow{Job: j, NodeCount: len(j.Nodes)})
			}
		}
		if state == "ended" || state == "all" {
			if rows, err = s.endedJobs(rows, limit); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: state=%q; there are running, ended and all", api.ErrInvalid, state)
	}
	return writeJSON(w, rows)
}

// endedJobs adds those that ended last, the newest first, up to limit rows.
func (s *Server) endedJobs(rows []api.JobRow, limit int) ([]api.JobRow, error) {
	jobs, err := s.jobs()
	if err != nil {
		return nil, err
	}
	runs, err := jobs.Ended(limit)
	if err != nil {
		return nil, err
	}
	for i := range runs[:min(len(runs), max(0, limit-len(rows)))] {
		rows = append(rows, jobRow(&runs[i]))
	}
	return rows, nil
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request, _ who) error {
	id := topology.JobID(r.PathValue("id"))
	v := api.JobView{Forwarders: map[topology.ForwarderID]int{}, Plans: []string{},
		Neighbours: []api.Neighbour{}}
	run, err := s.run(id)
	if err != nil {
		return err
	}
	v.JobRow, v.Served, v.Pending, v.Profile = jobRow(&run), run.Forwarders, run.Pending, run.Profile
	if jobs, err := s.jobs(); err == nil {
		v.Decision = jobs.Decided(id)
	}
	if run.End.IsZero() {
		if jobs, err := s.jobs(); err == nil {
			v.SoFar, v.WatchedSince = jobs.SoFar(id)
		}
		v.Neighbours = neighbours(s.cfg.Picture, s.cfg.Picture.Snapshot().Situation.Jobs, id)
		v.ReadBytesPerSec, v.WriteBytesPerSec, v.MetaOpsPerSec = s.cfg.Picture.Load(v.Nodes)
		sit := s.cfg.Picture.Snapshot().Situation
		for _, n := range v.Nodes {
			if f, ok := sit.Observed[n]; ok {
				v.Forwarders[f]++
			}
		}
	}
	if s.cfg.Desk != nil {
		plans, err := s.cfg.Desk.OfJob(r.Context(), id)
		if err != nil {
			return fromDesk(err)
		}
		for i := range plans {
			v.Plans = append(v.Plans, plans[i].ID)
		}
	}
	return writeJSON(w, v)
}

// run finds a job that runs, or its newest ended run.
func (s *Server) run(id topology.JobID) (history.Run, error) {
	jobs, err := s.jobs()
	if err != nil {
		return history.Run{}, err
	}
	run, ok, err := jobs.Job(id)
	if err == nil && !ok {
		err = fmt.Errorf("job %q: %w; neither runs nor is in the history", id, api.ErrNotFound)
	}
	return run, err
}

// ProfileView is what a job did.
type ProfileView struct {
	api.JobRow
	Served []topology.ForwarderID `json:"served_by"` // forwarders, over the run
	// Pending says that the job has ended and its profile is being made.
	Pending bool `json:"pending"`
	// Profile is null for a job that runs, or of which nothing was collected.
	Profile *history.Profile `json:"profile"`
}

func (s *Server) getJobProfile(w http.ResponseWriter, r *http.Request, _ who) error {
	run, err := s.run(topology.JobID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return writeJSON(w, ProfileView{JobRow: jobRow(&run), Served: run.Forwarders, Pending: run.Pending,
		Profile: run.Profile})
}

func (s *Server) postDispatch(w http.ResponseWriter, r *http.Request, _ who) error {
	jobs, err := s.jobs()
	if err != nil {
		return err
	}
	var in dispatch.Request
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	a, err := jobs.Dispatch(r.Context(), in)
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, a)
}

func (s *Server) postJobEnd(w http.ResponseWriter, r *http.Request, _ who) error {
	jobs, err := s.jobs()
	if err != nil {
		return err
	}
	e, err := jobs.End(r.Context(), topology.JobID(r.PathValue("id")))
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, e)
}
