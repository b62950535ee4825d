package webui

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/remap"
	"fairway/webui/api"
)

// markSpan is what is listed when nobody says from when.
const markSpan = time.Hour

// getMarks lists what happened in a range: the points that a replay jumps to and a plot shows.
func (s *Server) getMarks(w http.ResponseWriter, r *http.Request, _ who) error {
	limit, err := parseLimit(r)
	if err != nil {
		return err
	}
	from, to, err := parseRange(r, markSpan)
	if err != nil {
		return err
	}
	marks, err := s.cfg.Picture.Marks(from, to)
	if err != nil {
		return err
	}
	jobs, err := s.jobMarks(from, to)
	if err != nil {
		return err
	}
	marks = append(marks, jobs...)
	slices.SortStableFunc(marks, func(a, b remap.Mark) int { return a.At.Compare(b.At) })
	return writeJSON(w, marks[max(0, len(marks)-limit):])
}

// markJobs is how many ended jobs are looked at for marks.
const markJobs = 500

// jobMarks lists the starts and ends of jobs, with the forwarders that served them.
func (s *Server) jobMarks(from, to time.Time) (marks []remap.Mark, err error) {
	if s.cfg.Jobs == nil {
		return nil, nil
	}
	runs, err := s.cfg.Jobs.Ended(markJobs)
	if err != nil {
		return nil, err
	}
	for _, j := range s.cfg.Picture.Snapshot().Situation.Jobs {
		if run, ok, err := s.cfg.Jobs.Job(j.ID); err == nil && ok {
			runs = append(runs, run)
		}
	}
	for i := range runs {
		r := &runs[i]
		for at, what := range map[time.Time]string{r.Start: "starts", r.End: "ends"} {
			if !at.IsZero() && !at.Before(from) && at.Before(to) {
				marks = append(marks, remap.Mark{At: at, Kind: "job", ID: string(r.Job),
					Text:       fmt.Sprintf("%s: %s, %s", what, r.App, api.Counted(r.Nodes, "node")),
					Forwarders: r.Forwarders})
			}
		}
	}
	return marks, nil
}

// getGrid answers the cells of all compute nodes in one past second, as the live feed's frames are.
func (s *Server) getGrid(w http.ResponseWriter, r *http.Request, _ who) error {
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
	frame, err := s.grids.FrameAt(r.Context(), metric, at)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(frame)))
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(frame) // the reader is gone when this fails
	return nil
}
