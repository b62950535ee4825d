package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"fairway/remap"
)

// httpSide serves and sends the requests between daemons.
type httpSide struct {
	server *http.Server
	client *http.Transport
}

func (h *httpSide) close() error {
	if h.client != nil {
		h.client.CloseIdleConnections()
	}
	if h.server != nil {
		return h.server.Close()
	}
	return nil
}

// Serve answers what the other daemons pass on. bound is what bounds the connections of every listener.
func (n *Node) Serve(s *http.Server, bound func(net.Listener) net.Listener) {
	n.peers.listener = bound(n.peers.listener)
	n.http.server = s
	n.http.client = &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, _, name string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(name)
			if err != nil {
				return nil, err
			}
			c, _, err := n.peers.dial(ctx, n.cfg.of(host).Addr, forHTTP)
			return c, err
		}}
	n.tasks.Go(func() { _ = s.Serve(httpListener{n.peers}) })
}

// awaitLeader is how long a request waits for a leader: an election takes two to three seconds.
const awaitLeader = 8 * time.Second

// AtLeader has ask ask the daemon that leads; self says that it is this one, which is not asked. It waits for a leader,
// and where the one it knew has died for the next: what is asked must be safe to repeat.
func (n *Node) AtLeader(ctx context.Context, ask func(name string) error) (self bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, awaitLeader)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		watch := n.lead.awaited()
		switch name := n.Leader(); name {
		case n.cfg.Name:
			return true, nil
		case "":
			s := n.Status()
			err = fmt.Errorf("%w: %s", remap.ErrNotLeading, s.Notice(time.Now()))
		default:
			if err = ask(name); err == nil {
				return false, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-watch:
		case <-tick.C:
		}
	}
}

// Forward passes a request on to another daemon and its answer back. prepare changes the request that is sent.
func (n *Node) Forward(w http.ResponseWriter, r *http.Request, to string, prepare func(*http.Request)) (err error) {
	p := httputil.ReverseProxy{Transport: n.http.client,
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(&url.URL{Scheme: "http", Host: to})
			prepare(q.Out)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, cause error) {
			err = fmt.Errorf(
				"%w: daemon %s, which leads, did not answer; it is not known whether this was done: repeat "+
					"it under the same key: %w", remap.ErrNotLeading, to, cause)
		}}
	p.ServeHTTP(w, r)
	return err
}
