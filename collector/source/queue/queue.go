// Package queue speaks with the fairway-queue of a forwarding node through its control socket: which
// clients it has, and the table of jobs that it serves by. The forwarder behind a queue sees the
// queue's address only, so its routes and connections come from here.
//
// It fills connections, the routes of the clients, and merged_ops, merged_messages and merged_bytes where the queue
// gathers. One tick is two requests on a unix socket.
package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Client is a node that is connected to a queue.
type Client struct {
	Node        topology.NodeID `json:"node"`
	Connections int             `json:"connections"`
}

// Merged is what a queue sent together since it began.
type Merged struct {
	// WritesIn are writes of clients that went with others, in WritesOut messages; ReadsIn are reads that shared the
	// answers to ReadsOut, or were answered by what was kept of them.
	WritesIn  int64 `json:"writes_in"`
	WritesOut int64 `json:"writes_out"`
	ReadsIn   int64 `json:"reads_in"`
	ReadsOut  int64 `json:"reads_out"`
	// Bytes are those of the clients' requests.
	Bytes int64 `json:"bytes"`
	// Hits are reads that needed no message of their own, Misses those that did; AheadBytes were read before anybody
	// asked for them, and nobody did for UnusedBytes.
	Hits        int64 `json:"hits,omitempty"`
	Misses      int64 `json:"misses,omitempty"`
	AheadBytes  int64 `json:"ahead_bytes,omitempty"`
	UnusedBytes int64 `json:"unused_bytes,omitempty"`
}

// ErrRefused says that a queue answered and did not do what it was asked.
var ErrRefused = errors.New("refused")

// maxAnswer bounds an answer, bytes.
const maxAnswer = 16 << 20

// Ask sends one request to the control socket of a queue: GET /report, /clients
// or /merged, or PUT /table or /global. What the queue refuses wraps ErrRefused; all else is about
// reaching it.
func Ask(ctx context.Context, socket, method, path string, body []byte) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	q, err := http.NewRequestWithContext(ctx, method, "http://queue"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("queue at %s: %w", socket, err)
	}
	a, err := client.Do(q)
	if bad := new(url.Error); errors.As(err, &bad) {
		err = bad.Err // without the host that HTTP wants and a socket has not
	}
	if err != nil {
		return nil, fmt.Errorf("queue at %s: %w", socket, err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("queue at %s: %w", socket, err)
	}
	if a.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("queue at %s: %w: %s", socket, ErrRefused,
			bytes.TrimSpace(answer[:min(len(answer), 4<<10)]))
	}
	return answer, nil
}

// Source reads one queue's clients once a second.
type Source struct {
	node   topology.NodeID
	socket string
	skip   map[topology.NodeID]bool
	rates  collector.Rates[collector.Metric]
	now    func() time.Time
}

var _ collector.Source = (*Source)(nil)

// New makes the source of the queue in front of a forwarding node. Clients to skip are no compute nodes:
// collectors and monitors; the node itself and localhost always are left out.
func New(node topology.NodeID, socket string, skip ...topology.NodeID) *Source {
	s := &Source{node: node, socket: socket, now: time.Now,
		skip: map[topology.NodeID]bool{"localhost": true, node: true}}
	for _, n := range skip {
		s.skip[n] = true
	}
	return s
}

// Name is the source's name in the configuration.
func (s *Source) Name() string { return "queue" }

// Close has nothing to release: each tick is a connection of its own.
func (s *Source) Close() error { return nil }

// Read asks the queue who is connected. A node whose queue does not run has no data.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	answer, err := Ask(ctx, s.socket, http.MethodGet, "/clients", nil)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", collector.ErrNoData, err)
	}
	if err != nil {
		return err
	}
	var clients []Client
	if err := json.Unmarshal(answer, &clients); err != nil {
		return fmt.Errorf("queue at %s: clients: %w", s.socket, err)
	}
	n := 0
	for _, c := range clients {
		if s.skip[c.Node] {
			continue
		}
		n += c.Connections
		into.Routes = append(into.Routes, collector.Route{Client: c.Node, Forwarder: topology.ForwarderID(s.node)})
	}
	into.RoutesComplete = true
	into.Add(collector.Connections, float64(n))
	return s.readMerged(ctx, into)
}

// readMerged reads what the queue sent together. One that does not gather, or is older, has nothing to report.
func (s *Source) readMerged(ctx context.Context, into *collector.Reading) error {
	answer, err := Ask(ctx, s.socket, http.MethodGet, "/merged", nil)
	if errors.Is(err, ErrRefused) {
		return nil
	}
	if err != nil {
		return err
	}
	var m *Merged
	if err := json.Unmarshal(answer, &m); err != nil {
		return fmt.Errorf("queue at %s: merged: %w", s.socket, err)
	}
	if m == nil {
		return nil
	}
	s.rates.Begin(s.now())
	for _, c := range []struct {
		metric collector.Metric
		count  int64
	}{{collector.MergedOps, m.WritesIn + m.ReadsIn}, {collector.MergedMessages, m.WritesOut + m.ReadsOut},
		{collector.MergedBytes, m.Bytes}} {
		if rate, ok := s.rates.Rate(c.metric, uint64(max(c.count, 0))); ok {
			into.Add(c.metric, rate)
		}
	}
	return nil
}
