package webui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairway-demo/simsite"

	"github.com/gorilla/websocket"

	"fairway/remap"
	"fairway/webui/access"
)

// Signing out closes the feeds of that session, at once and with a word, and no other's.
func TestSigningOutEndsTheFeeds(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	signIn := func(name string) string {
		t.Helper()
		return signIn(s, name, remap.Operator)
	}
	watch := func(cookie, query string) *websocket.Conn {
		t.Helper()
		ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.TCP+"/api/v1/live?topics=overview"+query,
			http.Header{"Cookie": {access.CookieName + "=" + cookie}, "Origin": {"http://" + s.TCP}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		return ws
	}
	cookie := signIn("olga")
	here, hidden, there := watch(cookie, ""), watch(cookie, "&background=1"), watch(signIn("sam"), "")
	eventually(t, "three listen", func() bool { return s.Server.Clients() == 3 })
	if res, b := s.Ask("DELETE", "/api/v1/session", "", nil, "Cookie", access.CookieName+"="+cookie, "Origin",
		"http://"+s.TCP); res.StatusCode != 200 {
		t.Fatalf("signing out: %d %s", res.StatusCode, b)
	}
	for name, ws := range map[string]*websocket.Conn{"the feed": here, "a hidden tab's feed": hidden} {
		ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		var err error
		for err == nil {
			_, _, err = ws.ReadMessage()
		}
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) ||
			!strings.Contains(err.Error(), "sign in again") {
			t.Errorf("%s after signing out: %v", name, err)
		}
	}
	there.SetReadDeadline(time.Now().Add(10 * time.Second))
	for range 3 {
		if _, _, err := there.ReadMessage(); err != nil {
			t.Fatalf("another's feed: %v", err)
		}
	}
}
