package webui

import (
	"errors"
	"fmt"
	"net/http"

	"fairway/collector/ingest"
	"fairway/collector/wire"
	"fairway/webui/access"
	"fairway/webui/api"
)

// agents takes frames from agents and lines from others' collectors.
type agents struct{ ingest *ingest.Hub }

func (h *agents) stream(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	h.ingest.Serve(w, r, *by.Speaker)
	return nil
}

// lines is InfluxDB's v2 write API, for others' collectors.
func (h *agents) lines(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	err := h.ingest.Post(w, r, *by.Speaker)
	var busy ingest.Busy
	var refusal wire.Reject
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.As(err, &busy):
		return api.Later{Err: fmt.Errorf("%w: %s", api.ErrTooOften, busy.Text), After: busy.Wait}
	case !errors.As(err, &refusal):
		return fmt.Errorf("%w: %w", api.ErrUnreachable, err)
	}
	switch refusal.Code {
	case wire.RejectLimit:
		return fmt.Errorf("%w: %s", api.ErrTooLarge, refusal.Text)
	case wire.RejectForbidden:
		return fmt.Errorf("%w: %s", api.ErrNotAllowed, refusal.Text)
	}
	return fmt.Errorf("%w: %s", api.ErrInvalid, refusal.Text)
}
