package webui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/webui/api"
)

const (
	maxBody   = 8 << 20  // a manual remap of every compute node of the largest machine
	maxSignIn = 64 << 10 // of somebody nobody knows yet
)

func writeJSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // the reader is gone when this fails
	return nil
}

// readJSON reads a body of one JSON object without unknown fields.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return fmt.Errorf("%w: more than %d bytes", api.ErrTooLarge, large.Limit)
		}
		return fmt.Errorf("%w: body: %w", api.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: body: more than one JSON value", api.ErrInvalid)
	}
	return nil
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request, _ who) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// Readiness says whether the daemon does its work.
type Readiness struct {
	Ready      bool      `json:"ready"`
	Picture    time.Time `json:"picture"` // when the newest one was made
	Newest     time.Time `json:"newest"`  // second of data; zero before the first
	Forwarders int       `json:"forwarders"`
}

func (s *Server) getReady(w http.ResponseWriter, _ *http.Request, _ who) error {
	snap := s.cfg.Picture.Snapshot()
	age := time.Since(snap.Made)
	if age > 5*time.Second {
		return fmt.Errorf("%w: no picture has been made for %s", api.ErrUnreachable, age.Round(time.Second))
	}
	return writeJSON(w, Readiness{Ready: true, Picture: snap.Made.UTC(), Newest: snap.Overview.At,
		Forwarders: len(snap.Overview.Forwarders)})
}

func (s *Server) getChecks(w http.ResponseWriter, r *http.Request, _ who) error {
	return writeJSON(w, append(s.cfg.Picture.Checks(r.Context(), s.cfg.Driver), s.disksCheck()))
}

// disksCheck says whether what comes in and what is decided can be written down.
func (s *Server) disksCheck() api.Check {
	c := api.Check{Name: "disks", Level: api.CheckOK,
		Text: "the store keeps the frames, the journal takes records"}
	var bad []string
	if s.cfg.Ingest != nil {
		if err := s.cfg.Ingest.StoreErr(); err != nil {
			bad = append(bad, fmt.Sprintf("the store does not keep the frames, the agents hold them back: %v", err))
		}
	}
	if s.cfg.Desk != nil {
		if err := s.cfg.Desk.Unrecorded(); err != nil {
			bad = append(bad, fmt.Sprintf("nothing can be decided or moved: %v", err))
		}
	}
	if len(bad) > 0 {
		c.Level, c.Text = api.CheckFailed, strings.Join(bad, "; ")
		c.Fix = "free the disk of state_dir (df, fairwayd fsck); the log says when it goes on"
	}
	return c
}

func (s *Server) getProfile(w http.ResponseWriter, r *http.Request, _ who) error {
	switch name := r.PathValue("profile"); name {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	default:
		pprof.Handler(name).ServeHTTP(w, r)
	}
	return nil
}

// Session is who a request is from, and what the page needs to know before it shows anything.
type Session struct {
	Name    string     `json:"name"`
	Role    remap.Role `json:"role"`
	Via     string     `json:"via"`
	Expires *time.Time `json:"expires,omitempty"`
	Machine string     `json:"machine"`
	Version string     `json:"version"`
	// CanSignIn says that there are accounts; HowTo tells how to get a role without one.
	CanSignIn bool `json:"can_sign_in"`
	// SignInAt is the host of the OpenID Connect provider; empty without one.
	SignInAt string `json:"sign_in_at,omitempty"`
	HowTo    string `json:"how_to"`
}

func (s *Server) session(by who) Session {
	v := Session{Name: by.Name, Role: by.Role, Via: by.Via, Machine: s.cfg.Picture.Snapshot().Machine.Name,
		Version:   s.cfg.Version,
		CanSignIn: len(s.gate.sessions.accounts) > 0,
		HowTo: "On the server's host run 'fairway' (its unix socket knows you), or 'fairway sign-in-link' to " +
			"sign in here; or ask an administrator for an account."}
	if s.gate.oidc != nil {
		v.SignInAt = s.gate.oidc.host()
	}
	if !by.expires.IsZero() {
		v.Expires = &by.expires
	}
	return v
}

func (s *Server) getSession(w http.ResponseWriter, _ *http.Request, by who) error {
	return writeJSON(w, s.session(by))
}

// SignIn is the body of POST /api/v1/session: a name and password, or a one-time code.
type SignIn struct {
	Name     string `json:"name,omitempty"`
	Password string `json:"password,omitempty"`
	Code     string `json:"code,omitempty"`
}

func (s *Server) postSession(w http.ResponseWriter, r *http.Request, by who) error {
	if r.Header.Get("Origin") == "" {
		return fmt.Errorf("%w: signing in needs an Origin header, which browsers send; programs use a bearer token",
			api.ErrNotAllowed)
	}
	var in SignIn
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	var cookie string
	var err error
	if in.Code != "" {
		cookie, err = s.gate.sessions.redeem(in.Code)
	} else {
		cookie, err = s.gate.sessions.signIn(in.Name, in.Password)
	}
	if err != nil {
		s.log.Warn("a sign-in was refused", "name", in.Name, "remote", by.remote, "err", err)
		return err
	}
	found, _ := s.gate.sessions.find(cookie)
	http.SetCookie(w, s.cookie(cookie, found.expires))
	s.log.Info("signed in", "name", found.name, "role", found.role, "remote", by.remote)
	return writeJSON(w, s.session(who{Person: remap.Person{Name: found.name, Role: found.role, Via: "session"},
		expires: found.expires}))
}

// postSignInLink lets who is known at the unix socket act in the browser, under the same name and role.
func (s *Server) postSignInLink(w http.ResponseWriter, _ *http.Request, by who) error {
	if s.cfg.BrowserURL == "" {
		return fmt.Errorf("%w: this daemon has no address for browsers; set listen.http", api.ErrConflict)
	}
	link := api.SignInLink{Name: by.Name, Role: by.Role, Until: time.Now().Add(codeLife),
		Address: s.cfg.BrowserURL + s.signInPath(by.Name, by.Role)}
	s.log.Info("a sign-in link was made", "name", by.Name, "role", by.Role, "via", by.Via)
	return writeJSON(w, link)
}

func (s *Server) cookie(value string, expires time.Time) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", Expires: expires, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.cfg.Access.SecureCookie}
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request, by who) error {
	if c, err := r.Cookie(cookieName); err == nil {
		s.gate.sessions.end(c.Value)
		s.hub.ended(c.Value)
	}
	http.SetCookie(w, s.cookie("", time.Unix(1, 0)))
	return writeJSON(w, s.session(who{Person: remap.Person{Role: s.cfg.Access.Anonymous, Via: "anonymous"},
		remote: by.remote}))
}

func (s *Server) getIngest(w http.ResponseWriter, r *http.Request, by who) error {
	if s.cfg.Ingest == nil {
		return fmt.Errorf("%w: this daemon takes no frames", api.ErrUnreachable)
	}
	s.cfg.Ingest.Serve(w, r, *by.speaker)
	return nil
}

// postWrite is InfluxDB's v2 write API, for others' collectors.
func (s *Server) postWrite(w http.ResponseWriter, r *http.Request, by who) error {
	if s.cfg.Ingest == nil {
		return fmt.Errorf("%w: this daemon takes no frames", api.ErrUnreachable)
	}
	err := s.cfg.Ingest.Post(w, r, *by.speaker)
	var busy ingest.Busy
	var refusal wire.Reject
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.As(err, &busy):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(busy.Wait.Seconds()))))
		return fmt.Errorf("%w: %s", api.ErrTooOften, busy.Text)
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

func (s *Server) getMachine(w http.ResponseWriter, _ *http.Request, _ who) error {
	snap := s.cfg.Picture.Snapshot()
	v := MachineView{Machine: *snap.Machine, Generation: snap.Generation, Observed: snap.Situation.Observed,
		Simulated: snap.Overview.Simulated}
	if v.Nodes == nil {
		v.Nodes = []topology.Node{}
	}
	if v.Default == nil {
		v.Default = topology.Mapping{}
	}
	return writeJSON(w, v)
}

// past reads the query's at; zero is live.
func past(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("at")
	if text == "live" {
		text = ""
	}
	return parseTime("at", text, time.Now(), time.Time{})
}

func (s *Server) getOverview(w http.ResponseWriter, r *http.Request, by who) error {
	at, err := past(r)
	if err != nil {
		return err
	}
	o := s.cfg.Picture.Snapshot().Overview
	if !at.IsZero() {
		if o, err = s.cfg.Picture.OverviewAt(r.Context(), at); err != nil {
			return err
		}
	}
	o.User, o.Role = by.Name, string(by.Role)
	return writeJSON(w, o)
}

func (s *Server) getNodes(w http.ResponseWriter, r *http.Request, _ who) error {
	q := r.URL.Query()
	keep := func(topology.Node) bool { return true }
	if text := q.Get("role"); text != "" {
		role, ok := topology.ParseRole(text)
		if !ok {
			return fmt.Errorf("%w: role %q; there are compute, forwarder, storage and metadata", api.ErrInvalid,
				text)
		}
		keep = func(n topology.Node) bool { return n.Role == role }
	}
	if q.Get("names") == "1" {
		names := []topology.NodeID{}
		for _, n := range s.cfg.Picture.Snapshot().Machine.Nodes {
			if keep(n) {
				names = append(names, n.ID)
			}
		}
		return writeJSON(w, names)
	}
	rows := s.cfg.Picture.Nodes(keep)
	if health := q.Get("health"); health != "" {
		rows = slices.DeleteFunc(rows, func(n api.NodeRow) bool { return string(n.State) != health })
	}
	return writeJSON(w, rows)
}

func (s *Server) getNode(w http.ResponseWriter, r *http.Request, _ who) error {
	id := topology.NodeID(r.PathValue("id"))
	rows := s.cfg.Picture.Nodes(func(n topology.Node) bool { return n.ID == id })
	if len(rows) == 0 {
		return fmt.Errorf("node %q: %w", id, api.ErrNotFound)
	}
	v := api.NodeView{NodeRow: rows[0], Sources: s.cfg.Picture.Sources(id)}
	if v.Sources == nil {
		v.Sources = []collector.SourceStatus{}
	}
	return writeJSON(w, v)
}

func (s *Server) getForwarder(w http.ResponseWriter, r *http.Request, _ who) error {
	at, err := past(r)
	if err != nil {
		return err
	}
	id := topology.ForwarderID(r.PathValue("id"))
	var d api.ForwarderDetail
	if at.IsZero() {
		d, err = s.cfg.Picture.Forwarder(r.Context(), id, r.URL.Query().Get("series") != "0")
	} else {
		d, err = s.cfg.Picture.ForwarderAt(r.Context(), id, at)
	}
	if err != nil {
		return err
	}
	if d.Life, err = s.lifeOf(r.Context(), id, at); err != nil {
		return err
	}
	return writeJSON(w, d)
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
