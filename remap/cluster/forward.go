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

// Serve answers what the other daemons pass on.
func (n *Node) Serve(s *http.Server) {
	n.http.server = s
	n.http.client = &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, _, name string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(name)
			if err != nil {
				return nil, err
			}
			return n.peers.dial(ctx, n.cfg.of(host).Addr, forHTTP)
		}}
	n.tasks.Go(func() { _ = s.Serve(httpListener{n.peers}) })
}

// awaitLeader is how long a request waits for a leader: an election takes two to three seconds.
const awaitLeader = 8 * time.Second

// AwaitLeader waits for a leader and returns its name; self says that it is this daemon.
func (n *Node) AwaitLeader(ctx context.Context) (name string, self bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, awaitLeader)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		watch := n.lead.awaited()
		if name = n.Leader(); name != "" {
			return name, name == n.cfg.Name, nil
		}
		select {
		case <-ctx.Done():
			s := n.Status()
			return "", false, fmt.Errorf("%w: %s", remap.ErrNotLeading, s.Notice(time.Now()))
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
