package webui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"fairway/remap"
	"fairway/webui/api"
)

// route is one line of the authorization table: what, through which doors, by whom at least.
type route struct {
	method, path string
	need         remap.Role // "" is anybody, even nobody
	doors        Door       // a set
	handle       func(http.ResponseWriter, *http.Request, who) error
	doc          doc
}

const everyDoor = DoorUnix | DoorTCP

// writes says that a route changes something, so that it needs an idempotency key.
func (t *route) writes() bool {
	return t.method != http.MethodGet && t.path != "/api/v1/session" && t.path != promPath && t.path != writePath
}

// writePath is InfluxDB's; the same lines again change nothing.
const writePath = "/api/v2/write"

// upgrades says that a route is a WebSocket: a browser sends it cookies from any page.
func (t *route) upgrades() bool { return t.path == "/api/v1/live" }

// gate is the one place where requests are let in or refused.
type gate struct {
	*identities
	hosts  []string
	oidc   *provider // nil: none
	cross  *http.CrossOriginProtection
	routes []route
}

func newGate(a Access, hosts []string, routes []route) (*gate, error) {
	id, err := newIdentities(a)
	if err != nil {
		return nil, err
	}
	p, err := newProvider(a.OIDC, hosts)
	if err != nil {
		return nil, err
	}
	return &gate{identities: id, oidc: p, hosts: hosts, cross: http.NewCrossOriginProtection(), routes: routes}, nil
}

// handler builds the mux of one kind of door: routes of other doors do not exist there.
func (g *gate) handler(d Door, s *Server) http.Handler {
	mux := http.NewServeMux()
	for i := range g.routes {
		t := &g.routes[i]
		if t.doors&d == 0 {
			continue
		}
		mux.HandleFunc(t.method+" "+t.path, func(w http.ResponseWriter, r *http.Request) {
			begun, rec := time.Now(), w.(*statusRecorder)
			if err := g.pass(rec, r, d, t); err != nil {
				if api.Status(err) == http.StatusInternalServerError {
					s.log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "err", err)
				}
				api.Write(rec, r, err)
			}
			s.stats.answered(t, rec.status, time.Since(begun))
		})
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := &statusRecorder{ResponseWriter: to, status: http.StatusOK}
		securityHeaders(w.Header())
		if d == DoorTCP && !g.knownHost(r.Host) {
			api.Write(w, r, fmt.Errorf("%w: host %q is not a name of this server; add it to hosts",
				api.ErrNotAllowed, r.Host))
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			g.noRoute(w, r, d, s)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// pass lets a request through to its handler, or says why not.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, d Door, t *route) error {
	by, err := g.identify(r, d)
	if err != nil && t.need != "" {
		return err
	}
	if err := g.mayUse(by, t); err != nil {
		return err
	}
	if err := g.sameOrigin(r, by, t); err != nil {
		return err
	}
	if t.writes() {
		if k := r.Header.Get("Idempotency-Key"); k == "" || len(k) > 200 {
			return fmt.Errorf("%w: %s %s needs an Idempotency-Key header of 1 to 200 letters", api.ErrInvalid,
				t.method, t.path)
		}
	}
	return t.handle(w, r, by)
}

// mayUse compares roles; nothing else in the program does.
func (g *gate) mayUse(by who, t *route) error {
	allowed := t.need == "" || by.Role.Includes(t.need)
	switch t.need {
	case RoleAgent:
		allowed = by.Role == RoleAgent
	case RoleScheduler: // an operator may do by hand what the hooks do
		allowed = by.Role == RoleScheduler || by.Role.Includes(remap.Operator)
	}
	switch {
	case allowed:
		return nil
	case by.Name == "":
		return fmt.Errorf("%w: %s %s needs the role %s; %s", api.ErrSignIn, t.method, t.path, t.need, howToSignIn)
	}
	return fmt.Errorf("%w: %s %s needs the role %s, %s has %q (by %s)", api.ErrNotAllowed, t.method, t.path, t.need,
		by.Name, by.Role, by.Via)
}

const howToSignIn = "sign in, use a bearer token, or use the unix socket on the server's host"

// sameOrigin refuses what another site's page sends in a visitor's name. A proof that a browser
// sends by itself (a cookie, the proxy's) needs an Origin on writes and WebSockets.
func (g *gate) sameOrigin(r *http.Request, by who, t *route) error {
	if err := g.cross.Check(r); err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotAllowed, err)
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		if by.cookie && (t.method != http.MethodGet || t.upgrades()) {
			return fmt.Errorf("%w: no Origin header; with a cookie one is needed to %s %s", api.ErrNotAllowed,
				t.method, t.path)
		}
		return nil
	}
	if t.method == http.MethodGet && !t.upgrades() {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Host != r.Host {
		return fmt.Errorf("%w: origin %q is not %q", api.ErrNotAllowed, origin, r.Host)
	}
	return nil
}

// knownHost keeps a name that somebody else points at this address from being read as ours.
func (g *gate) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.ContainsFunc(g.hosts, func(h string) bool {
		return strings.EqualFold(strings.Trim(h, "[]"),
			strings.Trim(name, "[]"))
	})
}

// noRoute answers what no route takes: pages of the console by their address, or a problem.
func (g *gate) noRoute(w http.ResponseWriter, r *http.Request, d Door, s *Server) {
	other := slices.ContainsFunc(g.routes, func(t route) bool {
		return t.doors&d != 0 && t.method != r.Method &&
			pathFits(t.path, r.URL.Path)
	})
	switch {
	case other:
		api.Write(w, r, fmt.Errorf("%w: %s %s", api.ErrMethod, r.Method, r.URL.Path))
	case d == DoorTCP && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/"):
		s.files.serve(w, r)
	default:
		api.Write(w, r, fmt.Errorf("%s %s: %w by this door; %s", r.Method, r.URL.Path, api.ErrNotFound,
			"see /api/v1/openapi.json"))
	}
}

// pathFits compares a path with a pattern of net/http without its wildcards' names.
func pathFits(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !strings.HasPrefix(a[i], "{") {
			return false
		}
	}
	return true
}

// writeWithin is how long one piece of an answer may wait for its reader.
const writeWithin = 5 * time.Minute

// statusRecorder remembers the status for the metrics, and ends an answer that nobody reads.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.status = code
	s.patience()
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Write(b []byte) (int, error) {
	s.patience()
	return s.ResponseWriter.Write(b)
}

// patience begins the wait anew. Only a test's writer has no deadlines.
func (s *statusRecorder) patience() {
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWithin))
}

// Hijack hands the connection to a WebSocket.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.status = http.StatusSwitchingProtocols
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// deskErrors are what the desk's refusals are to the API.
var deskErrors = []struct{ desk, api error }{
	{remap.ErrNotFound, api.ErrNotFound},
	{remap.ErrChanged, api.ErrChanged},
	{remap.ErrNotAllowed, api.ErrNotAllowed},
	{remap.ErrState, api.ErrConflict},
	{remap.ErrConflict, api.ErrConflict},
	{remap.ErrInvalid, api.ErrInvalid},
	{remap.ErrClosed, api.ErrUnreachable},
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
