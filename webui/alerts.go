package webui

import (
	"net/http"

	"fairway/remap/alert"
	"fairway/webui/access"
	"fairway/webui/api"
)

// alerts answers who is called, and how delivery goes.
type alerts struct {
	sender *alert.Sender // nil: nobody is called
}

func (h *alerts) get(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	out := api.Alerts{Receivers: []alert.Status{}}
	if h.sender != nil {
		out.Receivers, out.Open = h.sender.Status()
	}
	return api.WriteJSON(w, out)
}

func (h *alerts) test(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	if h.sender == nil {
		return fromDesk(alert.ErrNoReceiver)
	}
	if err := h.sender.Test(r.Context(), by.Person); err != nil {
		return fromDesk(err)
	}
	return h.get(w, r, by)
}
