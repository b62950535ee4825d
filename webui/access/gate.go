package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/socket"
	"fairway/remap"
	"fairway/webui/access/budget"
	"fairway/webui/api"
)

// Handler answers a request of a caller whom the gate has let in. What it refuses becomes a problem document.
type Handler func(w http.ResponseWriter, r *http.Request, by Caller) error

// Route is one line of the authorization table: what, on which listeners, by whom at least.
type Route struct {
	Method, Path string
	Need         remap.Role // "" is anybody, even nobody
	On           Listener   // a set
	Handle       Handler
	// Kind is what else the gate and the counters must know.
	Kind RouteKind
}

// RouteKind is a set of properties of a route.
type RouteKind uint16

// The kinds of routes.
const (
	// Repeatable is a POST that may be sent twice without harm: it needs no idempotency key.
	Repeatable RouteKind = 1 << iota
	// WebSocket is an upgrade: a browser sends it cookies from any page.
	WebSocket
	// Long is a request that waits on purpose: its time says nothing about the server, and unless it is a Feed it takes
	// no place.
	Long
	// Probe is asked by what supervises the daemon, and answered whatever else goes on.
	Probe
	// Query is answered by PromQL, Archived from the I/O-log archive, Past from what the disk keeps, Feed for as long
	// as the caller listens: each takes a place of the caller's budget, and any other route one of a plain request.
	Query
	Archived
	Past
	Feed
	// Led is answered by the daemon that leads a cluster: what changes plans, findings and exclusions, and what
	// such a change refers to.
	Led
)

// takes is what a route takes a place of; false where it takes none.
func (t *Route) takes() (budget.Kind, bool) {
	switch {
	case t.Kind&Query != 0:
		return budget.Queries, true
	case t.Kind&Archived != 0:
		return budget.Archive, true
	case t.Kind&Past != 0:
		return budget.Reads, true
	case t.Kind&Feed != 0:
		return budget.Feeds, true
	case t.Kind&(Long|Probe) != 0:
		return 0, false
	}
	return budget.Requests, true
}

// Keyed says that a route changes something, so that it needs an idempotency key.
func (t *Route) Keyed() bool { return t.Method != http.MethodGet && t.Kind&Repeatable == 0 }

// Gate is the one place where requests are let in or refused.
type Gate struct {
	*identities
	hosts []string
	oidc  *provider // nil: none
	// Budget is what callers may take.
	Budget *budget.Budget
	cross  *http.CrossOriginProtection
}

// NewGate checks the configuration; an error names the setting that is wrong. hosts are the names of this server.
func NewGate(c Config, hosts []string) (*Gate, error) {
	if c.Limits == (budget.Settings{}) {
		c.Limits = budget.Defaults()
	}
	limits := budget.New(c.Limits, runtime.GOMAXPROCS(0))
	id, err := newIdentities(c, limits)
	if err != nil {
		return nil, err
	}
	p, err := newProvider(c.OIDC, hosts)
	if err != nil {
		return nil, err
	}
	return &Gate{identities: id, oidc: p, hosts: hosts, Budget: limits, cross: http.NewCrossOriginProtection()}, nil
}

// Site is what the gate guards.
type Site struct {
	Routes []Route
	// Pages answers what no route takes outside of /api, for browsers.
	Pages http.HandlerFunc
	// Leader passes a request on to the daemon that leads; done is false where this one answers. nil: it always does.
	Leader func(w http.ResponseWriter, r *http.Request, by Caller) (done bool, err error)
	// Answered hears of each answered request, for the counters.
	Answered func(t *Route, status int, took time.Duration)
	// Panicked hears of each handler that panicked, with the panic's words.
	Panicked func(t *Route, what string)
	// Late is by how much the daemon itself is late, s, which every answer says (api.LateHeader); nil: it is on time.
	Late func() float64
	Log  *slog.Logger
}

// Handler builds the mux of one kind of listener: routes of other listeners do not exist there.
func (g *Gate) Handler(l Listener, s *Site) http.Handler {
	mux := http.NewServeMux()
	for i := range s.Routes {
		t := &s.Routes[i]
		if t.On&l == 0 && (l != Peer || t.Kind&Led == 0) {
			continue
		}
		mux.HandleFunc(t.Method+" "+t.Path, func(w http.ResponseWriter, r *http.Request) {
			begun, rec := time.Now(), w.(*statusRecorder)
			if err := s.fenced(t, func() error { return g.pass(rec, r, l, t, s) }); err != nil {
				rec.fail(r, err, s.Log)
			}
			s.Answered(t, rec.status, time.Since(begun))
		})
	}
	pages := &Route{Method: http.MethodGet, Path: "/"}
	pages.Handle = func(w http.ResponseWriter, r *http.Request, _ Caller) error {
		s.Pages(w, r)
		return nil
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := &statusRecorder{ResponseWriter: to, status: http.StatusOK}
		securityHeaders(w.Header())
		if by := s.late(); by > 0 {
			w.Header().Set(api.LateHeader, strconv.FormatFloat(by, 'f', 1, 64))
		}
		if l == TCP && !g.knownHost(r.Host) {
			api.WriteProblem(w, r, fmt.Errorf("%w: host %q is not a name of this server; add it to hosts",
				api.ErrNotAllowed, r.Host))
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			err := noRoute(mux, r, l)
			if err == nil {
				err = s.fenced(pages, func() error { return g.pass(w, r, l, pages, s) })
			}
			if err != nil {
				w.fail(r, err, s.Log)
			}
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Site) late() float64 {
	if s.Late == nil {
		return 0
	}
	return s.Late()
}

// fenced makes an error of a handler's panic: it costs its own request alone.
func (s *Site) fenced(t *Route, do func() error) error {
	err := collector.Fenced(do)
	if p := (*collector.Panicked)(nil); errors.As(err, &p) {
		if gone, ok := p.Value.(error); ok && errors.Is(gone, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler) // asked for, and no fault
		}
		s.Log.Error("a handler panicked", "route", t.Method+" "+t.Path, "panic", p.Value, "stack", string(p.Stack))
		s.Panicked(t, fmt.Sprint(p.Value))
		return fmt.Errorf("%s %s: %w; the daemon's log has the stack", t.Method, t.Path, err)
	}
	return err
}

// pass lets a request through to its handler, or says why not.
func (g *Gate) pass(w *statusRecorder, r *http.Request, l Listener, t *Route, s *Site) error {
	by, err := g.identify(r, l)
	if err != nil && t.Need != "" {
		return err
	}
	if err := mayUse(by, t); err != nil {
		return err
	}
	if err := g.sameOrigin(r, by, t); err != nil {
		return err
	}
	if t.Keyed() {
		if k := r.Header.Get("Idempotency-Key"); k == "" || len(k) > 200 {
			return fmt.Errorf("%w: %s %s needs an Idempotency-Key header of 1 to 200 letters", api.ErrInvalid,
				t.Method, t.Path)
		}
	}
	if t.Kind&Led != 0 && l != Peer && s.Leader != nil {
		if done, err := s.Leader(w, r, by); done || err != nil {
			return err
		}
	}
	if kind, takes := t.takes(); takes {
		held, release, err := g.Budget.Take(r.Context(), kind, whoAsks(by, l))
		if err != nil {
			return err
		}
		defer release()
		if kind != budget.Feeds && !t.Keyed() { // a change that has begun is not ended for others
			return holding(held, w, r, by, t)
		}
	}
	return t.Handle(w, r, by)
}

// holding answers a request that has a place which it may have to give back: then the answer ends as well, should
// nobody read it.
func holding(held context.Context, w *statusRecorder, r *http.Request, by Caller, t *Route) error {
	defer context.AfterFunc(held, func() {
		if errors.Is(context.Cause(held), budget.ErrGaveWay) {
			w.hurry()
		}
	})()
	err := t.Handle(w, r.WithContext(held), by)
	if cause := context.Cause(held); err != nil && errors.Is(cause, budget.ErrGaveWay) {
		return api.Later{Err: fmt.Errorf("%w: %w", api.ErrTooOften, cause), After: time.Second}
	}
	return err
}

// whoAsks is whose budget a request is of: a person's or token's, else the address's that it came from.
func whoAsks(by Caller, l Listener) budget.Who {
	who := budget.Who{Key: by.Name, Rank: budget.Others}
	switch {
	case by.Role.Includes(remap.Operator) || by.Role == RoleScheduler: // jobs start by the latter
		who.Rank = budget.Operators
	case l == UnixSocket:
		who.Rank = budget.Socket
	}
	if who.Key == "" || by.Role == RoleJoin { // many nodes have one join token
		who.Key = socket.AddressOf(by.Remote)
	}
	return who
}

// mayUse compares roles; nothing else in the program does.
func mayUse(by Caller, t *Route) error {
	allowed := t.Need == "" || by.Role.Includes(t.Need)
	switch t.Need {
	case RoleJoin:
		allowed = by.Role == RoleJoin
	case RoleAgent:
		allowed = by.Role == RoleAgent
	case RoleScheduler: // an operator may do by hand what the hooks do
		allowed = by.Role == RoleScheduler || by.Role.Includes(remap.Operator)
	}
	switch {
	case allowed:
		return nil
	case by.Locked:
		return fmt.Errorf("%w: the session's cookie came without the session's secret (header %s); sign in again in "+
			"this tab", api.ErrSignIn, SecretHeader)
	case by.Name == "":
		return fmt.Errorf("%w: %s %s needs the role %s; sign in, use a bearer token, or use the unix socket on the "+
			"server's host", api.ErrSignIn, t.Method, t.Path, t.Need)
	}
	if by.Role == "" {
		return fmt.Errorf("%w: %s %s needs the role %s, and %s has none (by %s); the daemon's [access] gives roles",
			api.ErrNotAllowed, t.Method, t.Path, t.Need, by.Name, by.Via)
	}
	return fmt.Errorf("%w: %s %s needs the role %s, %s has %q (by %s)", api.ErrNotAllowed, t.Method, t.Path, t.Need,
		by.Name, by.Role, by.Via)
}

// sameOrigin refuses what another site's page sends in a visitor's name. A proof that a browser
// sends by itself (a cookie, the proxy's) needs an Origin on writes and WebSockets.
func (g *Gate) sameOrigin(r *http.Request, by Caller, t *Route) error {
	if err := g.cross.Check(r); err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotAllowed, err)
	}
	reads := t.Method == http.MethodGet && t.Kind&WebSocket == 0
	origin := r.Header.Get("Origin")
	if origin == "" {
		if by.cookie && !reads {
			return fmt.Errorf("%w: no Origin header; with a cookie one is needed to %s %s", api.ErrNotAllowed,
				t.Method, t.Path)
		}
		return nil
	}
	if u, err := url.Parse(origin); !reads && (err != nil || u.Host == "" || u.Host != r.Host) {
		return fmt.Errorf("%w: origin %q is not %q", api.ErrNotAllowed, origin, r.Host)
	}
	return nil
}

// knownHost keeps a name that somebody else points at this address from being read as ours.
func (g *Gate) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.ContainsFunc(g.hosts, func(h string) bool {
		return strings.EqualFold(strings.Trim(h, "[]"), strings.Trim(name, "[]"))
	})
}

// noRoute refuses what no route takes; nil: it is for the pages of the console.
func noRoute(mux *http.ServeMux, r *http.Request, l Listener) error {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}
	other := slices.ContainsFunc(methods, func(method string) bool {
		_, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
		return pattern != ""
	})
	switch {
	case other:
		return fmt.Errorf("%w: %s %s", api.ErrMethod, r.Method, r.URL.Path)
	case l == TCP && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/"):
		return nil
	}
	return fmt.Errorf("%s %s: %w on this listener; see /api/v1/openapi.json", r.Method, r.URL.Path, api.ErrNotFound)
}
