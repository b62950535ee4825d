package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"fairway/collector/appendlog"
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
	Accounts     []access.Account      `toml:"account" help:"People who sign in with a password."`
	Proxy        []access.Proxy        `toml:"proxy" help:"At most one reverse proxy that signs people in."`
	OIDC         access.OIDC           `toml:"oidc"`
	Enrolment    Enrolment             `toml:"enrolment"`
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

// ForWeb turns the settings into what the server checks; it reads the tokens' files.
func (a *Access) ForWeb() (access.Config, error) {
	w := access.Config{Anonymous: a.Anonymous, Groups: a.Groups, SecureCookie: a.SecureCookie,
		Accounts: a.Accounts}
	if o := a.OIDC; o.Issuer != "" {
		var err error
		if o.SecretFile != "" {
			if o.ClientSecret, err = appendlog.ReadPrivate(o.SecretFile); err != nil {
				return w, fmt.Errorf("access.oidc.client_secret_file: %w", err)
			}
		}
		w.OIDC = &o
	}
	for _, t := range a.Tokens {
		sum := t.SHA256
		switch {
		case (t.SHA256 == "") == (t.File == ""):
			return w, fmt.Errorf("[[access.token]] %q: want either sha256 or file", t.Name)
		case t.File != "":
			secret, err := ReadSecret(t.File)
			if err != nil {
				return w, fmt.Errorf("[[access.token]] %q: %w", t.Name, err)
			}
			sum = access.HashToken(secret)
		}
		w.Tokens = append(w.Tokens, access.Token{Name: t.Name, Role: t.Role, SHA256: sum, Nodes: t.Nodes,
			Limits: t.limits()})
	}
	switch len(a.Proxy) {
	case 0:
	case 1:
		p := a.Proxy[0]
		if len(p.From) == 0 || p.UserHeader == "" {
			return w, errors.New("[[access.proxy]]: from and user_header are needed, or anybody could say who they are")
		}
		w.Proxy = &p
	default:
		return w, fmt.Errorf("%d times [[access.proxy]], at most one", len(a.Proxy))
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
