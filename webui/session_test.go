package webui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/gorilla/websocket"

	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// Signing out closes the feeds of that session, at once and with a word, and no other's.
func TestSigningOutEndsTheFeeds(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	signIn := func(name string) signed {
		t.Helper()
		return signIn(s, name, remap.Operator)
	}
	watch := func(by signed, query string) *websocket.Conn {
		t.Helper()
		dialer := websocket.Dialer{Subprotocols: []string{access.FeedProtocol, "session." + by.secret}}
		ws, _, err := dialer.Dial("ws://"+s.TCP+"/api/v1/live?topics=overview"+query,
			http.Header{"Cookie": {access.CookieName + "=" + by.cookie}, "Origin": {"http://" + s.TCP}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		return ws
	}
	olga := signIn("olga")
	here, hidden, there := watch(olga, ""), watch(olga, "&background=1"), watch(signIn("sam"), "")
	eventually(t, "three listen", func() bool { return s.Server.Clients() == 3 })
	if res, b := s.Ask("DELETE", "/api/v1/session", "", nil, olga.headers(s)...); res.StatusCode != 200 {
		t.Fatalf("signing out: %d %s", res.StatusCode, b)
	}
	for name, ws := range map[string]*websocket.Conn{"the feed": here, "a hidden tab's feed": hidden} {
		ws.SetReadDeadline(time.Now().Add(90 * time.Second))
		var err error
		for err == nil {
			_, _, err = ws.ReadMessage()
		}
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) ||
			!strings.Contains(err.Error(), "sign in again") {
			t.Errorf("%s after signing out: %v", name, err)
		}
	}
	there.SetReadDeadline(time.Now().Add(90 * time.Second))
	for range 3 {
		if _, _, err := there.ReadMessage(); err != nil {
			t.Fatalf("another's feed: %v", err)
		}
	}
}

// A person sees and ends their own sessions, an admin everybody's.
func TestSessionsAreListedAndEnded(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	olga, sam := signIn(s, "olga", remap.Operator), signIn(s, "sam", remap.Viewer)
	root := signIn(s, "root", remap.Admin)
	ask := func(method, path string, by signed) (int, []api.OpenSession) {
		t.Helper()
		res, b := s.Ask(method, path, "", nil, by.headers(s)...)
		var out []api.OpenSession
		if res.StatusCode == 200 {
			if err := json.Unmarshal(b, &out); err != nil {
				t.Fatal(err)
			}
		}
		return res.StatusCode, out
	}
	_, mine := ask("GET", "/api/v1/sessions", sam)
	if len(mine) != 1 || mine[0].Name != "sam" || !mine[0].Current || mine[0].By != "link" ||
		mine[0].From != "127.0.0.1" {
		t.Fatalf("sam sees %+v", mine)
	}
	_, all := ask("GET", "/api/v1/sessions", root)
	if len(all) != 3 {
		t.Fatalf("an admin sees %+v", all)
	}
	for _, o := range all {
		if o.Name == "olga" {
			if code, _ := ask("DELETE", "/api/v1/sessions/"+o.ID, sam); code != 404 {
				t.Errorf("sam ends olga's session: %d", code)
			}
			if code, left := ask("DELETE", "/api/v1/sessions/"+o.ID, root); code != 200 || len(left) != 2 {
				t.Errorf("an admin ends olga's session: %d, %d are left", code, len(left))
			}
		}
	}
	if _, seen := ask("GET", "/api/v1/sessions", olga); len(seen) != 0 {
		t.Errorf("olga, whose session was ended, sees %+v", seen)
	}
}

// A cookie without the session's secret, as another port of the host gets it from the browser, is worth nothing: not to
// read, not to write, not for a feed, not to end the session.
func TestACookieAloneIsNobody(t *testing.T) {
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) { a.Anonymous = "" }})
	olga, sam := signIn(s, "olga", remap.Operator), signIn(s, "sam", remap.Operator)
	for name, secret := range map[string]string{"no secret": "", "a wrong one": "x", "another session's": sam.secret} {
		by := signed{olga.cookie, secret}
		for _, c := range []struct{ method, path string }{{"GET", "/api/v1/overview"}, {"GET", "/api/v1/sessions"},
			{"POST", "/api/v1/plans"}, {"DELETE", "/api/v1/sessions/x"}} {
			res, b := s.Ask(c.method, c.path, "", nil, append(by.headers(s), "Idempotency-Key", "k")...)
			if res.StatusCode != 401 || !strings.Contains(string(b), access.SecretHeader) {
				t.Errorf("%s: %s %s: %d %s", name, c.method, c.path, res.StatusCode, b)
			}
		}
		dialer := websocket.Dialer{Subprotocols: []string{access.FeedProtocol, "session." + secret}}
		if _, res, err := dialer.Dial("ws://"+s.TCP+"/api/v1/live", http.Header{
			"Cookie": {access.CookieName + "=" + olga.cookie}, "Origin": {"http://" + s.TCP}}); err == nil ||
			res == nil || res.StatusCode != 401 {
			t.Errorf("%s: a feed: %+v, %v", name, res, err)
		}
		_, b := s.Ask("GET", "/api/v1/session", "", nil, by.headers(s)...)
		if v := decode[api.Session](t, b); v.Name != "" || v.Role != "" || !v.Locked || v.Secret != "" {
			t.Errorf("%s: %+v", name, v)
		}
		_, _ = s.Ask("DELETE", "/api/v1/session", "", nil, by.headers(s)...)
	}
	_, b := s.Ask("GET", "/api/v1/session", "", nil, olga.headers(s)...)
	if v := decode[api.Session](t, b); v.Name != "olga" || v.Locked || v.Secret != "" {
		t.Errorf("with its secret: %+v", v)
	}
}
