package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"fairway/remap"
	"fairway/webui/api"
)

// callerHeader says who asks, in a request that one daemon of a cluster passes on to another.
const callerHeader = "Fairway-Caller"

// caller is what crosses.
type caller struct {
	Person remap.Person `json:"person"`
	Remote string       `json:"remote"`
}

// PassOn prepares a request of by for another daemon: it says who asks instead of proving it. The daemons have proved
// their names to each other, and nothing but what they say crosses their connection.
func PassOn(r *http.Request, by Caller) {
	if by.Role == RoleJoin { // its token proves it there as here
		return
	}
	for _, name := range []string{"Authorization", "Cookie", SecretHeader, "Origin", "Sec-Fetch-Site", callerHeader} {
		r.Header.Del(name)
	}
	b, _ := json.Marshal(caller{by.Person, by.Remote}) // text is always encoded
	r.Header.Set(callerHeader, base64.StdEncoding.EncodeToString(b))
}

// passedOn is who another daemon says that a request is from. What it says counts as far as the settings here give that
// person the role too.
func (id *identities) passedOn(r *http.Request) (Caller, error) {
	var c caller
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Caller{}, fmt.Errorf("%w: no daemon of the cluster asks", api.ErrSignIn)
	}
	if auth := r.Header.Get("Authorization"); auth != "" {
		return id.byToken(Caller{Remote: r.RemoteAddr}, auth)
	}
	daemon := r.TLS.VerifiedChains[0][0].Subject.CommonName
	b, err := base64.StdEncoding.DecodeString(r.Header.Get(callerHeader))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return Caller{}, fmt.Errorf("%w: daemon %s does not say who asks: %w", api.ErrSignIn, daemon, err)
	}
	if most := id.conf.mostRole(c.Person); moreRole(most, c.Person.Role) {
		return Caller{}, fmt.Errorf("%w: daemon %s says that %s (by %s) has the role %q, and by the settings of the "+
			"daemon that leads it is %q: let both have the same [access]", api.ErrNotAllowed, daemon, c.Person.Name,
			c.Person.Via, c.Person.Role, most)
	}
	return Caller{Person: c.Person, Remote: c.Remote}, nil
}

// mostRole is the largest role that a person who came by a way may have by these settings.
func (a *Config) mostRole(p remap.Person) (most remap.Role) {
	vouched := []remap.Role{a.Anonymous}
	role, known := a.RoleNow(p.Name, p.Via)
	switch {
	case known:
		vouched = append(vouched, role)
	case a.OIDC != nil && p.Via == "session":
		vouched = slices.AppendSeq(vouched, maps.Values(a.OIDC.Roles))
	case a.Proxy != nil && p.Via == "proxy":
		vouched = slices.AppendSeq(append(vouched, a.Proxy.Default), maps.Values(a.Proxy.Roles))
	}
	for _, role := range vouched {
		if moreRole(most, role) {
			most = role
		}
	}
	return most
}
