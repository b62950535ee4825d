package webui

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"fairway/console"
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
	return writeJSON(w, marks[max(0, len(marks)-limit):])
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
		return fmt.Errorf("%w: metric %q; there are bw, mdops, latency and err", console.ErrInvalid, name)
	case at.IsZero():
		return fmt.Errorf("%w: at is missing; the present comes over /api/v1/live", console.ErrInvalid)
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
