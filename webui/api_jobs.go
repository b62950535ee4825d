package webui

import (
	"fmt"
	"net/http"
	"time"

	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

func (s *Server) jobs() (*dispatch.Dispatcher, error) {
	if s.cfg.Jobs == nil {
		return nil, fmt.Errorf("%w: this daemon keeps no jobs", console.ErrUnreachable)
	}
	return s.cfg.Jobs, nil
}

// JobRow is a job in a list. An ended one has no nodes any more, only their number.
type JobRow struct {
	remap.Job
	NodeCount int       `json:"node_count"`
	End       time.Time `json:"end,omitzero"`
}

func jobRow(r *history.Run) JobRow {
	nodes := r.NodeList
	if nodes == nil {
		nodes = []topology.NodeID{}
	}
	return JobRow{Job: remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: nodes, Start: r.Start}, NodeCount: r.Nodes, End: r.End}
}

func (s *Server) getJobs(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	rows := []JobRow{}
	switch state := r.URL.Query().Get("state"); state {
	case "", "running":
		jobs := s.cfg.Picture.Snapshot().Situation.Jobs
		for _, j := range jobs[:min(limit, len(jobs))] {
			rows = append(rows, JobRow{Job: j, NodeCount: len(j.Nodes)})
		}
	case "ended":
		jobs, err := s.jobs()
		if err != nil {
			return err
		}
		runs, err := jobs.Ended(limit)
		if err != nil {
			return err
		}
		for i := range runs {
			rows = append(rows, jobRow(&runs[i]))
		}
	default:
		return fmt.Errorf("%w: state=%q; there are running and ended", console.ErrInvalid, state)
	}
	return writeJSON(w, rows)
}

// JobView is one job, where its nodes are while it runs, and its plans.
type JobView struct {
	JobRow
	Forwarders map[topology.ForwarderID]int `json:"forwarders"` // with the number of the job's nodes on each now
	Plans      []string                     `json:"plans"`      // newest first
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request, _ who) error {
	id := topology.JobID(r.PathValue("id"))
	v := JobView{Forwarders: map[topology.ForwarderID]int{}, Plans: []string{}}
	run, err := s.run(id)
	if err != nil {
		return err
	}
	v.JobRow = jobRow(&run)
	if run.End.IsZero() {
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
		err = fmt.Errorf("job %q: %w; neither runs nor is in the history", id, console.ErrNotFound)
	}
	return run, err
}

// ProfileView is what a job did.
type ProfileView struct {
	JobRow
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
	return writeJSON(w, ProfileView{JobRow: jobRow(&run), Served: run.Forwarders, Pending: run.Pending, Profile: run.Profile})
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
