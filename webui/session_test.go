package webui

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"fairway/remap"
	"fairway/webui/api"
)

// A flood of names neither frees a name that was tried too often, nor grows the table.
func TestAFloodOfNamesDoesNotFreeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newSessions(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range signInTries {
			if err := s.mayTry("olga"); err != nil {
				t.Fatal(err)
			}
		}
		let := signInTries
		for i := range 2 * maxSessions {
			if s.mayTry(fmt.Sprint("name", i)) == nil {
				let++
			}
		}
		if err := s.mayTry("olga"); !errors.Is(err, api.ErrTooOften) {
			t.Errorf("a sixth try as olga: %v", err)
		}
		if let != allSignInTries || len(s.tries) > allSignInTries {
			t.Errorf("%d tries were let through, %d names kept; at most %d", let, len(s.tries), allSignInTries)
		}
		if s.mayTry(strings.Repeat("n", 1<<20)) == nil {
			t.Error("a name of a megabyte is looked up")
		}
		time.Sleep(signInWindow)
		if err := s.mayTry("olga"); err != nil || len(s.tries) != 1 {
			t.Errorf("a minute later: %v, %d names kept", err, len(s.tries))
		}
	})
}

func TestUnusedCodesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newSessions(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			s.oneTimeCode(fmt.Sprint("sam", i%50), remap.Operator)
		}
		if len(s.codes) != 50 {
			t.Errorf("%d codes of 50 people are kept", len(s.codes))
		}
		time.Sleep(codeLife + time.Second)
		if s.oneTimeCode("olga", remap.Operator); len(s.codes) != 1 {
			t.Errorf("%d codes are kept, one can still be used", len(s.codes))
		}
	})
}

// A role that only machines have, given to a proxy's people, was a panic at the agents' door.
func TestProxyRolesArePeoples(t *testing.T) {
	for _, p := range []Proxy{{Default: RoleAgent}, {Default: "oprator"},
		{Roles: map[string]remap.Role{"ops": RoleAgent}}} {
		if _, err := newIdentities(Access{Proxy: &p}); err == nil || !strings.Contains(err.Error(), "access.proxy") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// Signing out closes the feeds of that session, at once and with a word, and no other's.
func TestSigningOutEndsTheFeeds(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.run(0)
	signIn := func(name string) string {
		t.Helper()
		cookie, err := s.server.gate.sessions.redeem(s.server.gate.sessions.oneTimeCode(name, remap.Operator))
		if err != nil {
			t.Fatal(err)
		}
		return cookie
	}
	watch := func(cookie, query string) *websocket.Conn {
		t.Helper()
		ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.tcp+"/api/v1/live?topics=overview"+query,
			http.Header{"Cookie": {cookieName + "=" + cookie}, "Origin": {"http://" + s.tcp}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		return ws
	}
	cookie := signIn("olga")
	here, hidden, there := watch(cookie, ""), watch(cookie, "&background=1"), watch(signIn("sam"), "")
	eventually(t, "three listen", func() bool { return s.server.hub.clients.Load() == 3 })
	if res, b := s.ask("DELETE", "/api/v1/session", "", nil, "Cookie", cookieName+"="+cookie, "Origin",
		"http://"+s.tcp); res.StatusCode != 200 {
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
