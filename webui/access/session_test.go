package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A role that only machines have, given to a proxy's people, was a panic at the agents' listener.
func TestProxyRolesArePeoples(t *testing.T) {
	for _, p := range []Proxy{{Default: RoleAgent}, {Default: "oprator"},
		{Roles: map[string]remap.Role{"ops": RoleAgent}}} {
		if _, err := newIdentities(Config{Proxy: &p}); err == nil || !strings.Contains(err.Error(), "proxy") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
