package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// endless writes an answer that never ends, until the other side leaves.
func endless(w http.ResponseWriter, begin string) {
	_, _ = io.WriteString(w, begin)
	for junk := strings.Repeat("a", 64<<10); ; {
		if _, err := io.WriteString(w, junk); err != nil {
			return
		}
	}
}

// provider is a sign-in provider that means harm, in a way that is set.
type provider struct {
	*httptest.Server
	way   atomic.Value // of string
	stop  chan struct{}
	asked atomic.Int64
}

func newProvider(t *testing.T) *provider {
	p := &provider{stop: make(chan struct{})}
	p.way.Store("hangs")
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(func() { close(p.stop); p.Close() })
	return p
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	way := p.way.Load().(string)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case way == "hangs":
		select {
		case <-p.stop:
		case <-r.Context().Done():
		}
	case strings.HasSuffix(r.URL.Path, "openid-configuration") && way == "endless discovery":
		endless(w, `{"issuer": "`)
	case strings.HasSuffix(r.URL.Path, "openid-configuration"):
		of := p.URL
		if way == "another's name" {
			of = "http://localhost:1"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": of, "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	case r.URL.Path == "/keys":
		endless(w, `{"keys": [`)
	case way == "endless token":
		endless(w, `{"access_token": "`)
	default: // tokens that nobody signed, or that are signed with what everybody knows
		part := func(v any) string {
			b, _ := json.Marshal(v)
			return base64.RawURLEncoding.EncodeToString(b)
		}
		head := part(map[string]string{"alg": "none"})
		if way != "unsigned" {
			head = part(map[string]string{"alg": "RS256", "kid": "k"})
		}
		body := part(map[string]any{"iss": p.URL, "aud": "fairway", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(),
			"preferred_username": "olga", "groups": []string{"ops"}})
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer",
			"id_token": head + "." + body + "."})
	}
}

// TestAttackProvider is a provider of sign-ins that hangs, answers without end, has another's name, or sends tokens
// that nobody signed: nobody is signed in, and nobody else waits.
func TestAttackProvider(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, fmt.Sprintf("[access.oidc]\nissuer = %q\nclient_id = \"fairway\"\nurl = \"http://127.0.0.1:1\"\n"+
		"[access.oidc.roles]\nops = \"admin\"\n", p.URL))
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string, cookie *http.Cookie) (*http.Response, string) {
		r, err := http.NewRequest("GET", "http://"+s.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			r.AddCookie(cookie)
		}
		res, err := c.Do(r)
		if err != nil {
			return nil, err.Error()
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res, string(text)
	}
	attack(t, s, "a provider that hangs, 40 sign-ins at a time", func() string {
		var wait sync.WaitGroup
		var began atomic.Int64
		for range 40 {
			wait.Go(func() {
				if res, _ := get("/api/v1/oidc/start", nil); res != nil && res.StatusCode == http.StatusSeeOther {
					began.Add(1)
				}
			})
		}
		wait.Wait()
		if n := p.asked.Load(); n > 2 || began.Load() > 0 {
			t.Errorf("%d of 40 began, the provider was asked %d times", began.Load(), n)
		}
		return fmt.Sprint(began.Load(), " sign-ins")
	})
	attack(t, s, "a provider that answers without end, or with tokens that nobody signed", func() string {
		signedIn, ways := 0, []string{"endless token", "unsigned", "unknown key"}
		if long {
			ways = append([]string{"endless discovery", "another's name"}, ways...)
		}
		failed := true
		for _, way := range ways {
			p.way.Store(way)
			if failed { // which is remembered for ten seconds
				time.Sleep(10*time.Second + 100*time.Millisecond)
			}
			failed = way == "endless discovery" || way == "another's name"
			res, text := get("/api/v1/oidc/start", nil)
			if res == nil || res.StatusCode != http.StatusSeeOther {
				continue // it is not believed, and nobody can sign in
			}
			if failed {
				t.Errorf("%s: a sign-in began: %s", way, text)
			}
			to, _ := url.Parse(res.Header.Get("Location"))
			var cookie *http.Cookie
			for _, k := range res.Cookies() {
				cookie = k
			}
			back, text := get("/api/v1/oidc/callback?code=x&state="+url.QueryEscape(to.Query().Get("state")), cookie)
			if back == nil || back.StatusCode < 400 {
				signedIn++
				t.Errorf("%s: %v %.300s", way, back, text)
			}
		}
		return fmt.Sprintf("%d sign-ins in %d ways", signedIn, len(ways))
	})
}

// TestAttackReceiver is a receiver of alerts that sends on to another address, answers without end, or with what a
// terminal would obey: nobody else gets the alert, and the status is text.
func TestAttackReceiver(t *testing.T) {
	var led atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	defer trap.Close()
	var way atomic.Value
	way.Store("")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch way.Load() {
		case "redirect":
			http.Redirect(w, r, trap.URL, http.StatusTemporaryRedirect)
		case "endless":
			endless(w, "")
		case "escape":
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "\x1b]0;owned\x07<script>alert(1)</script>")
		}
	}))
	defer evil.Close()
	s := newSite(t, fmt.Sprintf("[[alert.receiver]]\nname = \"evil\"\nkind = \"alertmanager\"\nurl = %q\n", evil.URL))
	attack(t, s, "a receiver of alerts that sends on, never ends, or writes to terminals", func() string {
		for _, w := range []string{"redirect", "endless", "escape"} {
			way.Store(w)
			if a := s.askLocal("POST", "/api/v1/alerts/test", "{}"); a.code != 200 {
				t.Errorf("%s: %d %s", w, a.code, a.body)
			}
			time.Sleep(2500 * time.Millisecond) // it is tried, and once more
			if a := s.askLocal("GET", "/api/v1/alerts", ""); strings.ContainsAny(a.body, "\x1b\x07") {
				t.Errorf("%s: the status has control characters: %q", w, a.body)
			}
		}
		if led.Load() > 0 {
			t.Errorf("another address got the alert %d times", led.Load())
		}
		return fmt.Sprint(led.Load(), " sent on")
	})
	begun := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		t.Errorf("the daemon has not ended %s after SIGTERM", time.Since(begun))
	}
}
