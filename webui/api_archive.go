package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/remap/journal"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
)

// Archive answers questions about the site's I/O logs.
type Archive interface {
	Ask(ctx context.Context, q iolog.Question, limit int) (iolog.Result, error)
	JobLogs(ctx context.Context, job topology.JobID) ([]iolog.Log, error)
	Around(ctx context.Context, j *iolog.Job) (iolog.Around, error)
}

// Bounds of one question.
const (
	archiveTimeout = 30 * time.Second
	archiveRows    = 10_000
	// maxCritical is how many critical files of one direction are sent.
	maxCritical = 5_000
)

func (s *Server) archive() (Archive, error) {
	if s.cfg.Archive == nil {
		return nil, fmt.Errorf("%w: this daemon keeps no I/O-log archive", api.ErrUnreachable)
	}
	return s.cfg.Archive, nil
}

func (s *Server) getAnalyses(w http.ResponseWriter, _ *http.Request, _ who) error {
	return writeJSON(w, iolog.Analyses)
}

// getAnalysis answers a named analysis; every parameter of the query is one of its own.
func (s *Server) getAnalysis(w http.ResponseWriter, r *http.Request, _ who) error {
	a, ok := iolog.Named(r.PathValue("name"))
	if !ok {
		return fmt.Errorf("analysis %q: %w; GET /api/v1/archive lists them", r.PathValue("name"), api.ErrNotFound)
	}
	params := map[string]string{}
	for name, values := range r.URL.Query() {
		params[name] = values[0]
	}
	return s.answer(w, r, iolog.Question{Analysis: a, Params: params}, archiveRows)
}

// getArchiveSQL answers one SELECT. Rows hold users' paths, so it takes an operator.
func (s *Server) getArchiveSQL(w http.ResponseWriter, r *http.Request, _ who) error {
	limit := archiveRows
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > archiveRows {
			return fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, archiveRows)
		}
		limit = n
	}
	return s.answer(w, r, iolog.Question{SQL: r.URL.Query().Get("q")}, limit)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, q iolog.Question, limit int) error {
	a, err := s.archive()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), archiveTimeout)
	defer cancel()
	res, err := a.Ask(ctx, q, limit)
	if errors.Is(err, iolog.ErrQuery) {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, res)
}

func (s *Server) getRootCause(w http.ResponseWriter, r *http.Request, _ who) error {
	a, err := s.archive()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), archiveTimeout)
	defer cancel()
	id := topology.JobID(r.PathValue("id"))
	logs, err := a.JobLogs(ctx, id)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return fmt.Errorf("job %q: %w: no log of it is in the archive", id, api.ErrNotFound)
	}
	run, err := s.run(id)
	if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnreachable) {
		return err
	}
	if run.Forwarders == nil && run.End.IsZero() {
		run.Forwarders = s.observedForwarders(run.NodeList)
	}
	v := api.JobCause{Job: id, Forwarders: run.Forwarders, Logs: []api.LogCause{}}
	for i := range logs {
		cause, err := s.explain(ctx, a, &logs[i], &run)
		if err != nil {
			return err
		}
		v.Logs = append(v.Logs, cause)
	}
	return writeJSON(w, v)
}

// observedForwarders are those that nodes use now.
func (s *Server) observedForwarders(nodes []topology.NodeID) (out []topology.ForwarderID) {
	sit := s.cfg.Picture.Snapshot().Situation
	for _, n := range nodes {
		if f, ok := sit.Observed[n]; ok && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func (s *Server) explain(ctx context.Context, a Archive, l *iolog.Log, run *history.Run) (api.LogCause, error) {
	j := &l.Jobs[0]
	records, err := s.troubles(ctx, run.Forwarders, j.Start, j.End)
	if err != nil {
		return api.LogCause{}, err
	}
	around, err := a.Around(ctx, j)
	if err != nil {
		return api.LogCause{}, err
	}
	names := map[int64]string{}
	for _, f := range l.Files {
		names[f.ID] = f.Path
	}
	c := api.LogCause{Log: strconv.FormatInt(j.Log, 10), App: j.App, Procs: j.Procs, Start: j.Start, End: j.End}
	for op, to := range map[rootcause.Op]**rootcause.Answer{rootcause.Read: &c.Read, rootcause.Write: &c.Write} {
		job := rootcause.FromLog(j, l.JobFiles, names, op)
		if len(job.Files) == 0 {
			continue
		}
		job.Records, job.Mounts = records, s.cfg.Mounts
		job.FromAround(l, around)
		answer := rootcause.Explain(job, rootcause.Defaults())
		answer.Keep(maxCritical)
		*to = &answer
	}
	return c, nil
}

// troubles are what is known against the job's forwarders while it ran, on the job's own clock.
func (s *Server) troubles(ctx context.Context, forwarders []topology.ForwarderID, start,
	end time.Time) ([]rootcause.Record, error) {
	used := map[topology.NodeID]bool{}
	for _, f := range forwarders {
		used[f.Node()] = true
	}
	if len(used) == 0 {
		return nil, nil
	}
	now := time.Now()
	findings := s.cfg.Picture.Snapshot().Overview.Findings
	if s.cfg.Desk != nil {
		var err error
		if findings, err = s.cfg.Desk.Findings(ctx); err != nil {
			return nil, fromDesk(err)
		}
	}
	out := rootcause.FromFindings(findings, used, start, now)
	if s.cfg.Audit == nil {
		return out, nil
	}
	for n := range used {
		spans, err := s.withheld(ctx, topology.ForwarderID(n), start, end, now)
		if err != nil {
			return nil, err
		}
		out = append(out, spans...)
	}
	return out, nil
}

// withheld are the times between start and end for which a forwarder was excluded. A renewal is no
// new exclusion.
func (s *Server) withheld(ctx context.Context, f topology.ForwarderID, start, end,
	now time.Time) (out []rootcause.Record, err error) {
	var steps []*journal.Record
	err = s.audit(ctx, journal.Wanted{Subject: string(f)}, func(r *journal.Record) bool {
		if r.Exclusion != nil {
			steps = append(steps, r)
		}
		return true
	})
	var since time.Time
	until := func(t time.Time) {
		if !since.IsZero() && since.Before(end) && t.After(start) {
			out = append(out, rootcause.Record{Layer: topology.Forwarder, Node: string(f), What: rootcause.Withheld,
				Start: since.Sub(start).Seconds(), End: t.Sub(start).Seconds()})
		}
		since = time.Time{}
	}
	for _, r := range slices.Backward(steps) {
		switch {
		case r.Kind == journal.StepReturn:
			until(r.At)
		case since.IsZero():
			since = r.At
		}
	}
	until(now)
	return out, err
}
