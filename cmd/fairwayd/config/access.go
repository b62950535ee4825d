package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"fairway/cmd/program"
	"fairway/collector/ingest"
	"fairway/remap"
	"fairway/webui/access"
)

// Access says who may do what. root and the daemon's own user may do everything on the socket.
type Access struct {
	Anonymous    remap.Role            `toml:"anonymous" help:"Role of a request without sign-in: viewer; empty: none."`
	SecureCookie bool                  `toml:"secure_cookie" help:"Whether cookies need TLS; set behind a TLS proxy."`
	Groups       map[string]remap.Role `toml:"groups" help:"Role by Unix group, on the socket; root is an admin."`
	Tokens       []Token               `toml:"token" help:"Bearer tokens; fairwayd token makes one."`
	Accounts     []Account             `toml:"account" help:"People who sign in with a password."`
	Proxy        []Proxy               `toml:"proxy" help:"At most one reverse proxy that signs people in."`
	OIDC         OIDC                  `toml:"oidc"`
	Enrolment    Enrolment             `toml:"enrolment"`
}

// OIDC is an OpenID Connect provider that people sign in at, if it has an issuer.
type OIDC struct {
	Issuer      string                `toml:"issuer" help:"Address of the OpenID Connect provider; empty: no provider."`
	ClientID    string                `toml:"client_id" help:"fairway's client ID at the provider."`
	SecretFile  string                `toml:"client_secret_file" help:"File (0600) with the client's secret, if any."`
	URL         string                `toml:"url" help:"The console for browsers, such as https://fairway.site."`
	Scopes      []string              `toml:"scopes" help:"Scopes besides openid: those that bring the two claims."`
	NameClaim   string                `toml:"name_claim" help:"Claim of the ID token with a person's name."`
	GroupsClaim string                `toml:"groups_claim" help:"Claim with a person's groups, a list or one."`
	Roles       map[string]remap.Role `toml:"roles" help:"Role by the provider's group, * everybody; the largest."`
}

// forWeb reads the client's secret.
func (o *OIDC) forWeb() (*access.OIDC, error) {
	if o.Issuer == "" {
		return nil, nil
	}
	w := &access.OIDC{Issuer: o.Issuer, ClientID: o.ClientID, URL: o.URL, Scopes: o.Scopes, NameClaim: o.NameClaim,
		GroupsClaim: o.GroupsClaim, Roles: o.Roles}
	if o.SecretFile == "" {
		return w, nil
	}
	var err error
	if w.ClientSecret, err = ReadPrivate(o.SecretFile); err != nil {
		return nil, fmt.Errorf("%w: access.oidc.client_secret_file: %w", program.ErrSettings, err)
	}
	return w, nil
}

// Enrolment says what nodes' own tokens are made with.
type Enrolment struct {
	SecretFile string `toml:"secret_file" help:"Secret (0600) behind nodes' tokens; fairwayd enroll makes it."`
}

// Token is a machine's or an agent's key.
type Token struct {
	Name   string     `toml:"name" help:"Its name in the journal."`
	Role   remap.Role `toml:"role" help:"user (own jobs), viewer, operator, admin, agent or scheduler (reports jobs)."`
	SHA256 string     `toml:"sha256,omitempty" help:"SHA-256 of the secret, hex; or:"`
	File   string     `toml:"file,omitempty" help:"File (0600) with the secret."`
	Nodes  []string   `toml:"nodes,omitempty" help:"Patterns of the nodes an agent may speak for; empty: all."`
	// What is not set is ingest.DefaultLimits.
	Limits *ingest.Limits `toml:"limits,omitempty" help:"Limits of an agent."`
}

// Account is a person who signs in with a password.
type Account struct {
	Name string     `toml:"name" help:"The person's name."`
	Role remap.Role `toml:"role" help:"user (own jobs only), viewer, operator or admin."`
	Hash string     `toml:"hash" help:"Hash of the password, by fairwayd hash-password."`
}

// Proxy is a reverse proxy that has signed people in.
type Proxy struct {
	From         []netip.Prefix        `toml:"from" help:"Address ranges it connects from."`
	UserHeader   string                `toml:"user_header" help:"Header with a person's name."`
	GroupsHeader string                `toml:"groups_header,omitempty" help:"Header with the person's groups."`
	Roles        map[string]remap.Role `toml:"roles,omitempty" help:"Role by group."`
	Default      remap.Role            `toml:"default,omitempty" help:"Role without such a group; empty: refused."`
}

// ForWeb turns the settings into what the server checks; it reads the tokens' files.
func (a *Access) ForWeb() (access.Config, error) {
	w := access.Config{Anonymous: a.Anonymous, Groups: a.Groups, SecureCookie: a.SecureCookie}
	var err error
	if w.OIDC, err = a.OIDC.forWeb(); err != nil {
		return w, err
	}
	for _, t := range a.Tokens {
		sum := t.SHA256
		switch {
		case (t.SHA256 == "") == (t.File == ""):
			return w, fmt.Errorf("%w: [[access.token]] %q: want either sha256 or file", program.ErrSettings, t.Name)
		case t.File != "":
			secret, err := ReadSecret(t.File)
			if err != nil {
				return w, fmt.Errorf("%w: [[access.token]] %q: %w", program.ErrSettings, t.Name, err)
			}
			sum = access.HashToken(secret)
		}
		w.Tokens = append(w.Tokens, access.Token{Name: t.Name, Role: t.Role, SHA256: sum, Nodes: t.Nodes,
			Limits: t.limits()})
	}
	for _, p := range a.Accounts {
		w.Accounts = append(w.Accounts, access.Account{Name: p.Name, Role: p.Role, Hash: p.Hash})
	}
	switch len(a.Proxy) {
	case 0:
	case 1:
		p := a.Proxy[0]
		if len(p.From) == 0 || p.UserHeader == "" {
			return w,
				fmt.Errorf("%w: [[access.proxy]]: from and user_header are needed, or anybody could say who they are",
					program.ErrSettings)
		}
		w.Proxy = &access.Proxy{From: p.From, UserHeader: p.UserHeader, GroupsHeader: p.GroupsHeader, Roles: p.Roles,
			Default: p.Default}
	default:
		return w, fmt.Errorf("%w: %d times [[access.proxy]], at most one", program.ErrSettings, len(a.Proxy))
	}
	return w, nil
}

// AnyOperator says whether the settings let anybody act, besides root and the daemon's user.
func (a *Access) AnyOperator() bool {
	mayAct := func(r remap.Role) bool { return r.Includes(remap.Operator) }
	roles := append(slices.Collect(maps.Values(a.Groups)), slices.Collect(maps.Values(a.OIDC.Roles))...)
	for _, t := range a.Tokens {
		roles = append(roles, t.Role)
	}
	for _, p := range a.Accounts {
		roles = append(roles, p.Role)
	}
	for _, p := range a.Proxy {
		roles = append(append(roles, p.Default), slices.Collect(maps.Values(p.Roles))...)
	}
	return slices.ContainsFunc(roles, mayAct)
}

// limits fills in what the file leaves open.
func (t *Token) limits() ingest.Limits {
	l, d := ingest.DefaultLimits(), t.Limits
	if d == nil {
		return l
	}
	return ingest.Limits{
		Nodes: cmp.Or(d.Nodes, l.Nodes), SamplesPerFrame: cmp.Or(d.SamplesPerFrame, l.SamplesPerFrame),
		FramesPerSec: cmp.Or(d.FramesPerSec, l.FramesPerSec), BurstSeconds: cmp.Or(d.BurstSeconds, l.BurstSeconds),
		MessageBytes: cmp.Or(d.MessageBytes, l.MessageBytes),
	}
}
