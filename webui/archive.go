package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
	"fairway/webui/access"
	"fairway/webui/api"
)

// archives answers questions about I/O logs in SQL, and explains jobs' I/O times from them.
type archives struct {
	archive Archive
	jobs    *jobs
	records records
	mounts  rootcause.Mounts
}

// Archive answers questions about the site's I/O logs.
type Archive interface {
	Ask(ctx context.Context, q iolog.Question, limit int) (iolog.Result, error)
	JobLogs(ctx context.Context, run history.Run) ([]iolog.Log, error)
	Around(ctx context.Context, j *iolog.Job) (iolog.Around, error)
}

// Bounds of one question.
const (
	archiveTimeout = 30 * time.Second
	archiveRows    = 10_000
	// maxCritical is how many critical files of one direction are sent.
	maxCritical = 5_000
)

func listAnalyses(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, iolog.Analyses)
}

// getAnalysis answers a named analysis; every parameter of the query is one of its own.
func (h *archives) named(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	a, ok := iolog.Named(r.PathValue("name"))
	if !ok {
		return fmt.Errorf("analysis %q: %w; GET /api/v1/archive lists them", r.PathValue("name"), api.ErrNotFound)
	}
	params := map[string]string{}
	for name, values := range r.URL.Query() {
		params[name] = values[0]
	}
	return h.answer(w, r, iolog.Question{Analysis: a, Params: params}, archiveRows)
}

// getArchiveSQL answers one SELECT. Rows hold users' paths, so it takes an operator.
func (h *archives) sql(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	limit := archiveRows
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > archiveRows {
			return fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, archiveRows)
		}
		limit = n
	}
	return h.answer(w, r, iolog.Question{SQL: r.URL.Query().Get("q")}, limit)
}

func (h *archives) answer(w http.ResponseWriter, r *http.Request, q iolog.Question, limit int) error {
	ctx, cancel := context.WithTimeout(r.Context(), archiveTimeout)
	defer cancel()
	res, err := h.archive.Ask(ctx, q, limit)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: it was ended after %s; ask for fewer days, columns or rows", api.ErrInvalid,
			archiveTimeout)
	case errors.Is(err, iolog.ErrQuery):
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	case err != nil:
		return err
	}
	return api.WriteJSON(w, res)
}
