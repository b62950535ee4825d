package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/incident"
)

// Findings lists the open findings and those closed within an hour.
func (c *Client) Findings(ctx context.Context) ([]anomaly.Finding, error) {
	return get[[]anomaly.Finding](ctx, c, nil, "findings")
}

// Finding returns one finding with its life; ErrNotFound.
func (c *Client) Finding(ctx context.Context, id string) (api.FindingView, error) {
	return get[api.FindingView](ctx, c, nil, "findings", id)
}

// Incident returns a finding with all that belongs to it; with standIns no name in it is a real
// one. Errors: ErrNotFound.
func (c *Client) Incident(ctx context.Context, id string, standIns bool) (*incident.Incident, error) {
	q := url.Values{}
	if standIns {
		q.Set("stand_ins", "true")
	}
	return get[*incident.Incident](ctx, c, q, "findings", id, "incident")
}

// Acknowledge says that the caller looks after a finding. Errors: ErrNotAllowed, ErrNotFound.
func (c *Client) Acknowledge(ctx context.Context, id, reason string) (anomaly.Finding, error) {
	return send[anomaly.Finding](ctx, c, api.Decision{Reason: reason}, "findings", id, "ack")
}

// Dismiss says that a finding is not a fault. Errors: ErrNotAllowed, ErrNotFound, ErrInvalid (reason).
func (c *Client) Dismiss(ctx context.Context, id, reason string) (anomaly.Finding, error) {
	return send[anomaly.Finding](ctx, c, api.Decision{Reason: reason}, "findings", id, "dismiss")
}

// Silence keeps a finding from calling anybody for so long; 0 ends that. Errors:
// ErrNotAllowed, ErrNotFound, ErrInvalid.
func (c *Client) Silence(ctx context.Context, id string, long time.Duration, reason string) (anomaly.Finding, error) {
	return send[anomaly.Finding](ctx, c, api.Silence{For: long.String(), Reason: reason}, "findings", id, "silence")
}

// Note writes about a finding, and about which moment of it (zero: now). Errors: those of Dismiss.
func (c *Client) Note(ctx context.Context, id, text string, about time.Time) (anomaly.Finding, error) {
	return send[anomaly.Finding](ctx, c, api.Note{Text: text, At: about}, "findings", id, "notes")
}

// LastAct returns what the caller did last, and how it is taken back. Errors: ErrNotAllowed, ErrNotFound.
func (c *Client) LastAct(ctx context.Context) (api.LastAct, error) {
	return get[api.LastAct](ctx, c, nil, "undo")
}

// Undo takes back the act with that number, if it is still the last one. Errors: ErrChanged, ErrConflict.
func (c *Client) Undo(ctx context.Context, seq uint64) (api.LastAct, error) {
	return send[api.LastAct](ctx, c, api.Undo{Seq: seq}, "undo")
}

// Exclusions returns the feed.
func (c *Client) Exclusions(ctx context.Context) (remap.Feed, error) {
	return get[remap.Feed](ctx, c, nil, "exclusions")
}

// Exclude keeps a forwarder out of allocation for ttl. Errors: ErrNotAllowed, ErrInvalid, ErrConflict (the floor).
func (c *Client) Exclude(ctx context.Context, f topology.ForwarderID, ttl time.Duration,
	reason string) (remap.Exclusion, error) {
	return write[remap.Exclusion](ctx, c, http.MethodPut, api.Exclude{Reason: reason, TTL: ttl.String()}, nil,
		"exclusions", string(f))
}

// Maintain excludes a forwarder that is worked on, from now (the zero time) or later. Errors: those of Exclude.
func (c *Client) Maintain(ctx context.Context, f topology.ForwarderID, from time.Time, ttl time.Duration,
	reason string) (remap.Exclusion, error) {
	return write[remap.Exclusion](ctx, c, http.MethodPut, api.Exclude{Reason: reason, TTL: ttl.String(), From: from,
		Maintenance: true}, nil, "exclusions", string(f))
}

// Return takes a forwarder back into allocation. Errors: ErrNotAllowed, ErrNotFound.
func (c *Client) Return(ctx context.Context, f topology.ForwarderID, reason string) (remap.Feed, error) {
	return write[remap.Feed](ctx, c, http.MethodDelete, nil, url.Values{"reason": {reason}}, "exclusions", string(f))
}

// Canary sends one canary through a forwarder. Errors: ErrNotAllowed, ErrInvalid, ErrConflict (too
// soon, or no way to it).
func (c *Client) Canary(ctx context.Context, f topology.ForwarderID) (anomaly.Canary, error) {
	return send[anomaly.Canary](ctx, c, api.Decision{}, "forwarders", string(f), "canary")
}
