package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/fairway/clienttest"
	"fairway/collector/topology"
	"fairway/console/consoletest"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// serve starts a fake daemon on a unix socket and makes its client.
func serve(t *testing.T, fake *consoletest.Fake) (*client.Client, *clienttest.Handler) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.sock")
	h := clienttest.NewHandler(t.Context(), fake)
	listen(t, path, h)
	return dial(t, "unix:"+path), h
}

func listen(t *testing.T, path string, h http.Handler) *http.Server {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Close(); wait.Wait() })
	return s
}

func dial(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.New(addr, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAPlanFromProposalToRollBack(t *testing.T) {
	fake := consoletest.New(8, 1, noon)
	c, h := serve(t, fake)
	ctx := t.Context()
	mine, err := c.Propose(ctx, api.ManualRemap{Nodes: []topology.NodeID{"c1"}, To: "fwd002",
		Reason: "fwd001 is slow today"})
	if err != nil || mine.State != remap.Proposed || mine.MayApprove == "" {
		t.Fatalf("%+v, %v", mine, err)
	}
	if _, err = c.Approve(ctx, mine.ID, mine.PreviewHash, "because it is slow"); !errors.Is(err,
		api.ErrNotAllowed) {
		t.Errorf("the proposer approved: %v", err)
	}
	other := fake.AddPlan(api.ManualRemap{Nodes: []topology.NodeID{"c2"}, To: "fwd002"}, "sam")
	if _, err = c.Approve(ctx, other.ID, "old hash", "because it is slow"); !errors.Is(err, api.ErrChanged) ||
		!strings.Contains(err.Error(), "fwd200 went stale") {
		t.Errorf("an old preview was approved: %v", err)
	}
	if v, err := c.Approve(ctx, other.ID, other.PreviewHash, "because it is slow"); err != nil ||
		v.State != remap.Verified {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Reject(ctx, other.ID, "too late now"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("a verified plan was rejected: %v", err)
	}
	if v, err := c.RollBack(ctx, other.ID, "it did not help"); err != nil || v.State != remap.RolledBack {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Plan(ctx, "P-999"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a plan that is not there: %v", err)
	}
	if _, err := c.Forwarder(ctx, "../overview"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a name with a slash left its place in the path: %v", err)
	}
	seen := map[string]bool{}
	for _, k := range h.Keys() {
		if len(k) < 20 || seen[k] {
			t.Errorf("idempotency keys %q: each write needs its own", h.Keys())
		}
		seen[k] = true
	}
}

// A connection that breaks before the answer says nothing of the write: it is repeated under the
// same key, once.
func TestABrokenConnectionRepeatsTheSameKey(t *testing.T) {
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if len(keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"id":"P-1","state":"proposed"}`)
	}))
	defer s.Close()
	v, err := dial(t, s.URL).Propose(t.Context(), api.ManualRemap{To: "fwd1"})
	if err != nil || v.ID != "P-1" {
		t.Fatalf("%+v, %v", v, err)
	}
	if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("keys %q, want the same one twice", keys)
	}
}

func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		status                  int
		want                    error
		text                    string
	}{
		{"a proxy's own page", "text/html", "<h1>Bad Gateway</h1>", 502, api.ErrUnreachable, "502"},
		{"a problem that is cut off", "application/problem+json", `{"detail":"the p`, 403, api.ErrNotAllowed,
			"403"},
		{"a problem with another status inside", "application/problem+json",
			`{"status":200,"detail":"fwd3 is excluded"}`, 409, api.ErrConflict, "fwd3 is excluded"},
		{"a truncated answer", "application/json", `{"id":"P-1`, 200, nil, "is not what this version of fairway reads"},
		{"a failure of the server", "application/problem+json", `{"detail":"disk full"}`, 500, nil, "disk full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer s.Close()
			_, err := dial(t, s.URL).Plan(t.Context(), "P-1")
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	got := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		fmt.Fprint(w, "[]")
	}))
	defer s.Close()
	c, err := client.New(s.URL, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Plans(t.Context()); err != nil || got != "Bearer s3cret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := client.New("http://fairway.site:8080", "s3cret"); err == nil ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a token in clear text over the network: %v", err)
	}
	for _, bad := range []string{"", "unix:", "fairway:80", "ftp://x", "http://"} {
		if _, err := client.New(bad, ""); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// event is one call of Watch's update.
type event struct {
	at  time.Time
	err error
}

// The feed survives the daemon: its loss comes with the last overview, and it comes back by
// itself.
func TestWatchSurvivesARestart(t *testing.T) {
	fake := consoletest.New(8, 1, noon)
	path := filepath.Join(t.TempDir(), "d.sock")
	first, stop := context.WithCancel(t.Context())
	server := listen(t, path, clienttest.NewHandler(first, fake))
	c := dial(t, "unix:"+path)
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan event)
	var wait sync.WaitGroup
	wait.Go(func() {
		c.Watch(ctx, func(o api.Overview, err error) {
			select {
			case events <- event{o.At, err}:
			case <-ctx.Done():
			}
		})
	})
	defer wait.Wait()
	defer cancel()
	if e := <-events; e.err != nil || !e.at.Equal(noon.Add(-time.Second)) {
		t.Fatalf("%+v", e)
	}
	fake.Step(noon.Add(time.Second), true)
	if e := <-events; e.err != nil || !e.at.Equal(noon) {
		t.Fatalf("%+v", e)
	}
	stop() // the feeds
	server.Close()
	e := <-events
	if !errors.Is(e.err, api.ErrUnreachable) || !e.at.Equal(noon) {
		t.Fatalf("lost: %+v, want the last overview and why", e)
	}
	listen(t, path, clienttest.NewHandler(t.Context(), fake))
	for e = range events {
		if e.err == nil {
			break
		}
		if !errors.Is(e.err, api.ErrUnreachable) || !strings.Contains(e.err.Error(), path) {
			t.Errorf("while away: %v", e.err)
		}
	}
	if !e.at.Equal(noon) {
		t.Errorf("back with %v", e.at)
	}
}

func TestWatchSaysARefusal(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"status":403,"detail":"olga has no role here"}`)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	dial(t, s.URL).Watch(ctx, func(_ api.Overview, err error) {
		if !errors.Is(err, api.ErrNotAllowed) || !strings.Contains(err.Error(), "olga has no role here") {
			t.Errorf("got %v", err)
		}
		cancel()
	})
}
