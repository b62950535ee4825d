package webui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairway-demo/simsite"

	"github.com/gorilla/websocket"

	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
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
	ask := func(method, path, cookie string) (int, []api.OpenSession) {
		t.Helper()
		res, b := s.Ask(method, path, "", nil, "Cookie", access.CookieName+"="+cookie, "Origin", "http://"+s.TCP)
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
