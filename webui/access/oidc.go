package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fairway/collector/socket"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// OIDC is an OpenID Connect provider that people sign in at, by authorization code with PKCE.
type OIDC struct {
	Issuer       string `toml:"issuer" help:"Address of the OpenID Connect provider; empty: no provider."`
	ClientID     string `toml:"client_id" help:"fairway's client ID at the provider."`
	SecretFile   string `toml:"client_secret_file" help:"File (0600) with the client's secret, if any."`
	ClientSecret string `toml:"-"` // what SecretFile has; "" is a public client
	// URL is where the provider sends people back to, at OIDCBackPath below it.
	URL         string                `toml:"url" help:"The console for browsers, such as https://fairway.site."`
	Scopes      []string              `toml:"scopes" help:"Scopes besides openid: those that bring the two claims."`
	NameClaim   string                `toml:"name_claim" help:"Claim of the ID token with a person's name."`
	GroupsClaim string                `toml:"groups_claim" help:"Claim with a person's groups, a list or one."`
	Roles       map[string]remap.Role `toml:"roles" help:"Role by the provider's group, * everybody; the largest."`
}

// OIDCBackPath is the path that the provider must know as the redirect address.
const OIDCBackPath = "/api/v1/oidc/callback"

const (
	OIDCStartPath = "/api/v1/oidc/start"
	oidcCookie    = "fairway_oidc" // carries state, nonce and verifier through one sign-in
	oidcTimeout   = 10 * time.Second
	oidcBytes     = 1 << 20 // of one answer of the provider
)

// provider is the other side of a sign-in. What it publishes of itself is read at the first one, so
// that the daemon starts without it.
type provider struct {
	conf   OIDC
	secure bool // cookies for TLS only
	client *http.Client

	// looking is held while the provider is asked; what follows belongs to who holds it.
	looking chan struct{}
	found   *oidc.Provider
	failed  error // the newest try, a moment ago
	at      time.Time
}

// newProvider checks the settings; nil without an issuer.
func newProvider(conf *OIDC, hosts []string) (*provider, error) {
	if conf == nil || conf.Issuer == "" {
		return nil, nil
	}
	for _, u := range []struct{ setting, text string }{{"issuer", conf.Issuer}, {"url", conf.URL}} {
		parsed, err := url.Parse(u.text)
		if err != nil || parsed.Host == "" || parsed.Scheme != "https" &&
			!(parsed.Scheme == "http" && topology.Loopback(parsed.Hostname())) {
			return nil, fmt.Errorf("access.oidc.%s = %q: want an https address; http only on this host", u.setting,
				u.text)
		}
		if u.setting == "url" && !slices.ContainsFunc(hosts,
			func(h string) bool { return strings.Trim(h, "[]") == parsed.Hostname() }) {
			return nil,
				fmt.Errorf(
					"access.oidc.url = %q: %q is not in listen.hosts, so browsers that come back there "+
						"would be refused", u.text, parsed.Hostname())
		}
	}
	if conf.ClientID == "" || conf.NameClaim == "" {
		return nil, errors.New("access.oidc: client_id and name_claim are needed")
	}
	for group, role := range conf.Roles {
		if !role.Includes(remap.User) {
			return nil, fmt.Errorf("access.oidc.roles.%s = %q: want user, viewer, operator or admin", group, role)
		}
	}
	if len(conf.Roles) == 0 {
		return nil, errors.New("access.oidc: without roles nobody can sign in")
	}
	return &provider{conf: *conf, looking: make(chan struct{}, 1), secure: strings.HasPrefix(conf.URL, "https:"),
		client: &http.Client{Timeout: oidcTimeout, Transport: bounded{http.DefaultTransport}}}, nil
}

// bounded ends answers that are larger than any provider's.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, oidcBytes)
	}
	return res, err
}

// host is how the sign-in page calls the provider.
func (p *provider) host() string {
	u, _ := url.Parse(p.conf.Issuer) // newProvider has checked it
	return u.Host
}

// discover reads what the provider publishes of itself, once. Of many who sign in while it does not answer, one waits
// for it and the others get the same error.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	select {
	case p.looking <- struct{}{}:
		defer func() { <-p.looking }()
	case <-time.After(oidcTimeout):
		return nil, nil, fmt.Errorf("%w: the sign-in provider %s does not answer", api.ErrUnreachable, p.conf.Issuer)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if p.found == nil {
		if p.failed != nil && time.Since(p.at) < oidcTimeout {
			return nil, nil, p.failed
		}
		found, err := oidc.NewProvider(context.WithoutCancel(ctx), p.conf.Issuer) // of all who wait, not of one
		if err != nil {
			p.failed = fmt.Errorf("%w: the sign-in provider %s: %w", api.ErrUnreachable, p.conf.Issuer, err)
			p.at = time.Now()
			return nil, nil, p.failed
		}
		p.found, p.failed = found, nil
	}
	return p.found, &oauth2.Config{ClientID: p.conf.ClientID, ClientSecret: p.conf.ClientSecret,
		Endpoint:    p.found.Endpoint(),
		RedirectURL: strings.TrimSuffix(p.conf.URL, "/") + OIDCBackPath,
		Scopes:      append([]string{oidc.ScopeOpenID}, p.conf.Scopes...)}, nil
}

func (s *SignIn) provider() (*provider, error) {
	if s.Gate.oidc == nil {
		return nil, fmt.Errorf("%w: this server has no sign-in provider ([access.oidc])", api.ErrNotFound)
	}
	return s.Gate.oidc, nil
}

// OIDCStart sends a browser to the provider. What must come back with it is in a cookie of its own,
// so nothing is kept here for visitors who never return.
func (s *SignIn) OIDCStart(w http.ResponseWriter, r *http.Request, _ Caller) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	_, conf, err := p.discover(oidc.ClientContext(r.Context(), p.client))
	if err != nil {
		return s.notSignedIn(w, r, err)
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	// The way back begins at the provider: Lax cookies come along, Strict ones would not.
	http.SetCookie(w, &http.Cookie{Name: oidcCookie, Value: strings.Join([]string{state, nonce, verifier}, "."),
		Path: OIDCBackPath, MaxAge: int(codeLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.secure})
	http.Redirect(w, r, conf.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)),
		http.StatusSeeOther)
	return nil
}

// OIDCBack takes a browser back and, if everything fits, opens a session as a password would.
func (s *SignIn) OIDCBack(w http.ResponseWriter, r *http.Request, by Caller) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: oidcCookie, Path: OIDCBackPath, MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: p.secure})
	found, err := s.byOIDC(p, r)
	var cookie string
	if err == nil {
		found.by, found.from = "provider", socket.AddressOf(by.Remote)
		cookie = s.Gate.sessions.start(found)
	}
	if err != nil {
		s.Log.Warn("a sign-in was refused", "issuer", p.conf.Issuer, "remote", by.Remote, "err", err)
		return s.notSignedIn(w, r, err)
	}
	_, secret := s.opened(w, by, cookie)
	// Behind the #, so that no proxy or log sees it.
	http.Redirect(w, r, "/#session="+secret, http.StatusSeeOther)
	return nil
}

// byOIDC checks the whole answer: that this browser asked for it, that the provider gave it to us and
// now, and that the person has a role.
func (s *SignIn) byOIDC(p *provider, r *http.Request) (session, error) {
	q := r.URL.Query()
	c, err := r.Cookie(oidcCookie)
	if err != nil {
		return session{}, fmt.Errorf("%w: this browser did not begin a sign-in here within %s (or keeps no cookies)",
			api.ErrSignIn, codeLife)
	}
	parts := strings.Split(c.Value, ".")
	if len(parts) != 3 || subtle.ConstantTimeCompare([]byte(parts[0]), []byte(q.Get("state"))) != 1 {
		return session{}, fmt.Errorf("%w: the answer belongs to another sign-in (state); begin again",
			api.ErrSignIn)
	}
	if e := q.Get("error"); e != "" {
		return session{}, fmt.Errorf("%w: %s answered %.100q: %.300q", api.ErrSignIn, p.host(), e,
			q.Get("error_description"))
	}
	if err := s.Gate.sessions.tries.provider(socket.AddressOf(r.RemoteAddr)); err != nil {
		return session{}, err
	}
	ctx := oidc.ClientContext(r.Context(), p.client)
	found, conf, err := p.discover(ctx)
	if err != nil {
		return session{}, err
	}
	token, err := conf.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(parts[2]))
	if err != nil {
		return session{}, fmt.Errorf("%w: %s did not take the code: %.500s", api.ErrSignIn, p.host(), err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return session{}, fmt.Errorf("%w: %s sent no ID token; does the client have the scope openid?",
			api.ErrSignIn, p.host())
	}
	id, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.conf.ClientID}).Verify(ctx, raw)
	if err != nil {
		return session{}, fmt.Errorf("%w: the ID token of %s is not valid: %w", api.ErrSignIn, p.host(), err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(parts[1])) != 1 {
		return session{}, fmt.Errorf("%w: the ID token of %s was made for another sign-in (nonce); begin again",
			api.ErrSignIn, p.host())
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return session{}, fmt.Errorf("%w: the ID token's claims: %w", api.ErrSignIn, err)
	}
	return p.conf.person(claims)
}

// person is who the claims say, with the largest role of the groups.
func (o *OIDC) person(claims map[string]any) (session, error) {
	name, _ := claims[o.NameClaim].(string)
	if !goodName(name) {
		return session{}, fmt.Errorf("%w: the ID token has no usable claim %q (access.oidc.name_claim); it has %s",
			api.ErrSignIn, o.NameClaim, strings.Join(slices.Sorted(maps.Keys(claims)), ", "))
	}
	if verified, ok := claims["email_verified"].(bool); o.NameClaim == "email" && (!ok || !verified) {
		return session{}, fmt.Errorf("%w: the provider has not verified the address %s", api.ErrNotAllowed, name)
	}
	var groups []string
	switch v := claims[o.GroupsClaim].(type) {
	case string:
		groups = []string{v}
	case []any:
		for _, g := range v {
			if text, ok := g.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	role := o.Roles["*"]
	for _, g := range groups {
		if r, ok := o.Roles[g]; ok && !role.Includes(r) {
			role = r
		}
	}
	if role == "" {
		return session{},
			fmt.Errorf("%w: %s is in %d groups (claim %q) and none of them has a role here; ask an admin for one of %s",
				api.ErrNotAllowed, name, len(groups), o.GroupsClaim,
				strings.Join(slices.Sorted(maps.Keys(o.Roles)), ", "))
	}
	return session{name: name, role: role}, nil
}

var refusedPage = template.Must(template.New("").Parse(
	`<!doctype html><html lang="en"><meta charset="utf-8"><title>not signed in - fairway</title>
<h1>You are not signed in</h1><p>{{.}}</p><p><a href="` + OIDCStartPath + `">Try again</a> or go to
<a href="/">the console</a>.</p></html>
`))

// notSignedIn shows a person why; a program gets the problem document of every other route.
func (s *SignIn) notSignedIn(w http.ResponseWriter, r *http.Request, err error) error {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(api.Status(err))
	if err := refusedPage.Execute(w, err.Error()); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		s.Log.Debug("the page of a refused sign-in was not sent", "err", err)
	}
	return nil
}
