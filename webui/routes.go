package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"fairway/remap"
	"fairway/remap/desk"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/report"
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

// row is one line of the API's table: a route, and what its description says of it.
type row struct {
	access.Route
	about   string
	query   []string     // its parameters, each with what it is after a colon
	in, out reflect.Type // of the bodies; nil where one is not JSON
}

var (
	rangeParams = []string{"from: start, inclusive: RFC 3339, Unix milliseconds, or -15m before now",
		"to: end, exclusive; now without it"}
	atParam    = []string{"at: the second to show: RFC 3339, Unix milliseconds, -15m before now; live without it"}
	pageParams = []string{"limit: at most so many, newest first"}
)

func route(method, path string, need remap.Role, on access.Listener, to endpoint, kind access.RouteKind, about string,
	query ...string) row {
	return row{access.Route{Method: method, Path: path, Need: need, On: on, Handle: to.handle, Kind: kind}, about,
		query, to.in, to.out}
}

// endpoint is a handler with the types of the JSON that it reads and answers.
type endpoint struct {
	handle  access.Handler
	in, out reflect.Type
}

// answers makes an endpoint of a function that returns the answer.
func answers[Out any](f func(*http.Request, access.Caller) (Out, error)) endpoint {
	return endpoint{func(w http.ResponseWriter, r *http.Request, by access.Caller) error {
		v, err := f(r, by)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, v)
	}, nil, reflect.TypeFor[Out]()}
}

// limited makes an endpoint of a list of which a request says how many rows it wants.
func limited[Out any](f func(r *http.Request, by access.Caller, limit int) (Out, error)) endpoint {
	return answers(func(r *http.Request, by access.Caller) (v Out, err error) {
		limit, err := parseMost(r, 200, 10000)
		if err != nil {
			return v, err
		}
		return f(r, by, limit)
	})
}

// takes makes an endpoint of a function of the request's body.
func takes[In, Out any](f func(*http.Request, access.Caller, In) (Out, error)) endpoint {
	return endpoint{func(w http.ResponseWriter, r *http.Request, by access.Caller) error {
		var in In
		if err := api.ReadJSON(w, r, &in); err != nil {
			return err
		}
		v, err := f(r, by, in)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, v)
	}, reflect.TypeFor[In](), reflect.TypeFor[Out]()}
}

// writes makes an endpoint of a handler that writes more than JSON; in and out are values of the bodies' types.
func writes(handle access.Handler, in, out any) endpoint {
	return endpoint{handle, reflect.TypeOf(in), reflect.TypeOf(out)}
}

// commonRoutes are those of every server, about itself and who asks.
func (s *Server) commonRoutes() []row {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []row{
		route(get, "/healthz", nobody, everyPort, writes(alive, nil, nil), probe, "the process answers"),
		route(get, "/debug/pprof/{profile}", admin, here, writes(profile, nil, nil), 0, "Go profiles"),
		route(get, "/api/v1/openapi.json", nobody, every, writes(s.openAPI, nil, nil), 0, "this document"),
		route(get, "/api/v1/metrics", nobody, every, answers(catalogue), 0,
			"the catalogue of metrics: names, units, labels and full scales"),
		route(get, "/api/v1/glossary", nobody, every, answers(glossary), 0,
			"the words of the faces, and what they mean"),
		route(get, "/api/v1/session", nobody, every, writes(s.signIn.Get, nil, api.Session{}), 0, "who you are here"),
		route(post, "/api/v1/session", nobody, web, writes(s.signIn.Post, api.SignIn{}, api.Session{}), again,
			"sign in by password or one-time code"),
		route(del, "/api/v1/session", nobody, web, writes(s.signIn.Delete, nil, api.Session{}), again, "sign out"),
		route(get, "/api/v1/sessions", user, every, writes(s.signIn.List, nil, []api.OpenSession{}), 0,
			"open sessions: an admin's view of all, else your own"),
		route(del, "/api/v1/sessions/{id}", user, every, writes(s.signIn.Revoke, nil, []api.OpenSession{}), again,
			"end a session: your own, or anybody's as an admin"),
		route(post, "/api/v1/sign-in-link", user, here, writes(s.signIn.PostLink, nil, api.SignInLink{}), 0,
			"a one-time address that signs you in at the browser, with your name and role"),
		route(get, access.OIDCStartPath, nobody, web, writes(s.signIn.OIDCStart, nil, nil), 0,
			"sign in at the site's OpenID Connect provider: a redirect there"),
		route(get, access.OIDCBackPath, nobody, web, writes(s.signIn.OIDCBack, nil, nil), 0,
			"the way back from the provider; opens a session", "code: the provider's", "state: ours"),
	}
}

// routes is the authorization table and the API's table of contents: method, path, role, listeners, handler, kind, and
// what it is.
func (s *Server) routes(p *parts) []row {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	agents := &agents{parts: p, enrolled: map[string]int{}}
	return append(s.commonRoutes(), []row{
		route(get, "/readyz", nobody, everyPort, answers(health{p}.ready), probe, "the picture is being made"),
		route(get, "/metrics", viewer, every, writes(s.counters, nil, nil), 0, "own counters, Prometheus text format"),
		route(get, "/api/v1/live", user, every, writes(s.feed.serve, nil, nil), socket|access.Feed,
			"live feed (WebSocket)",
			"topics: overview, plans, findings, exclusions, beat, forwarder:ID, grid:bw|mdops|latency|err; separated "+
				"by commas", "background: 1: a frame every 5 s"),
		route(get, "/api/v1/ingest", agent, everyPort, writes(agents.stream, nil, nil), long,
			"frames in, orders out (WebSocket, collector/wire)"),
		route(post, "/api/v1/enroll", access.RoleJoin, everyPort, takes(agents.enrol), again|led,
			"a node's own token, by a join token"),
		route(post, "/api/v1/revocations", admin, every, takes(agents.revoke), led,
			"refuse the tokens that nodes were given until now"),
		route(post, "/api/v2/write", agent, everyPort, writes(agents.lines, nil, nil), again|long,
			"Influx line protocol in, from others' collectors",
			"precision: ns, us, ms or s of the times; ns without it", "org: not looked at", "bucket: not looked at"),
		route(get, "/api/v1/machine", viewer, every, answers(layer{p}.machine), 0,
			"layers, nodes, default and observed mapping"),
		route(get, "/api/v1/checks", operator, every, answers(health{p}.checks), 0,
			"is the installation well: agents, clocks, sources, mapping, driver"),
		route(get, "/api/v1/overview", user, every, answers(layer{p}.overview), 0,
			"the newest second of every forwarder, or a past one", atParam...),
		route(get, "/api/v1/trend", user, every, answers(layer{p}.trend), 0,
			"the last 15 minutes of the layer, and the last 5 of how long each forwarder's clients waited"),
		route(get, "/api/v1/marks", viewer, every, limited(replay{p}.marks), seconds,
			"when findings, plans and exclusions changed, jobs began and ended and connections broke, oldest first; "+
				"the last hour without a range", slices.Concat(pageParams, rangeParams)...),
		route(get, "/api/v1/grid", viewer, every, writes(replay{p}.grid, nil, nil), seconds,
			"the cells of all compute nodes in one past second, binary as in the live feed",
			slices.Concat([]string{"metric: bw, mdops, latency or err"}, atParam)...),
		route(get, "/api/v1/nodes", viewer, every, writes(layer{p}.nodes, nil, []api.NodeRow{}), 0,
			"newest second of nodes",
			"role: compute, forwarder, storage or metadata", "health: ok, idle, suspect, excluded, dedicated or stale",
			"names: 1: only the names, in the order of the grid's cells"),
		route(get, "/api/v1/nodes/{id}", viewer, every, answers(layer{p}.node), 0,
			"one node with its sources, and who uses it; a storage target, too"),
		route(get, "/api/v1/forwarders/{id}", user, every, answers(forwarders{p}.get), 0,
			"one forwarder, its clients and last five minutes, or as it was", atParam...),
		route(post, "/api/v1/forwarders/{id}/canary", operator, every, takes(forwarders{p}.canary), led,
			"send one canary (a small write, read and stat) through a forwarder, at most one in 10 s, and say what "+
				"it found"),
		route(get, "/api/v1/flow", viewer, every, limited(layer{p}.flow), 0,
			"which way jobs' bytes take now: job to forwarder to storage, the most bytes first",
			slices.Concat([]string{"job: only that job, and its neighbours on its forwarders",
				"target: instead, who uses that storage target; may be given several times"}, pageParams)...),
		route(get, "/api/v1/interference", viewer, every, answers(layer{p}.interference), 0,
			"how much jobs that move bytes now stand in each other's way"),
		route(get, "/api/v1/series", viewer, every, writes(series{p}.get, nil, api.SeriesAnswer{}), seconds,
			"one metric of nodes over time; a null value is a gap",
			slices.Concat([]string{"node: names, separated by commas", "metric: its name",
				"step: such as 10s; 1s without it",
				"agg: mean, sum, min, max or count"}, rangeParams)...),
		route(get, "/api/v1/occupancy", viewer, every, answers(series{p}.occupancy), seconds,
			"how often forwarders were near their peak", slices.Concat([]string{"bucket: such as 1h; 1h without it",
				"threshold: 0..1 of peak; 0.8 without it",
				"nodes: 0: only what is over all forwarders"}, rangeParams)...),
		route(get, "/prometheus/api/v1/{call...}", viewer, every, writes(series{p}.prometheus, nil, nil), query,
			"Prometheus's HTTP API over the store, for Grafana"),
		route(post, "/prometheus/api/v1/{call...}", viewer, every, writes(series{p}.prometheus, nil, nil), again|
			query, "the same, with the parameters as a form"),
		route(get, "/api/v1/findings", user, every, answers(findings{p}.list), 0,
			"what detectors say: open findings and those closed within an hour", "state: open: only those"),
		route(get, "/api/v1/findings/{id}", user, every, answers(findings{p}.get), seconds,
			"one finding with its life and frozen evidence"),
		route(get, "/api/v1/findings/{id}/incident", viewer, every, writes(incidents{p}.get, nil, nil), seconds, ""),
		route(post, "/api/v1/findings/{id}/ack", operator, every, takes(findings{p}.acknowledge), led,
			"say that somebody looks after it"),
		route(post, "/api/v1/findings/{id}/silence", operator, every, takes(findings{p}.silence), led,
			"keep it from calling anybody for a while; it is followed and shown as before"),
		route(post, "/api/v1/findings/{id}/notes", operator, every, takes(findings{p}.note), led,
			"write a note about a finding, also one that is over, or about a moment of it"),
		route(post, "/api/v1/findings/{id}/dismiss", operator, every, takes(findings{p}.dismiss), led,
			"say that it is not a fault, and why"),
		route(get, "/api/v1/exclusions", viewer, every, writes(exclusions{p}.get, nil, remap.Feed{}), long|
			access.Feed, "forwarders excluded from allocation, on a lease",
			"generation: wait until the list is another one than this, at most half a lease"),
		route(put, "/api/v1/exclusions/{node}", operator, every, takes(exclusions{p}.put), led,
			"exclude a forwarder, or renew its lease; nobody is moved"),
		route(del, "/api/v1/exclusions/{node}", operator, every, answers(exclusions{p}.remove), led,
			"take a forwarder back into allocation", "reason: why; kept in the audit"),
		route(get, "/api/v1/jobs", user, every, limited(jobs{p}.list), 0,
			"jobs: those that run, or those that have ended, newest first",
			slices.Concat([]string{"state: running (without it) or ended"}, pageParams)...),
		route(get, "/api/v1/jobs/{id}", user, every, ofJob(p, jobs{p}.get), seconds,
			"one job, the forwarders of its nodes and its plans"),
		route(get, "/api/v1/jobs/{id}/runs", user, every, ofJob(p, jobs{p}.runs), seconds,
			"a job beside the ended runs like it: of the same user, application, project and number of nodes",
			"limit: compare with the newest so many, at most 500; 50 without it"),
		route(get, "/api/v1/jobs/{id}/series", user, every, ofJob(p, jobs{p}.series), seconds,
			"what a job's nodes did together, by time (at most 4,096 of them)",
			slices.Concat([]string{"step: such as 10s; 1s without it"}, rangeParams)...),
		route(get, "/api/v1/jobs/{id}/profile", user, every, ofJob(p, jobs{p}.profile), seconds,
			"what a job did to the file system"),
		route(post, "/api/v1/dispatch", scheduler, every, takes(jobs{p}.dispatch), led,
			"a job is about to start: decide, and propose its plan"),
		route(post, "/api/v1/jobs/{id}/end", scheduler, every, answers(jobs{p}.end), led,
			"a job has ended: take its mapping back and build its profile"),
		route(get, "/api/v1/jobs/{id}/rootcause", user, every, p.inArchive(answers(archives{p}.rootCause)), archived,
			"why a job's I/O took as long as it did, from its logs",
			"empty: no logs in place of an error where the archive has none of it"),
		route(get, "/api/v1/jobs/{id}/domains", user, every, answers(domains{p}.get), archived,
			"how a file that several processes of a job wrote could be divided among them, what it costs in locks, "+
				"and the hints to set", "file: which of its shared files, from 0 on, the most bytes first",
			"servers: over how many it is striped; as the records say without it", "stripe_size: bytes",
			"aggregators: processes that write for all"),
		route(get, "/api/v1/archive", viewer, every, answers(analyses), 0,
			"the named analyses of the I/O-log archive"),
		route(get, "/api/v1/archive/sql", operator, every, p.inArchive(answers(archives{p}.sql)), archived,
			"one SELECT over the I/O-log archive", "q: the SQL", "limit: at most so many rows"),
		route(get, "/api/v1/archive/{name}", viewer, every, p.inArchive(answers(archives{p}.named)), archived,
			"a named analysis; further parameters are its own"),
		route(get, "/api/v1/shares", viewer, every, answers(whatif{p}.shares), 0,
			"what a sharing policy would give the running jobs, and what queues share now",
			"policy: such as size-fair (without it) or group-user-size-fair",
			"forwarder: only jobs with a node on it"),
		route(get, "/api/v1/windows", viewer, every, answers(whatif{p}.windows), 0,
			"the pattern of the periodic jobs that run, in force or as it would be"),
		route(get, "/api/v1/slowdowns", viewer, every, answers(whatif{p}.slowdowns), 0,
			"how much longer applications took beside each other than alone, in the newest runs"),
		route(get, "/api/v1/periodic", viewer, every, answers(whatif{p}.periodic), 0,
			"stagger periodic applications: what if",
			"set: processors, bandwidths and applications as JSON, as fairway periodic reads them"),
		route(get, "/api/v1/plans", viewer, every, limited(plans{p}.list), 0, "plans, newest first", pageParams...),
		route(post, "/api/v1/plans", operator, every, writes(plans{p}.propose, api.ManualRemap{}, api.PlanView{}), led,
			"propose a remap; nothing moves"),
		route(get, "/api/v1/plans/{id}", viewer, every, answers(plans{p}.get), led,
			"one plan with its checks and progress"),
		route(get, "/api/v1/plans/{id}/preview", viewer, every, answers(plans{p}.get), led,
			"what approving it would do now"),
		route(post, "/api/v1/plans/{id}/approve", operator, every, takes(plans{p}.approve), led,
			"say yes to what was previewed"),
		route(post, "/api/v1/plans/{id}/reject", operator, every, takes(plans{p}.decide((*desk.Desk).Reject)), led,
			"say no; nothing moves"),
		route(post, "/api/v1/plans/{id}/rollback", operator, every, takes(plans{p}.decide((*desk.Desk).RollBack)), led,
			"take back what was moved"),
		route(post, "/api/v1/plans/{id}/stop", operator, every, takes(plans{p}.decide((*desk.Desk).Stop)), led,
			"stop applying"),
		route(post, "/api/v1/plans/{id}/complete", operator, every, takes(plans{p}.decide((*desk.Desk).Complete)), led,
			"go on with a partial plan"),
		route(get, "/api/v1/rules", viewer, every, answers(rules{p}.list), 0,
			"the site's rules about running jobs behind ill forwarders, and what they decided"),
		route(get, "/api/v1/rules/test", viewer, every, answers(rules{p}.test), seconds,
			"what those rules would have done; the last seven days without a range", rangeParams...),
		route(get, "/api/v1/standing", viewer, every, answers(standing{p}.list), 0,
			"standing approvals in force, oldest first"),
		route(post, "/api/v1/standing", operator, every, takes(standing{p}.allow), led,
			"approve beforehand what policies propose for an application"),
		route(del, "/api/v1/standing/{id}", operator, every, answers(standing{p}.revoke), led,
			"revoke a standing approval; plans approved by it stay", "reason: why; kept in the audit"),
		route(get, "/api/v1/alerts", viewer, every, answers(alerts{p}.get), 0, "who is called, and how delivery goes"),
		route(post, "/api/v1/alerts/test", operator, every, answers(alerts{p}.test), led,
			"send a test alert to every receiver; answers how delivery went before"),
		route(get, "/api/v1/report", viewer, every, writes(reports{p}.get, nil, report.Report{}), seconds,
			"who used the forwarders, what was slow, what was moved; the last seven days without a range",
			slices.Concat([]string{"format: html or markdown; JSON without it"}, rangeParams)...),
		route(get, "/api/v1/undo", operator, every, answers(undo{p}.get), led,
			"what you did last, and what would take it back or why nothing can"),
		route(post, "/api/v1/undo", operator, every, takes(undo{p}.post), led,
			"take back what you did last, if it is still that"),
		route(get, "/api/v1/audit", viewer, every, limited(audits{p}.get), seconds,
			"who did what, newest first", slices.Concat([]string{"actor: a person's or policy's name",
				"subject: a plan, a finding or an excluded forwarder"}, pageParams, rangeParams)...),
	}...)
}

// serves sets the table of routes.
func (s *Server) serves(rows []row) {
	s.rows = rows
	for _, row := range rows {
		t := row.Route
		t.Handle = zipped(&row.Route, func(w http.ResponseWriter, r *http.Request, by access.Caller) error {
			return fromDesk(row.Handle(w, r, by), t.Kind&led != 0)
		})
		s.site.Routes = append(s.site.Routes, t)
	}
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
	if text == "" {
		return fallback, nil
	}
	if at, ok := api.ParseTime(text, now); ok {
		return at, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 && ms < 1<<43 {
		return time.UnixMilli(ms), nil
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

// parseMost reads a limit, which is usual where it is not given, and at most most.
func parseMost(r *http.Request, usual, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, most)
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
}

// fromDesk gives an error of the desk its kind; a route that the leader answers takes too long where it is not reached.
func fromDesk(err error, led bool) error {
	for _, e := range deskErrors {
		if errors.Is(err, e.desk) {
			return api.Refused(err, e.api)
		}
	}
	if led && errors.Is(err, context.DeadlineExceeded) {
		return api.Refused(err, api.ErrUnreachable)
	}
	return err
}
