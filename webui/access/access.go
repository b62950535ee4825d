// Package access is the gate of the HTTP API: who a request is from, what that person or machine may do, and how
// people sign in.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fairway/collector/ingest"
	"fairway/remap"
	"fairway/webui/access/budget"
	"fairway/webui/access/hostuser"
	"fairway/webui/api"
)

// Config says who people and machines are and what they may. The zero value lets root and the
// daemon's own user do everything on the unix socket, and nobody else anything.
type Config struct {
	// Anonymous is what a request by TCP without any sign-in may do, and an unknown user of the
	// unix socket: remap.Viewer or "" (nothing).
	Anonymous remap.Role
	// Groups give the members of unix groups (by name or number) their role.
	Groups map[string]remap.Role
	// Tokens are the machines' and agents' keys.
	Tokens []Token
	// Accounts are people who sign in with a password.
	Accounts []Account
	// Proxy, when set, is trusted to say who people are.
	Proxy *Proxy
	// OIDC, when set, is where people may sign in.
	OIDC *OIDC
	// SecureCookie marks cookies for TLS only; set it behind a proxy that speaks TLS.
	SecureCookie bool
	// Limits are what callers may take; the zero value is budget.Defaults.
	Limits budget.Settings
	// Enrolment makes and checks nodes' own tokens; nil: nodes have none.
	Enrolment *Enrolment
}

// RoleAgent is the role of a token that brings frames and takes orders, and may nothing else.
const RoleAgent remap.Role = "agent"

// RoleScheduler is the role of the batch system's hooks: they report jobs, and may nothing else.
const RoleScheduler remap.Role = "scheduler"

// Token is a bearer token. Only its SHA-256 is kept.
type Token struct {
	Name   string
	Role   remap.Role // user, viewer, operator, admin, RoleAgent or RoleScheduler
	SHA256 string     // hex
	// Nodes and Limits bound an agent's token; see ingest.Speaker.
	Nodes  []string
	Limits ingest.Limits // the zero value is ingest.DefaultLimits
}

// HashToken is what Token.SHA256 holds.
func HashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Proxy is a reverse proxy that has signed people in.
type Proxy struct {
	From       []netip.Prefix `toml:"from" help:"Address ranges it connects from."`
	UserHeader string         `toml:"user_header" help:"Header with a person's name."` // such as X-Remote-User
	// GroupsHeader lists groups, separated by commas, that Roles maps; "" gives everybody Default.
	GroupsHeader string                `toml:"groups_header,omitempty" help:"Header with the person's groups."`
	Roles        map[string]remap.Role `toml:"roles,omitempty" help:"Role by group."`
	Default      remap.Role            `toml:"default,omitempty" help:"Role without such a group; empty: refused."`
}

// Caller is what the gate found out about a request.
type Caller struct {
	remap.Person
	Remote  string
	Speaker *ingest.Speaker // of an agent's token
	Expires time.Time       // of the session
	Session string          // its cookie
	Locked  bool            // there is a session's cookie, without the session's secret: nobody
	Join    string          // the nodes that a join token is for, as a pattern
	cookie  bool            // the browser sends the proof by itself, so its origin must be checked
}

// identities turns a request's proof into who it is.
type identities struct {
	conf     Config
	groups   map[uint32]remap.Role
	tokens   map[[sha256.Size]byte]*Token
	sessions *sessions
	own      uint32
}

func newIdentities(a Config, limits *budget.Budget) (*identities, error) {
	id := &identities{conf: a, groups: map[uint32]remap.Role{}, tokens: map[[sha256.Size]byte]*Token{},
		own: uint32(os.Geteuid())}
	if a.Anonymous != "" && a.Anonymous != remap.Viewer {
		return nil, fmt.Errorf("access.anonymous = %q: nobody may act without a name; want %q or \"\"", a.Anonymous,
			remap.Viewer)
	}
	for name, role := range a.Groups {
		gid, err := groupID(name)
		if err != nil {
			return nil, err
		}
		if role != RoleScheduler && !role.Includes(remap.User) {
			return nil, fmt.Errorf("access.groups.%s = %q: want user, viewer, operator, admin or scheduler", name,
				role)
		}
		id.groups[gid] = role
	}
	names := map[string]bool{}
	for i := range a.Tokens {
		t := a.Tokens[i]
		if names[t.Name] {
			return nil, fmt.Errorf("token %q is listed twice: limits, the journal and revocation go by its name",
				t.Name)
		}
		names[t.Name] = true
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("token %q: sha256 is not 64 hex digits", t.Name)
		}
		if t.Name == "" || t.Role != RoleAgent && t.Role != RoleScheduler && !t.Role.Includes(remap.User) {
			return nil,
				fmt.Errorf("token %q with role %q: want a name, and user, viewer, operator, admin, agent or scheduler",
					t.Name, t.Role)
		}
		if t.Limits == (ingest.Limits{}) {
			t.Limits = ingest.DefaultLimits()
		}
		id.tokens[[sha256.Size]byte(sum)] = &t
	}
	if a.Proxy != nil {
		if err := a.Proxy.validate(); err != nil {
			return nil, err
		}
	}
	var err error
	id.sessions, err = newSessions(a.Accounts, limits)
	return id, err
}

func groupID(name string) (uint32, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), nil
	}
	gid, err := hostuser.Group(name)
	if err != nil {
		return 0, fmt.Errorf("access.groups.%s: %w (make the group, or give its number)", name, err)
	}
	return gid, nil
}

// identify says who a request is from; the proof that is hardest to send by mistake counts first.
// A proof that is wrong is refused even where none would be needed.
func (id *identities) identify(r *http.Request, d Listener) (Caller, error) {
	w := Caller{Remote: r.RemoteAddr}
	if d == Peer {
		return id.passedOn(r)
	}
	if d == UnixSocket {
		w.Remote = "unix"
	}
	if auth := r.Header.Get("Authorization"); auth != "" {
		return id.byToken(w, auth)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return id.byCertificate(w, r.TLS.VerifiedChains[0][0])
	}
	switch d {
	case UnixSocket:
		return id.byPeer(w, r)
	case TCP:
		if p := id.conf.Proxy; p != nil && p.trusts(r) {
			return p.identify(w, r)
		}
		if c, err := r.Cookie(id.cookieName()); err == nil {
			s, ok := id.sessions.find(c.Value)
			if w.Locked = ok && subtle.ConstantTimeCompare([]byte(secretOf(r)), []byte(s.secret)) != 1; ok &&
				!w.Locked {
				w.Person = remap.Person{Name: s.name, Role: s.role, Via: "session"}
				w.cookie, w.Expires, w.Session = true, s.expires, c.Value
				return w, nil
			}
		}
		w.Person = remap.Person{Role: id.conf.Anonymous, Via: "anonymous"}
	}
	return w, nil
}

func (id *identities) byToken(w Caller, auth string) (Caller, error) {
	secret, ok := strings.CutPrefix(auth, "Bearer ")
	if !ok { // as InfluxDB's clients write it
		secret, ok = strings.CutPrefix(auth, "Token ")
	}
	secret = strings.TrimSpace(secret)
	if strings.HasPrefix(secret, nodePrefix+".") || strings.HasPrefix(secret, joinPrefix+".") {
		return id.byNodeToken(w, secret)
	}
	// How long the look-up of the hash takes says nothing about the secret.
	t := id.tokens[sha256.Sum256([]byte(secret))]
	if !ok || t == nil {
		return w, fmt.Errorf("%w: the bearer token is not known here", api.ErrSignIn)
	}
	w.Person = remap.Person{Name: t.Name, Role: t.Role, Via: "token"}
	if t.Role == RoleAgent {
		w.Speaker = &ingest.Speaker{Name: t.Name, Nodes: t.Nodes, Limits: t.Limits}
	}
	return w, nil
}

func (id *identities) byPeer(w Caller, r *http.Request) (Caller, error) {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok {
		return w, fmt.Errorf("%w: the kernel did not say who is at the other end of the socket", api.ErrSignIn)
	}
	w.Person = remap.Person{Name: p.name(), Role: id.conf.Anonymous, Via: "unix"}
	if p.uid == 0 || p.uid == id.own {
		w.Role = remap.Admin
		return w, nil
	}
	for _, g := range append(p.groups, p.gid) {
		if role, ok := id.groups[g]; ok && moreRole(w.Role, role) {
			w.Role = role
		}
	}
	return w, nil
}

// moreRole says that role allows what has does not.
func moreRole(has, role remap.Role) bool {
	switch role {
	case "", has:
		return false
	case RoleScheduler:
		return !has.Includes(remap.Operator)
	case RoleAgent, RoleJoin:
		return true
	}
	return !has.Includes(role)
}

func userName(uid uint32) string {
	if u, err := hostuser.UserOf(uid); err == nil {
		return u.Username
	}
	return "uid" + strconv.Itoa(int(uid))
}

// validate refuses roles that a person cannot have: a wrong word must not be found out at a sign-in.
func (p *Proxy) validate() error {
	if p.Default != "" && !p.Default.Includes(remap.User) {
		return fmt.Errorf("access.proxy.default = %q: want user, viewer, operator, admin or nothing", p.Default)
	}
	for group, role := range p.Roles {
		if !role.Includes(remap.User) {
			return fmt.Errorf("access.proxy.roles.%s = %q: want user, viewer, operator or admin", group, role)
		}
	}
	return nil
}

func (p *Proxy) trusts(r *http.Request) bool {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(a.Addr().Unmap()) })
}

func (p *Proxy) identify(w Caller, r *http.Request) (Caller, error) {
	w.cookie = true // the proxy's cookie
	for _, name := range []string{p.UserHeader, p.GroupsHeader} {
		if name != "" && len(r.Header.Values(name)) > 1 { // the first is what the client wrote before the proxy did
			return w, fmt.Errorf("%w: %s came %d times: let the proxy set it in place of the client's",
				api.ErrSignIn, name, len(r.Header.Values(name)))
		}
	}
	name := r.Header.Get(p.UserHeader)
	if !goodName(name) {
		return w, fmt.Errorf("%w: the proxy sent %.100q as %s: want a name", api.ErrSignIn, name, p.UserHeader)
	}
	w.Person = remap.Person{Name: name, Role: p.Default, Via: "proxy"}
	if p.GroupsHeader != "" {
		for _, g := range strings.Split(r.Header.Get(p.GroupsHeader), ",") {
			if role, ok := p.Roles[strings.TrimSpace(g)]; ok && !w.Role.Includes(role) {
				w.Role = role
			}
		}
	}
	return w, nil
}

// goodName says whether a name that somebody else vouches for cannot be taken for another on a screen.
func goodName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cookieName is the name of the cookie of a session.
func (id *identities) cookieName() string {
	if id.conf.SecureCookie {
		return SecureCookieName
	}
	return CookieName
}

// RoleNow is the role that a person who came by a way (remap.Person.Via) has at present, "" without
// one. known is false for people whom the reverse proxy or the OpenID Connect provider vouches for: what
// they may is known when they come again.
func (a *Config) RoleNow(name, via string) (role remap.Role, known bool) {
	switch via {
	case "unix":
		return a.unixRole(name)
	case "token":
		if i := slices.IndexFunc(a.Tokens, func(t Token) bool { return t.Name == name }); i >= 0 {
			return a.Tokens[i].Role, true
		}
		return "", true
	case "session": // of an account, of the provider, or by a link that a user of the socket was given
		if i := slices.IndexFunc(a.Accounts, func(p Account) bool { return p.Name == name }); i >= 0 {
			return a.Accounts[i].Role, true
		}
		if a.OIDC != nil {
			return "", false
		}
		return a.unixRole(name)
	case "proxy":
		return "", a.Proxy == nil
	}
	return "", false
}

// unixRole is what a user of this host may on the unix socket; not known while the directory does not answer, nor of
// a user whom it has no name for.
func (a *Config) unixRole(name string) (role remap.Role, known bool) {
	u, err := hostuser.User(name)
	if err != nil {
		return "", errors.Is(err, hostuser.ErrUnknown) && !nameless.MatchString(name)
	}
	if u.Uid == "0" || u.Uid == strconv.Itoa(os.Geteuid()) {
		return remap.Admin, true
	}
	ids, err := hostuser.GroupsOf(u)
	if err != nil {
		return "", false
	}
	role = a.Anonymous
	for group, gives := range a.Groups {
		gid, err := groupID(group)
		if err != nil {
			return "", false
		}
		if slices.Contains(ids, gid) && moreRole(role, gives) {
			role = gives
		}
	}
	return role, true
}

// nameless is what userName calls a user without a name.
var nameless = regexp.MustCompile(`^uid[0-9]+$`)
