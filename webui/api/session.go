package api

import (
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// Session is who a request is from, and what the page needs to know before it shows anything.
type Session struct {
	Name    string     `json:"name"`
	Role    remap.Role `json:"role"`
	Via     string     `json:"via"`
	Expires *time.Time `json:"expires,omitempty"`
	Machine string     `json:"machine"`
	Version string     `json:"version"`
	// CanSignIn says that there are accounts; HowTo says how to get a role without one.
	CanSignIn bool `json:"can_sign_in"`
	// SignInAt is the host of the OpenID Connect provider; empty without one.
	SignInAt string `json:"sign_in_at,omitempty"`
	HowTo    string `json:"how_to"`
	// Secret is what the header X-Fairway-Session must say besides the cookie; in the answer to a sign-in alone.
	Secret string `json:"secret,omitempty"`
	// Locked says that the browser has a session's cookie, and this request not its secret.
	Locked bool `json:"locked,omitempty"`
	// ReasonLetters is the shortest reason where one is required.
	ReasonLetters int `json:"reason_letters"`
	// Sites are the machines whose consoles a page can go to, of a site that has several; for who may read.
	Sites []Site `json:"sites,omitempty"`
}

// Site is another machine: nothing of it is in this one's answers.
type Site struct {
	Name string `json:"name"`
	Addr string `json:"addr"` // http(s)://host:port
}

// OpenSession is one signed-in browser.
type OpenSession struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Role    remap.Role `json:"role"`
	By      string     `json:"by"`   // password, link or provider
	From    string     `json:"from"` // the address that it was opened from
	Begun   time.Time  `json:"begun"`
	Expires time.Time  `json:"expires"`
	Current bool       `json:"current,omitempty"` // the asking browser's own
}

// SignIn is the body of POST /api/v1/session: a name and password, or a one-time code.
type SignIn struct {
	Name     string `json:"name,omitempty"`
	Password string `json:"password,omitempty"`
	Code     string `json:"code,omitempty"`
}

// SignInLink is an address that signs its first visitor in, once.
type SignInLink struct {
	Address string     `json:"address"`
	Name    string     `json:"name"`
	Role    remap.Role `json:"role"`
	Until   time.Time  `json:"until"`
}

// Enrolment asks for a node's own token, by a join token.
type Enrolment struct {
	Node topology.NodeID `json:"node"`
}

// Revocation names nodes whose tokens are refused, and up to when these were issued; in a request the zero time is now.
type Revocation struct {
	Nodes map[topology.NodeID]time.Time `json:"nodes"`
}

// Enrolled is a node's own token.
type Enrolled struct {
	Node  topology.NodeID `json:"node"`
	Token string          `json:"token"`
}
