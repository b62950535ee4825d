// Package client speaks the HTTP API: by unix socket or URL, with a bearer
// token where one is needed, and one WebSocket for the live picture.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

const (
	// maxBody bounds an answer: a machine of 41,000 nodes is a tenth of it.
	maxBody = 64 << 20
	// maxProblem bounds a refusal, whose words are kept.
	maxProblem = 64 << 10
	// dialTimeout bounds how long a dead host holds a page.
	dialTimeout = 3 * time.Second
	// requestTimeout bounds a request whose caller set no deadline, actTimeout one that changes something: nodes are
	// asked for it, and who gives up before the daemon does not know whether it happened.
	requestTimeout = 10 * time.Second
	actTimeout     = 30 * time.Second
)

// Client talks to one daemon, or to those of a cluster. Its methods may be called concurrently.
type Client struct {
	to    *several
	name  string // of the daemon, in errors
	token string
	http  *http.Client
	// WhenLate hears with each answer by how many seconds the daemon itself is late, where it is; nil: nobody does. It
	// is set before the first call.
	WhenLate func(seconds string)
	share    *share // nil: answers are bounded by maxBody alone
}

// New makes a client of addr, which is unix:/path or http(s)://host:port, or of the daemons of a cluster, separated by
// commas: the first that answers is asked. Nothing is sent before the first call. Token is a bearer token, "" for none;
// it is refused for plain http off loopback.
func New(addr, token string) (*Client, error) {
	c := &Client{name: addr, token: token, to: &several{}}
	for one := range strings.SplitSeq(addr, ",") {
		p, err := newPlace(strings.TrimSpace(one), token)
		if err != nil {
			return nil, err
		}
		c.to.places = append(c.to.places, p)
	}
	c.connect()
	return c, nil
}

func newPlace(addr, token string) (*place, error) {
	p := &place{}
	dialer := &net.Dialer{Timeout: dialTimeout}
	p.dial = dialer.DialContext
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path = strings.TrimPrefix(path, "//"); path == "" {
			return nil, fmt.Errorf("address %q: %w: want unix:/path/to/socket", addr, api.ErrInvalid)
		}
		p.base = url.URL{Scheme: "http", Host: "localhost"}
		p.near, p.dial = true, func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		return p, nil
	}
	u, err := url.Parse(addr)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("address %q: %w: want unix:/path or http(s)://host:port", addr, api.ErrInvalid)
	}
	if token != "" && u.Scheme == "http" && !topology.Loopback(u.Hostname()) {
		return nil,
			fmt.Errorf(
				"address %q: %w: a token would cross the network in clear text; use https or the unix socket", addr,
				api.ErrInvalid)
	}
	p.base = url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	return p, nil
}

// Over makes a client of the daemon that dial connects to, as to one in the same process.
func Over(dial func(context.Context) (net.Conn, error), token string) *Client {
	p := &place{base: url.URL{Scheme: "http", Host: "localhost"}, near: true,
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	c := &Client{name: "in this process", token: token, to: &several{places: []*place{p}}}
	c.connect()
	return c
}

func (c *Client) connect() {
	for _, p := range c.to.places {
		p.rt = &http.Transport{
			DialContext: p.dial, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
			ForceAttemptHTTP2: p.base.Scheme == "https", DisableCompression: p.near,
		}
		p.dialer = &websocket.Dialer{NetDialContext: p.dial, HandshakeTimeout: dialTimeout}
	}
	c.http = &http.Client{Transport: c.to}
}

// Close gives the idle connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// url is the address of an API resource; each part is one element of the path.
func (c *Client) url(query url.Values, parts ...string) *url.URL {
	u := c.to.places[0].base.JoinPath("api", "v1")
	for _, p := range parts {
		u = u.JoinPath(url.PathEscape(p))
	}
	u.RawQuery = query.Encode()
	return u
}

// Overview returns the newest second of the layer.
func (c *Client) Overview(ctx context.Context) (api.Overview, error) {
	return get[api.Overview](ctx, c, nil, "overview")
}

// Trend returns the last minutes of the layer and of each forwarder's clients.
func (c *Client) Trend(ctx context.Context) (api.Trend, error) {
	return get[api.Trend](ctx, c, nil, "trend")
}

// Forwarder returns one forwarder; ErrNotFound when the machine has no such one.
func (c *Client) Forwarder(ctx context.Context, id topology.ForwarderID) (api.ForwarderDetail, error) {
	return get[api.ForwarderDetail](ctx, c, nil, "forwarders", string(id))
}

// Nodes lists nodes by role and health; "" is any.
func (c *Client) Nodes(ctx context.Context, role, health string) ([]api.NodeRow, error) {
	return get[[]api.NodeRow](ctx, c, given(map[string]string{"role": role, "health": health}), "nodes")
}

// Node returns one node of any layer; ErrNotFound when the machine has no such one.
func (c *Client) Node(ctx context.Context, id topology.NodeID) (api.NodeView, error) {
	return get[api.NodeView](ctx, c, nil, "nodes", string(id))
}

// Checks looks at the whole installation; operators may.
func (c *Client) Checks(ctx context.Context) ([]api.Check, error) {
	return get[[]api.Check](ctx, c, nil, "checks")
}

func pastQuery(at time.Time) url.Values {
	if at.IsZero() {
		return nil
	}
	return url.Values{"at": {at.UTC().Format(time.RFC3339)}}
}

// OverviewAt is the layer as it was; the zero time is now.
func (c *Client) OverviewAt(ctx context.Context, at time.Time) (api.Overview, error) {
	return get[api.Overview](ctx, c, pastQuery(at), "overview")
}

// ForwarderAt is one forwarder as it was, of the zero time as it is; ErrNotFound when the machine has no such one.
func (c *Client) ForwarderAt(ctx context.Context, id topology.ForwarderID, at time.Time) (api.ForwarderDetail,
	error) {
	return get[api.ForwarderDetail](ctx, c, pastQuery(at), "forwarders", string(id))
}

// Marks lists what the journal says happened in [from, to), the oldest first; of more than limit the newest.
func (c *Client) Marks(ctx context.Context, from, to time.Time, limit int) ([]remap.Mark, error) {
	return get[[]remap.Mark](ctx, c, url.Values{"from": {from.UTC().Format(time.RFC3339)},
		"to": {to.UTC().Format(time.RFC3339)}, "limit": {strconv.Itoa(limit)}}, "marks")
}

// JobRuns compares a job with the runs like it; ErrNotFound when there never was such a job.
func (c *Client) JobRuns(ctx context.Context, id topology.JobID, limit int) (api.JobRuns, error) {
	return get[api.JobRuns](ctx, c, url.Values{"limit": {strconv.Itoa(limit)}}, "jobs", string(id), "runs")
}

// Occupancy is how busy the forwarders were in the last span, by buckets, without the single forwarders.
func (c *Client) Occupancy(ctx context.Context, span, bucket time.Duration) (api.OccupancyView, error) {
	return get[api.OccupancyView](ctx, c, url.Values{"from": {"-" + span.String()}, "bucket": {bucket.String()},
		"nodes": {"0"}}, "occupancy")
}

// Jobs lists the running jobs and those that ended last.
func (c *Client) Jobs(ctx context.Context) ([]api.JobRow, error) {
	return get[[]api.JobRow](ctx, c, url.Values{"state": {"all"}}, "jobs")
}

// Job returns one job; ErrNotFound when there never was such one.
func (c *Client) Job(ctx context.Context, id topology.JobID) (api.JobView, error) {
	return get[api.JobView](ctx, c, nil, "jobs", string(id))
}

// Plans lists the plans, the newest first.
func (c *Client) Plans(ctx context.Context) ([]api.PlanRow, error) {
	return get[[]api.PlanRow](ctx, c, nil, "plans")
}

// Plan returns one plan with its preview; ErrNotFound.
func (c *Client) Plan(ctx context.Context, id string) (api.PlanView, error) {
	return get[api.PlanView](ctx, c, nil, "plans", id)
}

// Audit returns what was done, the newest first; ErrInvalid for what is not a time.
func (c *Client) Audit(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error) {
	query := given(map[string]string{"actor": q.Actor, "subject": q.Subject, "from": q.From, "to": q.To})
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[[]api.AuditEntry](ctx, c, query, "audit")
}

// Propose makes a plan that waits for approval. Errors: ErrInvalid, ErrNotAllowed, ErrConflict.
func (c *Client) Propose(ctx context.Context, m api.ManualRemap) (api.PlanView, error) {
	return c.post(ctx, m, "plans")
}

// Approve says yes to the preview behind hash. Errors: ErrChanged, ErrNotAllowed, ErrNotFound, ErrConflict.
func (c *Client) Approve(ctx context.Context, id, hash, reason string) (api.PlanView, error) {
	return c.post(ctx, api.Decision{PreviewHash: hash, Reason: reason}, "plans", id, "approve")
}

// Reject says no. Errors: ErrNotAllowed, ErrNotFound, ErrConflict.
func (c *Client) Reject(ctx context.Context, id, reason string) (api.PlanView, error) {
	return c.post(ctx, api.Decision{Reason: reason}, "plans", id, "reject")
}

// RollBack takes a plan back. Errors: ErrNotAllowed, ErrNotFound, ErrConflict.
func (c *Client) RollBack(ctx context.Context, id, reason string) (api.PlanView, error) {
	return c.post(ctx, api.Decision{Reason: reason}, "plans", id, "rollback")
}

// Complete tries the moves again that were not made. Errors: ErrNotAllowed, ErrNotFound, ErrConflict.
func (c *Client) Complete(ctx context.Context, id, reason string) (api.PlanView, error) {
	return c.post(ctx, api.Decision{Reason: reason}, "plans", id, "complete")
}

// Stop ends an apply after the orders under way. Errors: ErrNotAllowed, ErrNotFound, ErrConflict.
func (c *Client) Stop(ctx context.Context, id, reason string) (api.PlanView, error) {
	return c.post(ctx, api.Decision{Reason: reason}, "plans", id, "stop")
}

// SignInLink makes an address that signs the caller in at the browser, once; by the unix socket only.
// Errors: ErrNotAllowed, ErrNotFound (not on this listener), ErrConflict (no address for browsers).
func (c *Client) SignInLink(ctx context.Context) (api.SignInLink, error) {
	return send[api.SignInLink](ctx, c, nil, "sign-in-link")
}

// given are the parameters that are not empty.
func given(params map[string]string) url.Values {
	q := url.Values{}
	for name, text := range params {
		if text != "" {
			q.Set(name, text)
		}
	}
	return q
}

func get[T any](ctx context.Context, c *Client, query url.Values, parts ...string) (T, error) {
	var v T
	err := c.do(ctx, http.MethodGet, c.url(query, parts...), nil, "", &v)
	return v, err
}

// Dispatch reports that a job is about to start and returns what was decided for it; the same job again
// gets the same answer, with its plan's present state. Errors: ErrInvalid, ErrNotAllowed.
func (c *Client) Dispatch(ctx context.Context, r dispatch.Request) (dispatch.Answer, error) {
	return send[dispatch.Answer](ctx, c, r, "dispatch")
}

// EndJob reports that a job has ended. It is safe to repeat. Errors: ErrNotAllowed.
func (c *Client) EndJob(ctx context.Context, id topology.JobID) (dispatch.Ended, error) {
	return send[dispatch.Ended](ctx, c, nil, "jobs", string(id), "end")
}

func (c *Client) post(ctx context.Context, body any, parts ...string) (api.PlanView, error) {
	return send[api.PlanView](ctx, c, body, parts...)
}

func send[T any](ctx context.Context, c *Client, body any, parts ...string) (T, error) {
	return write[T](ctx, c, http.MethodPost, body, nil, parts...)
}

// write sends a write with its own idempotency key. A connection that broke says nothing of whether
// the write was taken, so it is sent once more under the same key, which makes that harmless.
func write[T any](ctx context.Context, c *Client, method string, body any, query url.Values, parts ...string) (T,
	error) {
	var v T
	b, err := json.Marshal(body)
	if err != nil {
		return v, fmt.Errorf("BUG: encode %T: %w", body, err)
	}
	key, u := rand.Text(), c.url(query, parts...)
	err = c.do(ctx, method, u, b, key, &v)
	var broken *lostError
	if errors.As(err, &broken) && ctx.Err() == nil {
		err = c.do(ctx, method, u, b, key, &v)
	}
	return v, err
}

// lostError is a request without an answer.
type lostError struct {
	daemon string
	err    error
}

func (e *lostError) Error() string {
	text := e.err.Error()
	var u *url.Error
	if errors.As(e.err, &u) {
		text = u.Err.Error() // without the made-up host of a unix socket
	}
	var op *net.OpError
	if errors.As(e.err, &op) {
		text = op.Err.Error() // without the address, which stands before it
	}
	if call := new(os.SyscallError); errors.As(e.err, &call) {
		text = call.Err.Error()
	}
	if dns := new(net.DNSError); errors.As(e.err, &dns) {
		text = dns.Err // without the server that was asked
	}
	return fmt.Sprintf("fairwayd does not answer: %s (%s)%s", text, e.daemon, e.advice())
}

// advice is what to do about the commonest causes.
func (e *lostError) advice() string {
	switch {
	case strings.HasPrefix(e.daemon, "unix:") &&
		(errors.Is(e.err, fs.ErrNotExist) || errors.Is(e.err, unix.ECONNREFUSED)):
		return "; start it on this host, or name another by --addr or FAIRWAY_ADDR"
	case errors.Is(e.err, http.ErrSchemeMismatch):
		return "; its address begins with http://"
	case errors.As(e.err, new(x509.UnknownAuthorityError)):
		return "; let SSL_CERT_FILE name the certificate of the site's own authority"
	}
	return ""
}

func (e *lostError) Unwrap() []error { return []error{api.ErrUnreachable, e.err} }

// do sends one request and decodes its answer or its refusal.
func (c *Client) do(ctx context.Context, method string, u *url.URL, body []byte, key string, into any) error {
	if _, ok := ctx.Deadline(); !ok {
		within := requestTimeout
		if method != http.MethodGet {
			within = actTimeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request %s %s: %w", method, u.Path, err)
	}
	req.Header = c.header()
	req.Header.Set("Accept", "application/json")
	if key != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &lostError{c.name, err}
	}
	defer resp.Body.Close()
	if late := resp.Header.Get(api.LateHeader); late != "" && c.WhenLate != nil {
		c.WhenLate(late)
	}
	most, from := int64(maxBody), io.Reader(resp.Body)
	if c.share != nil {
		taken := &taken{from: from, share: c.share}
		defer taken.giveBack()
		most, from = mostAnswer, taken
	}
	b, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case errors.Is(err, errShare):
		return fmt.Errorf("%s %s: %w", method, u.Path, err)
	case err != nil:
		return &lostError{c.name, err}
	case int64(len(b)) > most:
		return fmt.Errorf("%s %s: the answer is larger than %d bytes", method, u.Path, most)
	case resp.StatusCode >= 300:
		return refusal(resp, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s %s: the answer is not what this version of fairway reads: %w", method, u.Path, err)
	}
	return nil
}

func (c *Client) header() http.Header {
	h := http.Header{}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	return h
}

// refusal reads a problem document; another answer, as a proxy sends it, keeps its status.
func refusal(resp *http.Response, body []byte) error {
	d := api.Problem{}
	if len(body) > maxProblem || !strings.HasPrefix(resp.Header.Get("Content-Type"), api.ProblemType) ||
		json.Unmarshal(body, &d) != nil {
		d = api.Problem{}
	}
	d.Status = resp.StatusCode
	return d.Error()
}

// Sessions lists the open sessions in browsers: an admin's view of all, else the caller's own.
func (c *Client) Sessions(ctx context.Context) ([]api.OpenSession, error) {
	return get[[]api.OpenSession](ctx, c, nil, "sessions")
}

// EndSession ends a session and returns those that are left. Errors: ErrNotFound.
func (c *Client) EndSession(ctx context.Context, id string) ([]api.OpenSession, error) {
	return write[[]api.OpenSession](ctx, c, http.MethodDelete, nil, nil, "sessions", id)
}
