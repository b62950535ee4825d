package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fairway/remap"
	"fairway/remap/desk"
	"fairway/webui/access"
	"fairway/webui/api"
)

const (
	nobody    remap.Role = ""
	user                 = remap.User
	viewer               = remap.Viewer
	operator             = remap.Operator
	admin                = remap.Admin
	agent                = access.RoleAgent
	scheduler            = access.RoleScheduler
)

const (
	here      = access.UnixSocket
	web       = access.TCP
	every     = access.Everywhere
	everyPort = access.Everywhere | access.IngestPort
	again     = access.Repeatable
	socket    = access.WebSocket
	long      = access.Long
	probe     = access.Probe
	query     = access.Query
	archived  = access.Archived
	seconds   = access.Past
	led       = access.Led
)

// row is an access.Route whose fields the table writes without their names.
type row struct {
	Method, Path string
	Need         remap.Role
	On           access.Listener
	Handle       access.Handler
	Kind         access.RouteKind
}

// commonRoutes are those of every server, about itself and who asks.
func (s *Server) commonRoutes() []row {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []row{
		{get, "/healthz", nobody, everyPort, alive, probe},
		{get, "/debug/pprof/{profile}", admin, here, profile, 0},

		{get, "/api/v1/openapi.json", nobody, every, s.openAPI, 0},
		{get, "/api/v1/metrics", nobody, every, catalogue, 0},
		{get, "/api/v1/glossary", nobody, every, glossary, 0},
		{get, "/api/v1/session", nobody, every, s.signIn.Get, 0},
		{post, "/api/v1/session", nobody, web, s.signIn.Post, again},
		{del, "/api/v1/session", nobody, web, s.signIn.Delete, again},
		{get, "/api/v1/sessions", user, every, s.signIn.List, 0},
		{del, "/api/v1/sessions/{id}", user, every, s.signIn.Revoke, again},
		{post, "/api/v1/sign-in-link", user, here, s.signIn.PostLink, 0},
		{get, access.OIDCStartPath, nobody, web, s.signIn.OIDCStart, 0},
		{get, access.OIDCBackPath, nobody, web, s.signIn.OIDCBack, 0},
	}
}

// routes is the authorization table and the API's table of contents: method, path, role, listeners, handler, kind.
// docs describes each.
func (s *Server) routes(h *handlers) []access.Route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return zippedAll(append(s.commonRoutes(), []row{
		{get, "/readyz", nobody, everyPort, h.health.ready, probe},
		{get, "/metrics", viewer, every, s.counters, 0},

		{get, "/api/v1/live", user, every, s.feed.serve, socket | access.Feed},
		{get, "/api/v1/ingest", agent, everyPort, h.agents.stream, long},
		{post, "/api/v1/enroll", access.RoleJoin, everyPort, h.agents.enrol, again | led},
		{post, "/api/v1/revocations", admin, every, h.agents.revoke, led},
		{post, "/api/v2/write", agent, everyPort, h.agents.lines, again | long},

		{get, "/api/v1/machine", viewer, every, h.layer.machine, 0},
		{get, "/api/v1/checks", operator, every, h.health.checks, 0},
		{get, "/api/v1/overview", user, every, h.layer.overview, 0},
		{get, "/api/v1/trend", user, every, h.layer.trend, 0},
		{get, "/api/v1/marks", viewer, every, h.replay.marks, seconds},
		{get, "/api/v1/grid", viewer, every, h.replay.grid, seconds},
		{get, "/api/v1/nodes", viewer, every, h.layer.nodes, 0},
		{get, "/api/v1/nodes/{id}", viewer, every, h.layer.node, 0},
		{get, "/api/v1/forwarders/{id}", user, every, h.forwarders.get, 0},
		{post, "/api/v1/forwarders/{id}/canary", operator, every, h.forwarders.canary, led},
		{get, "/api/v1/flow", viewer, every, h.layer.flow, 0},
		{get, "/api/v1/interference", viewer, every, h.layer.interference, 0},
		{get, "/api/v1/series", viewer, every, h.series.get, seconds},
		{get, "/api/v1/occupancy", viewer, every, h.series.occupancy, seconds},
		{get, "/prometheus/api/v1/{call...}", viewer, every, h.series.prometheus, query},
		// asks as its GET does
		{post, "/prometheus/api/v1/{call...}", viewer, every, h.series.prometheus, again | query},

		{get, "/api/v1/findings", user, every, h.findings.list, 0},
		{get, "/api/v1/findings/{id}", user, every, h.findings.get, seconds},
		{get, "/api/v1/findings/{id}/incident", viewer, every, h.findings.incidents.get, seconds},
		{post, "/api/v1/findings/{id}/ack", operator, every, h.findings.acknowledge, led},
		{post, "/api/v1/findings/{id}/silence", operator, every, h.findings.silence, led},
		{post, "/api/v1/findings/{id}/notes", operator, every, h.findings.note, led},
		{post, "/api/v1/findings/{id}/dismiss", operator, every, h.findings.dismiss, led},
		{get, "/api/v1/exclusions", viewer, every, h.exclusions.get, long | access.Feed},
		{put, "/api/v1/exclusions/{node}", operator, every, h.exclusions.put, led},
		{del, "/api/v1/exclusions/{node}", operator, every, h.exclusions.remove, led},

		{get, "/api/v1/jobs", user, every, h.jobs.list, 0},
		{get, "/api/v1/jobs/{id}", user, every, h.jobs.get, seconds},
		{get, "/api/v1/jobs/{id}/runs", user, every, h.jobs.runs, seconds},
		{get, "/api/v1/jobs/{id}/series", user, every, h.jobs.series, seconds},
		{get, "/api/v1/jobs/{id}/profile", user, every, h.jobs.profile, seconds},
		{post, "/api/v1/dispatch", scheduler, every, h.jobs.dispatch, led},
		{post, "/api/v1/jobs/{id}/end", scheduler, every, h.jobs.end, led},
		{get, "/api/v1/jobs/{id}/rootcause", user, every, s.archived(h.archives.rootCause), archived},
		{get, "/api/v1/jobs/{id}/domains", user, every, h.domains.get, archived},
		{get, "/api/v1/archive", viewer, every, listAnalyses, 0},
		{get, "/api/v1/archive/sql", operator, every, s.archived(h.archives.sql), archived},
		{get, "/api/v1/archive/{name}", viewer, every, s.archived(h.archives.named), archived},
		{get, "/api/v1/shares", viewer, every, h.whatif.shares, 0},
		{get, "/api/v1/windows", viewer, every, h.whatif.windows, 0},
		{get, "/api/v1/slowdowns", viewer, every, h.whatif.slowdowns, 0},
		{get, "/api/v1/periodic", viewer, every, h.whatif.periodic, 0},

		{get, "/api/v1/plans", viewer, every, h.plans.list, 0},
		{post, "/api/v1/plans", operator, every, h.plans.propose, led},
		{get, "/api/v1/plans/{id}", viewer, every, h.plans.get, led},
		{get, "/api/v1/plans/{id}/preview", viewer, every, h.plans.get, led},
		{post, "/api/v1/plans/{id}/approve", operator, every, h.plans.approve, led},
		{post, "/api/v1/plans/{id}/reject", operator, every, h.plans.decide((*desk.Desk).Reject), led},
		{post, "/api/v1/plans/{id}/rollback", operator, every, h.plans.decide((*desk.Desk).RollBack), led},
		{post, "/api/v1/plans/{id}/stop", operator, every, h.plans.decide((*desk.Desk).Stop), led},
		{post, "/api/v1/plans/{id}/complete", operator, every, h.plans.decide((*desk.Desk).Complete), led},
		{get, "/api/v1/rules", viewer, every, h.standing.rules.list, 0},
		{get, "/api/v1/rules/test", viewer, every, h.standing.rules.test, seconds},
		{get, "/api/v1/standing", viewer, every, h.standing.list, 0},
		{post, "/api/v1/standing", operator, every, h.standing.allow, led},
		{del, "/api/v1/standing/{id}", operator, every, h.standing.revoke, led},
		{get, "/api/v1/alerts", viewer, every, h.health.alerts.get, 0},
		{post, "/api/v1/alerts/test", operator, every, h.health.alerts.test, led},
		{get, "/api/v1/report", viewer, every, h.audits.report.get, seconds},
		{get, "/api/v1/undo", operator, every, h.audits.undo.get, led},
		{post, "/api/v1/undo", operator, every, h.audits.undo.post, led},
		{get, "/api/v1/audit", viewer, every, h.audits.get, seconds},
	}...))
}

// zippedAll makes routes of the rows.
func zippedAll(rows []row) (all []access.Route) {
	for _, r := range rows {
		all = append(all, access.Route(zipped(r)))
	}
	return all
}

// past reads the query's at; zero is live.
func past(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("at")
	if text == "live" {
		text = ""
	}
	return parseTime("at", text, time.Now(), time.Time{})
}

// parseTime reads RFC 3339, Unix milliseconds, "now" or "-15m"; empty is fallback.
func parseTime(name, text string, now, fallback time.Time) (time.Time, error) {
	switch {
	case text == "":
		return fallback, nil
	case text == "now", text == "live":
		return now, nil
	case strings.HasPrefix(text, "-"):
		if d, err := time.ParseDuration(text); err == nil {
			return now.Add(d), nil
		}
	default:
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms < 1<<43 {
			return time.UnixMilli(ms), nil
		}
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %s=%q; want RFC 3339, Unix milliseconds, now or -15m", api.ErrInvalid, name,
		text)
}

// parseRange reads from and to; without them it is the last span before now.
func parseRange(r *http.Request, span time.Duration) (from, to time.Time, err error) {
	q, now := r.URL.Query(), time.Now()
	if to, err = parseTime("to", q.Get("to"), now, now); err != nil {
		return
	}
	if from, err = parseTime("from", q.Get("from"), now, to.Add(-span)); err != nil {
		return
	}
	if !from.Before(to) {
		err = fmt.Errorf("%w: from %s is not before to %s", api.ErrInvalid, from.UTC().Format(time.RFC3339),
			to.UTC().Format(time.RFC3339))
	}
	return
}

func parseSpan(name, text string, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > 366*24*time.Hour {
		return 0, fmt.Errorf("%w: %s=%q; want a span from 1s, such as 10s or 1h", api.ErrInvalid, name, text)
	}
	return d.Truncate(time.Second), nil
}

// defaultLimit and maxLimit bound lists.
const (
	defaultLimit = 200
	maxLimit     = 10000
)

func parseLimit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, maxLimit)
	}
	return n, nil
}

// answerOf is what a person answers the desk with.
func answerOf(r *http.Request, reason string) remap.Answer {
	return remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: reason}
}

// deskErrors are what the desk's refusals are to the API.
var deskErrors = []struct{ desk, api error }{
	{remap.ErrNotFound, api.ErrNotFound},
	{remap.ErrChanged, api.ErrChanged},
	{remap.ErrNotAllowed, api.ErrNotAllowed},
	{remap.ErrState, api.ErrConflict},
	{remap.ErrConflict, api.ErrConflict},
	{remap.ErrInvalid, api.ErrInvalid},
	{remap.ErrClosed, api.ErrUnreachable},
	{remap.ErrNotLeading, api.ErrUnreachable},
	{context.DeadlineExceeded, api.ErrUnreachable},
}

// refusal keeps the words of a desk's error and adds its kind.
type refusal struct {
	err  error
	kind error
}

func (r refusal) Error() string   { return r.err.Error() }
func (r refusal) Unwrap() []error { return []error{r.err, r.kind} }

func fromDesk(err error) error {
	for _, e := range deskErrors {
		if errors.Is(err, e.desk) {
			return refusal{err, e.api}
		}
	}
	return err
}
