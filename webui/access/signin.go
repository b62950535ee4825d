package access

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"fairway/collector/socket"
	"fairway/remap"
	"fairway/webui/api"
)

const maxSignIn = 64 << 10 // bytes of a body that anybody may send

// SignIn answers the routes by which people come and go.
type SignIn struct {
	Gate *Gate
	// Machine returns the site's name, Version is the daemon's.
	Machine func() string
	Version string
	// BrowserURL is where browsers reach this server, for the links that sign in; "" without an address.
	BrowserURL string
	// Sites are those of api.Session.
	Sites []api.Site
	// Ended hears of the cookie of a session that has ended.
	Ended func(cookie string)
	Log   *slog.Logger
}

func (s *SignIn) session(by Caller) api.Session {
	v := api.Session{ReasonLetters: remap.ReasonLetters, Name: by.Name, Role: by.Role, Via: by.Via,
		Machine: s.Machine(), Version: s.Version,
		Locked: by.Locked, CanSignIn: len(s.Gate.sessions.accounts) > 0,
		HowTo: "On the server's host run 'fairway' (its unix socket knows you), or 'fairway sign-in-link' to " +
			"sign in here; or ask an administrator for an account."}
	if by.Role != "" {
		v.Sites = s.Sites
	}
	if s.Gate.oidc != nil {
		v.SignInAt = s.Gate.oidc.host()
	}
	if !by.Expires.IsZero() {
		v.Expires = &by.Expires
	}
	return v
}

// Get says who a request is from.
func (s *SignIn) Get(w http.ResponseWriter, _ *http.Request, by Caller) error {
	return api.WriteJSON(w, s.session(by))
}

// Post signs in by password or one-time code.
func (s *SignIn) Post(w http.ResponseWriter, r *http.Request, by Caller) error {
	if r.Header.Get("Origin") == "" {
		return fmt.Errorf("%w: signing in needs an Origin header, which browsers send; programs use a bearer token",
			api.ErrNotAllowed)
	}
	var in api.SignIn
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	var cookie string
	var err error
	if in.Code != "" {
		cookie, err = s.Gate.sessions.redeem(in.Code, socket.AddressOf(by.Remote))
	} else {
		cookie, err = s.Gate.sessions.signIn(r.Context(), in.Name, in.Password, socket.AddressOf(by.Remote),
			knownDevice(r, in.Name))
	}
	if err != nil {
		s.Log.Warn("a sign-in was refused", "name", in.Name, "remote", by.Remote, "err", err)
		return err
	}
	opened, secret := s.opened(w, by, cookie)
	v := s.session(opened)
	v.Secret = secret
	return api.WriteJSON(w, v)
}

// opened hands a new session's cookie to the browser; its secret is for the page.
func (s *SignIn) opened(w http.ResponseWriter, by Caller, cookie string) (opened Caller, secret string) {
	found, _ := s.Gate.sessions.find(cookie)
	http.SetCookie(w, s.cookie(cookie, found.expires))
	device := s.cookie(newDevice(found.name), time.Now().Add(deviceLife))
	device.Name, device.Path = deviceCookie, "/api/v1/session"
	http.SetCookie(w, device)
	s.Log.Info("signed in", "name", found.name, "role", found.role, "remote", by.Remote)
	return Caller{Person: remap.Person{Name: found.name, Role: found.role, Via: "session"}, Expires: found.expires},
		found.secret
}

// PostLink lets a person known at the unix socket act in the browser, under the same name and role.
func (s *SignIn) PostLink(w http.ResponseWriter, _ *http.Request, by Caller) error {
	if s.BrowserURL == "" {
		return fmt.Errorf("%w: this daemon has no address for browsers; set listen.http", api.ErrConflict)
	}
	if err := s.Gate.sessions.tries.link(by.Name); err != nil {
		return err
	}
	path, err := s.Gate.SignInPath(by.Name, by.Role)
	if err != nil {
		return err
	}
	link := api.SignInLink{Name: by.Name, Role: by.Role, Until: time.Now().Add(codeLife), Address: s.BrowserURL + path}
	s.Log.Info("a sign-in link was made", "name", by.Name, "role", by.Role, "via", by.Via)
	return api.WriteJSON(w, link)
}

// SignInPath returns the path of a page that signs its first visitor in, once, within ten minutes.
func (g *Gate) SignInPath(name string, role remap.Role) (string, error) {
	code, err := g.sessions.oneTimeCode(name, role)
	return "/#signin=" + code, err
}

// OnEnded has fn hear of the cookies of sessions that gave way to others.
func (g *Gate) OnEnded(fn func(cookie string)) { g.sessions.ended = fn }

// HasSession says whether a cookie opens a session now.
func (g *Gate) HasSession(cookie string) bool {
	_, ok := g.sessions.find(cookie)
	return ok
}

func (s *SignIn) cookie(value string, expires time.Time) *http.Cookie {
	return &http.Cookie{Name: s.Gate.cookieName(), Value: value, Path: "/", Expires: expires, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.Gate.conf.SecureCookie}
}

// Delete signs out. A cookie without the session's secret is taken from the browser; the session stays.
func (s *SignIn) Delete(w http.ResponseWriter, _ *http.Request, by Caller) error {
	if by.Session != "" {
		s.Gate.sessions.end(by.Session)
		s.Ended(by.Session)
	}
	http.SetCookie(w, s.cookie("", time.Unix(1, 0)))
	return api.WriteJSON(w, s.session(Caller{Person: remap.Person{Role: s.Gate.conf.Anonymous, Via: "anonymous"},
		Remote: by.Remote}))
}
