package webui

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

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
