package client

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

// place is one address of a daemon.
type place struct {
	near   bool // on this host: nothing is compressed for it
	base   url.URL
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	dialer *websocket.Dialer
	rt     http.RoundTripper
}

// several asks the daemons of a cluster one after the other: that which answered last first. Whatever a client sends
// may be sent twice, because each change has an idempotency key.
type several struct {
	places []*place
	last   atomic.Int32
}

// order lists the places, the one that answered last first.
func (s *several) order() []int {
	first, n := int(s.last.Load()), len(s.places)
	out := make([]int, n)
	for i := range out {
		out[i] = (first + i) % n
	}
	return out
}

// RoundTrip implements http.RoundTripper. The request's address is the first place's.
func (s *several) RoundTrip(r *http.Request) (res *http.Response, err error) {
	for i, n := range s.order() {
		if i > 0 && r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		p := s.places[n]
		res, err = p.rt.RoundTrip(p.request(r, &s.places[0].base))
		last := i == len(s.places)-1
		switch {
		case err == nil && (res.StatusCode != http.StatusServiceUnavailable || last):
			s.last.Store(int32(n))
			return res, nil
		case err == nil: // it has no leader; another one may
			res.Body.Close()
		case r.Context().Err() != nil || last:
			return nil, err
		}
	}
	return res, err
}

// request is r for this place instead of the first one.
func (p *place) request(r *http.Request, first *url.URL) *http.Request {
	out := r.Clone(r.Context())
	out.URL = p.move(r.URL, first)
	out.Host = ""
	return out
}

// move is an address of the first place at this one, which no path leads away from: two slashes are no other host.
func (p *place) move(u, first *url.URL) *url.URL {
	rest := strings.TrimPrefix(strings.TrimPrefix(u.EscapedPath(), first.EscapedPath()), "/")
	at := p.base
	at.RawPath = p.base.EscapedPath() + "/" + rest
	var err error
	if at.Path, err = url.PathUnescape(at.RawPath); err != nil {
		return u // it was parsed before: this does not happen
	}
	at.RawQuery = u.RawQuery
	return &at
}

// CloseIdleConnections is called by http.Client's own.
func (s *several) CloseIdleConnections() {
	for _, p := range s.places {
		if c, ok := p.rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// dialWS opens a WebSocket at the first place that takes it.
func (s *several) dialWS(ctx context.Context, u *url.URL, head http.Header) (conn *websocket.Conn, res *http.Response,
	err error) {
	for _, n := range s.order() {
		p := s.places[n]
		at := p.move(u, &s.places[0].base)
		at.Scheme = "ws" + strings.TrimPrefix(at.Scheme, "http")
		if conn, res, err = p.dialer.DialContext(ctx, at.String(), head); err == nil || ctx.Err() != nil {
			s.last.Store(int32(n))
			return conn, res, err
		}
	}
	return conn, res, err
}
