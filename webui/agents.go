package webui

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"fairway/collector/ingest"
	"fairway/collector/wire"
	"fairway/webui/access"
	"fairway/webui/api"
)

// agents takes frames from agents and lines from others' collectors.
type agents struct {
	*parts

	mu       sync.Mutex     // guards enrolled
	enrolled map[string]int // by join token, how many nodes it has brought since the start
}

// enrolmentsOf is how many tokens nodes get by one join token until the daemon starts again: each is a record.
const enrolmentsOf = 1 << 17

func (h *agents) stream(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	h.Ingest.Serve(w, r, *by.Speaker)
	return nil
}

// enrol answers a node's own token to whoever has a join token for it. A node whose agent is connected has one already.
func (h *agents) enrol(r *http.Request, by access.Caller, ask api.Enrolment) (v api.Enrolled, err error) {
	if h.Ingest.HasAgent(ask.Node) {
		return v, fmt.Errorf("%w: the agent of %s is connected; stop it before it is enrolled anew", api.ErrNotAllowed,
			ask.Node)
	}
	token, err := h.gate.Enrol(by, ask.Node)
	if err != nil {
		return v, err
	}
	h.mu.Lock()
	h.enrolled[by.Name]++
	many := h.enrolled[by.Name] > enrolmentsOf
	h.mu.Unlock()
	if many {
		return v, fmt.Errorf("%w: %d nodes have enrolled as %s; make another join token", api.ErrNotAllowed,
			enrolmentsOf, by.Name)
	}
	if err := h.Desk.Enrolled(r.Context(), by.Person, ask.Node, by.Remote); err != nil {
		return v, err
	}
	h.Log.Info("a node has enrolled", "node", ask.Node, "by", by.Name, "remote", by.Remote)
	return api.Enrolled{Node: ask.Node, Token: token}, nil
}

// revoke refuses nodes' tokens from now on.
func (h *agents) revoke(r *http.Request, by access.Caller, ask api.Revocation) (v api.Revocation, err error) {
	now := time.Now()
	for n, until := range ask.Nodes {
		if until.IsZero() || until.After(now) {
			ask.Nodes[n] = h.gate.RevokeUntil(n, now)
		}
	}
	return ask, h.Desk.RevokeNodes(r.Context(), by.Person, ask.Nodes, answerOf(r, ""))
}

// lines is InfluxDB's v2 write API, for others' collectors.
func (h *agents) lines(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	err := h.Ingest.Post(w, r, *by.Speaker)
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
