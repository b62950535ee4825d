package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

// serve starts a site and makes clients of it: of olga, an operator, and of ada, an admin. Keys are the idempotency
// keys of the writes.
func serve(t *testing.T) (site *simsite.Site, olga, ada *client.Client, keys func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	noted := simsite.Wraps{Answers: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if k := r.Header.Get("Idempotency-Key"); k != "" {
				mu.Lock()
				seen = append(seen, k)
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	}}
	site = simsite.New(t, simsite.Options{Offline: true, Wraps: noted})
	olga, ada = client.Over(site.Dial, simsite.OperatorSecret), client.Over(site.Dial, simsite.AdminSecret)
	t.Cleanup(olga.Close)
	t.Cleanup(ada.Close)
	seconds(site, 3)
	return site, olga, ada, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// seconds lets some seconds come in a bubble of synctest.
func seconds(s *simsite.Site, n int) {
	for range n {
		s.Second()
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
	}
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
	synctest.Test(t, func(t *testing.T) {
		site, olga, ada, keys := serve(t)
		ctx := t.Context()
		ask := api.ManualRemap{Nodes: site.Machine.Topo.Default.Clients("fwd001"), To: "fwd002",
			Reason: "fwd001 is slow today"}
		mine, err := olga.Propose(ctx, ask)
		if err != nil || mine.State != remap.Proposed || mine.MayApprove == "" {
			t.Fatalf("%+v, %v", mine, err)
		}
		if _, err = olga.Approve(ctx, mine.ID, mine.PreviewHash, "because it is slow"); !errors.Is(err,
			api.ErrNotAllowed) {
			t.Errorf("the proposer approved: %v", err)
		}
		ask.Nodes, ask.To = site.Machine.Topo.Default.Clients("fwd003"), "fwd004"
		other, err := ada.Propose(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = olga.Approve(ctx, other.ID, "old hash", "because it is slow"); !errors.Is(err, api.ErrChanged) {
			t.Errorf("an old preview was approved: %v", err)
		}
		if _, err := olga.Approve(ctx, other.ID, other.PreviewHash, "because it is slow"); err != nil {
			t.Errorf("approve: %v", err)
		}
		seconds(site, 4)
		if v, err := olga.Plan(ctx, other.ID); err != nil || v.State != remap.Verified {
			t.Errorf("%+v, %v", v, err)
		}
		if _, err := olga.Reject(ctx, other.ID, "too late now"); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a verified plan was rejected: %v", err)
		}
		if _, err := olga.RollBack(ctx, other.ID, "it did not help"); err != nil {
			t.Errorf("roll back: %v", err)
		}
		seconds(site, 4)
		if v, err := olga.Plan(ctx, other.ID); err != nil || v.State != remap.RolledBack {
			t.Errorf("%+v, %v", v, err)
		}
		if _, err := olga.Plan(ctx, "P-999"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a plan that is not there: %v", err)
		}
		if _, err := olga.Forwarder(ctx, "../overview"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a name with a slash left its place in the path: %v", err)
		}
		seen := map[string]bool{}
		for _, k := range keys() {
			if len(k) < 20 || seen[k] {
				t.Errorf("idempotency keys %q: each write needs its own", keys())
			}
			seen[k] = true
		}
	})
}

// A connection that breaks before the answer says nothing of the write: it is repeated under the
// same key, once.
func TestABrokenConnectionRepeatsTheSameKey(t *testing.T) {
	var mu sync.Mutex // the second request comes before the first one's handler has ended
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		first := len(keys) == 1
		mu.Unlock()
		if first {
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
	synctest.Test(t, func(t *testing.T) {
		site, _, _, _ := serve(t)
		var mu sync.Mutex
		away, open := false, []net.Conn{}
		c := client.Over(func(ctx context.Context) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return nil, errors.New("connection refused")
			}
			conn, err := site.Dial(ctx)
			open = append(open, conn)
			return conn, err
		}, simsite.ViewerSecret)
		defer c.Close()
		restart := func(goes bool) {
			mu.Lock()
			defer mu.Unlock()
			away = goes
			for _, conn := range open {
				conn.Close()
			}
			open = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var last event
		var wait sync.WaitGroup
		wait.Go(func() {
			c.Watch(ctx, func(o api.Overview, err error) {
				mu.Lock()
				last = event{o.At, err}
				mu.Unlock()
			})
		})
		defer wait.Wait()
		defer cancel()
		newest := func() event {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return last
		}
		seconds(site, 1)
		first := newest()
		if first.err != nil || first.at.IsZero() {
			t.Fatalf("%+v", first)
		}
		seconds(site, 1)
		second := newest()
		if second.err != nil || !second.at.Equal(first.at.Add(time.Second)) {
			t.Fatalf("%+v after %+v", second, first)
		}
		restart(true)
		seconds(site, 3)
		if e := newest(); !errors.Is(e.err, api.ErrUnreachable) || !e.at.Equal(second.at) ||
			!strings.Contains(e.err.Error(), "connection refused") {
			t.Fatalf("lost: %+v, want the last overview and why", e)
		}
		restart(false)
		seconds(site, 8)
		if e := newest(); e.err != nil || e.at.Before(second.at.Add(5*time.Second)) {
			t.Errorf("back with %+v", e)
		}
	})
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

// TestWhatToDoWhereNobodyAnswers: who asks a daemon that is not there reads what to do.
func TestWhatToDoWhereNobodyAnswers(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secret := httptest.NewTLSServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer secret.Close()
	for addr, want := range map[string]string{
		"unix:" + gone: "fairwayd does not answer: no such file or directory (unix:" + gone +
			"); start it on this host, or name another by --addr or FAIRWAY_ADDR",
		strings.Replace(plain.URL, "http", "https", 1): "its address begins with http://",
		secret.URL: "let SSL_CERT_FILE name the certificate of the site's own authority",
	} {
		c, err := client.New(addr, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Plans(t.Context()); !errors.Is(err, api.ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
		c.Close()
	}
}
