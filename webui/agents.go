package webui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// agents takes frames from agents and lines from others' collectors.
type agents struct {
	ingest *ingest.Hub
	gate   *access.Gate
	desk   truster
	log    *slog.Logger

	mu       sync.Mutex     // guards enrolled
	enrolled map[string]int // by join token, how many nodes it has brought since the start
}

// truster keeps who may speak for a node.
type truster interface {
	Enrolled(ctx context.Context, by remap.Person, n topology.NodeID, remote string) error
	RevokeNodes(ctx context.Context, by remap.Person, nodes map[topology.NodeID]time.Time, a remap.Answer) error
}

// enrolmentsOf is how many tokens nodes get by one join token until the daemon starts again: each is a record.
const enrolmentsOf = 1 << 17

func (h *agents) stream(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	h.ingest.Serve(w, r, *by.Speaker)
	return nil
}

// enrol answers a node's own token to whoever has a join token for it. A node whose agent is connected has one already.
func (h *agents) enrol(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var ask api.Enrolment
	if err := api.ReadJSON(w, r, &ask); err != nil {
		return err
	}
	if h.ingest.HasAgent(ask.Node) {
		return fmt.Errorf("%w: the agent of %s is connected; stop it before it is enrolled anew", api.ErrNotAllowed,
			ask.Node)
	}
	token, err := h.gate.Enrol(by, ask.Node)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.enrolled[by.Name]++
	many := h.enrolled[by.Name] > enrolmentsOf
	h.mu.Unlock()
	if many {
		return fmt.Errorf("%w: %d nodes have enrolled as %s; make another join token", api.ErrNotAllowed, enrolmentsOf,
			by.Name)
	}
	if err := h.desk.Enrolled(r.Context(), by.Person, ask.Node, by.Remote); err != nil {
		return fromDesk(err)
	}
	h.log.Info("a node has enrolled", "node", ask.Node, "by", by.Name, "remote", by.Remote)
	return api.WriteJSON(w, api.Enrolled{Node: ask.Node, Token: token})
}

// revoke refuses nodes' tokens from now on.
func (h *agents) revoke(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var ask api.Revocation
	if err := api.ReadJSON(w, r, &ask); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second) // as tokens say when they were issued
	for n, until := range ask.Nodes {
		if until.IsZero() || until.After(now) {
			ask.Nodes[n] = now
		}
	}
	if err := h.desk.RevokeNodes(r.Context(), by.Person, ask.Nodes, answerOf(r, "")); err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, ask)
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
