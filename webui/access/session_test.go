package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/remap"
	"fairway/webui/access/budget"
	"fairway/webui/api"
)

// testSessions has an account olga.
func testSessions(t *testing.T) *sessions {
	t.Helper()
	limits := budget.Defaults()
	limits.Sessions = 20
	s, err := newSessions([]Account{{Name: "olga", Role: remap.Operator, Hash: quickHash}}, budget.New(limits, 2))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// quickHash is of the password "right", at a cost that tests can pay.
const quickHash = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$lG6SS0+rxfmB9QPObS9DrA"

// Guessing from one address locks out that address for that name; the person still comes in from elsewhere, and from a
// known device even where everybody else is refused.
func TestGuessingLocksOutTheGuesser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSessions(t)
		try := func(password, from, device string) error {
			_, err := s.signIn(t.Context(), "olga", password, from, device)
			return err
		}
		for range 5 {
			if err := try("wrong", "10.0.0.1", ""); !errors.Is(err, api.ErrSignIn) {
				t.Fatal(err)
			}
		}
		var later api.Later
		if err := try("right", "10.0.0.1", ""); !errors.As(err, &later) || later.After <= 0 ||
			later.After > triesWindow {
			t.Errorf("a sixth try from there: %v", err)
		}
		if err := try("right", "10.0.0.2", ""); err != nil {
			t.Errorf("from another address: %v", err)
		}
		for i := range 100 { // from everywhere
			_ = try("wrong", fmt.Sprint("10.1.0.", i), "")
		}
		if err := try("right", "10.0.0.3", ""); !errors.Is(err, api.ErrTooOften) {
			t.Errorf("a name that is guessed at from everywhere: %v", err)
		}
		if err := try("right", "10.0.0.3", "olgas-device"); err != nil {
			t.Errorf("from a known device: %v", err)
		}
		if err := s.tries.provider("10.0.0.1"); err != nil {
			t.Errorf("at the provider: %v", err)
		}
		time.Sleep(triesWindow)
		if err := try("right", "10.0.0.1", ""); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// A flood of invented names uses up its address and little memory, and nobody else is refused.
func TestAFloodOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSessions(t)
		let := 0
		for i := range 5000 {
			if s.tries.password(fmt.Sprint("name", i), "10.0.0.1", "") == nil {
				let++
			}
		}
		if most := budget.Defaults().SignInsFrom; let != most {
			t.Errorf("%d tries of one address were let through, want %d", let, most)
		}
		for i := range 50_000 {
			_ = s.tries.password(fmt.Sprint("name", i), fmt.Sprint("10.", i%250, ".", i/250, ".1"), "")
		}
		if n := len(s.tries.recent); n > maxTried {
			t.Errorf("%d keys are kept", n)
		}
		if err := s.tries.password("olga", "10.9.9.9", "device"); err != nil {
			t.Errorf("a known device: %v", err)
		}
		if _, err := s.signIn(t.Context(), strings.Repeat("n", 1<<20), "", "10.0.0.1", ""); !errors.Is(err,
			api.ErrSignIn) {
			t.Errorf("a name of a megabyte: %v", err)
		}
		time.Sleep(triesWindow)
		if err := s.tries.password("olga", "10.0.0.1", ""); err != nil || len(s.tries.recent) > 3 {
			t.Errorf("a minute later: %v, %d keys are kept", err, len(s.tries.recent))
		}
	})
}

// One person's sessions and links never keep others out.
func TestSessionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSessions(t) // 20 in all, 8 a name
		var ended []string
		s.ended = func(cookie string) { ended = append(ended, cookie) }
		first := s.start(session{name: "mallory"})
		time.Sleep(time.Second)
		for range 30 {
			s.start(session{name: "mallory"})
		}
		if got := s.list("mallory", ""); len(got) != 8 || len(ended) != 23 || ended[0] != first {
			t.Errorf("mallory has %d sessions, %d ended", len(got), len(ended))
		}
		for i := range 12 {
			s.start(session{name: fmt.Sprint("user", i)})
		}
		time.Sleep(time.Second)
		olga := s.start(session{name: "olga"})
		if _, ok := s.find(olga); !ok || len(s.open) != 20 || len(s.list("mallory", "")) != 7 {
			t.Errorf("olga signed in: %v; %d sessions, %d of mallory", ok, len(s.open), len(s.list("mallory", "")))
		}
		made := 0
		for range 4095 {
			if s.tries.link("mallory") == nil {
				made++
			}
		}
		if err := s.tries.link("olga"); err != nil || made != 10 {
			t.Errorf("olga's link: %v; mallory made %d in a minute", err, made)
		}
		if l := s.list("", olga); len(l) != 20 || l[0].Name != "olga" || !l[0].Current ||
			strings.Contains(olga, l[0].ID) {
			t.Errorf("the newest of %d is %+v", len(l), l[0])
		}
		cookie, found, ok := s.byID(idOf(olga))
		if !ok || cookie != olga || found.name != "olga" {
			t.Errorf("by its ID: %+v %v", found, ok)
		}
	})
}

func TestUnusedCodesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSessions(t)
		for i := range 100 {
			if _, err := s.oneTimeCode(fmt.Sprint("sam", i%50), remap.Operator); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.codes) != 50 {
			t.Errorf("%d codes of 50 people are kept", len(s.codes))
		}
		time.Sleep(codeLife + time.Second)
		if _, err := s.oneTimeCode("olga", remap.Operator); err != nil || len(s.codes) != 1 {
			t.Errorf("%d codes are kept, one can still be used; %v", len(s.codes), err)
		}
	})
}

// A device's cookie proves one name on this server.
func TestKnownDevices(t *testing.T) {
	r := func(cookie string) *http.Request {
		r := httptest.NewRequest("POST", "/", nil)
		r.AddCookie(&http.Cookie{Name: deviceCookie, Value: cookie})
		return r
	}
	olgas := newDevice("olga")
	if id := knownDevice(r(olgas), "olga"); id == "" || !strings.HasPrefix(olgas, id) {
		t.Errorf("olga's device is %q", id)
	}
	for _, c := range []struct{ cookie, name string }{{olgas, "sam"}, {"x" + olgas, "olga"}, {olgas + "x", "olga"},
		{"", "olga"}, {".", "olga"}, {"nonsense", "olga"}} {
		if id := knownDevice(r(c.cookie), c.name); id != "" {
			t.Errorf("%q is %s's device %q", c.cookie, c.name, id)
		}
	}
}

// A role that only machines have, given to a proxy's people, was a panic at the agents' listener.
func TestProxyRolesArePeoples(t *testing.T) {
	for _, p := range []Proxy{{Default: RoleAgent}, {Default: "oprator"},
		{Roles: map[string]remap.Role{"ops": RoleAgent}}} {
		if _, err := newIdentities(Config{Proxy: &p}, budget.New(budget.Defaults(), 2)); err == nil ||
			!strings.Contains(err.Error(), "proxy") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
