package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/remap"
	"fairway/webui/access/budget"
	"fairway/webui/api"
)

// Account is a person who signs in with a password.
type Account struct {
	Name string     `toml:"name" help:"The person's name."`
	Role remap.Role `toml:"role" help:"user (own jobs only), viewer, operator or admin."`
	Hash string     `toml:"hash" help:"Hash of the password, by fairwayd hash-password."`
}

// CookieName is the cookie of a session.
const (
	CookieName = "fairway_session"
	// SecureCookieName is its name where there is TLS: a browser takes it from this server alone, over TLS alone.
	SecureCookieName = "__Host-" + CookieName
	// SecretHeader carries the session's other half. A browser sends the cookie to every port of a host; the page
	// alone, of one port, knows this.
	SecretHeader = "X-Fairway-Session"
	// FeedProtocol is what a WebSocket of the page speaks. Pages cannot set its headers: there the secret comes as a
	// second protocol, after secretProtocol.
	FeedProtocol   = "fairway"
	secretProtocol = "session."

	sessionLife = 12 * time.Hour
	codeLife    = 10 * time.Minute
	maxCodes    = 1024
	maxName     = 255
)

// session is one signed-in browser.
type session struct {
	secret  string // what SecretHeader must say besides the cookie
	name    string
	role    remap.Role
	by      string // password, link or provider
	from    string // address at sign-in
	begun   time.Time
	expires time.Time
}

// idOf names a session to people: it says nothing about the cookie.
func idOf(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return hex.EncodeToString(sum[:6])
}

// sessions are the signed-in browsers, the one-time codes, and the tries to sign in. They live in
// memory: a restart signs everybody out.
type sessions struct {
	accounts map[string]account
	nobody   passwordHash // checked for unknown names, so that they take as long
	limits   *budget.Budget
	tries    *tries
	hashing  lanes
	// ended hears of the cookies of sessions that others ended.
	ended func(cookie string)

	mu    sync.Mutex // guards everything that follows
	open  map[string]session
	codes map[string]session
}

type account struct {
	role remap.Role
	hash passwordHash
}

func newSessions(accounts []Account, limits *budget.Budget) (*sessions, error) {
	s := &sessions{accounts: map[string]account{}, limits: limits, tries: newTries(limits), hashing: newLanes(),
		ended: func(string) {}, open: map[string]session{}, codes: map[string]session{}}
	for _, a := range accounts {
		h, err := parseHash(a.Hash)
		if err != nil {
			return nil, fmt.Errorf("account %q: hash: %w", a.Name, err)
		}
		if a.Name == "" || !a.Role.Includes(remap.User) {
			return nil, fmt.Errorf("account %q with role %q: want a name, and user, viewer, operator or admin", a.Name,
				a.Role)
		}
		s.accounts[a.Name] = account{a.Role, h}
	}
	s.nobody = hashOfNobody()
	return s, nil
}

// find returns an open session.
func (s *sessions) find(cookie string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[cookie]
	if ok && time.Now().After(found.expires) {
		delete(s.open, cookie)
		return session{}, false
	}
	return found, ok
}

// signIn checks a password and opens a session. from is the address, device what knownDevice says of it. Errors wrap
// api.ErrSignIn or ErrTooOften.
func (s *sessions) signIn(ctx context.Context, name, password, from, device string) (cookie string, err error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: the name or the password is wrong", api.ErrSignIn)
	}
	if err := s.tries.password(name, from, device); err != nil {
		return "", err
	}
	a, known := s.accounts[name]
	if !known {
		a.hash = s.nobody
	}
	leave, err := s.hashing.enter(ctx, device != "")
	if err != nil {
		return "", s.limits.Refuse(budget.SignIns, "too many passwords are being checked", time.Second)
	}
	right := a.hash.matches(password)
	leave()
	if !known || !right {
		return "", fmt.Errorf("%w: the name or the password is wrong", api.ErrSignIn)
	}
	return s.start(session{name: name, role: a.role, by: "password", from: from}), nil
}

// start opens a session. Where a person or everybody has too many, the oldest of that person, or of the one with most,
// ends: who signs in now is let in.
func (s *sessions) start(n session) (cookie string) {
	n.begun = time.Now()
	n.expires = n.begun.Add(sessionLife)
	n.secret = rand.Text() + rand.Text()
	cookie = rand.Text() + rand.Text()
	s.mu.Lock()
	maps.DeleteFunc(s.open, func(_ string, old session) bool { return n.begun.After(old.expires) })
	count := map[string]int{}
	for _, o := range s.open {
		count[o.name]++
	}
	gone := ""
	switch {
	case count[n.name] >= s.limits.Settings().SessionsEach:
		gone = s.oldest(func(o session) bool { return o.name == n.name })
	case len(s.open) >= s.limits.Settings().Sessions:
		most := slices.Max(slices.Collect(maps.Values(count)))
		gone = s.oldest(func(o session) bool { return count[o.name] == most })
	}
	delete(s.open, gone)
	s.open[cookie] = n
	s.mu.Unlock()
	if gone != "" {
		_ = s.limits.Refuse(budget.Sessions, "", 0) // counted, not refused
		s.ended(gone)
	}
	return cookie
}

// oldest is the cookie of the session that began first of some; the caller holds the lock.
func (s *sessions) oldest(of func(session) bool) (cookie string) {
	for c, o := range s.open {
		if of(o) && (cookie == "" || o.begun.Before(s.open[cookie].begun)) {
			cookie = c
		}
	}
	return cookie
}

// secretOf is the session's secret that a request shows; "" without one.
func secretOf(r *http.Request) string {
	if secret := r.Header.Get(SecretHeader); secret != "" {
		return secret
	}
	for _, list := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(list, ",") {
			if secret, ok := strings.CutPrefix(strings.TrimSpace(p), secretProtocol); ok {
				return secret
			}
		}
	}
	return ""
}

func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, cookie)
}

// list returns the open sessions of a person, of everybody for "", the newest first.
func (s *sessions) list(name, current string) []api.OpenSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []api.OpenSession{}
	for c, o := range s.open {
		if (name == "" || o.name == name) && time.Now().Before(o.expires) {
			out = append(out, api.OpenSession{ID: idOf(c), Name: o.name, Role: o.role, By: o.by, From: o.from,
				Begun: o.begun.UTC(), Expires: o.expires.UTC(), Current: c == current})
		}
	}
	slices.SortFunc(out, func(a, b api.OpenSession) int {
		return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// byID finds a session; false without one.
func (s *sessions) byID(id string) (cookie string, found session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, o := range s.open {
		if idOf(c) == id {
			return c, o, true
		}
	}
	return "", session{}, false
}

// oneTimeCode makes a code that opens one session. It ends the one that name had before, so that there
// are never more than names.
func (s *sessions) oneTimeCode(name string, role remap.Role) (code string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.codes, func(_ string, c session) bool { return c.name == name || now.After(c.expires) })
	if len(s.codes) >= maxCodes {
		return "", s.limits.Refuse(budget.SignIns, fmt.Sprintf("%d links are not used yet", len(s.codes)), codeLife)
	}
	code = rand.Text() + rand.Text()
	s.codes[code] = session{name: name, role: role, by: "link", expires: now.Add(codeLife)}
	return code, nil
}

// redeem opens the session of a one-time code, once.
func (s *sessions) redeem(code, from string) (cookie string, err error) {
	s.mu.Lock()
	n, ok := s.codes[code]
	delete(s.codes, code)
	s.mu.Unlock()
	if !ok || time.Now().After(n.expires) {
		return "", fmt.Errorf("%w: this link was used already or is older than %s; ask for a new one",
			api.ErrSignIn, codeLife)
	}
	n.from = from
	return s.start(n), nil
}

// List shows the open sessions: an admin all of them, everybody else their own.
func (s *SignIn) List(w http.ResponseWriter, _ *http.Request, by Caller) error {
	if by.Name == "" {
		return api.WriteJSON(w, []api.OpenSession{})
	}
	name := by.Name
	if by.Role.Includes(remap.Admin) {
		name = ""
	}
	return api.WriteJSON(w, s.Gate.sessions.list(name, by.Session))
}

// Revoke ends a session: one's own, or anybody's as an admin. Its feeds end with it.
func (s *SignIn) Revoke(w http.ResponseWriter, r *http.Request, by Caller) error {
	id := r.PathValue("id")
	cookie, found, ok := s.Gate.sessions.byID(id)
	if !ok || by.Name == "" || found.name != by.Name && !by.Role.Includes(remap.Admin) {
		return fmt.Errorf("session %q: %w among those that you may end", id, api.ErrNotFound)
	}
	s.Gate.sessions.end(cookie)
	s.Ended(cookie)
	s.Log.Info("a session was ended", "name", found.name, "by", by.Name, "via", by.Via)
	return s.List(w, r, by)
}
