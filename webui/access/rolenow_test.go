package access

import (
	"net/http/httptest"
	"os/user"
	"strings"
	"testing"

	"fairway/remap"
)

func TestRoleNow(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip("skipped: this user has no name: ", err)
	}
	a := Config{Tokens: []Token{{Name: "ops", Role: remap.Operator}},
		Accounts: []Account{{Name: "olga", Role: remap.Operator}}}
	for _, c := range []struct {
		name, via string
		role      remap.Role
		known     bool
	}{
		{"ops", "token", remap.Operator, true},
		{"gone", "token", "", true},
		{"olga", "session", remap.Operator, true},
		{"nobody-of-that-name", "session", "", true},
		{me.Username, "unix", remap.Admin, true}, // the daemon's own user
		{"nobody-of-that-name", "unix", "", true},
		{"uid4711", "unix", "", false},
		{"olga", "proxy", "", true}, // the proxy is gone
		{"olga", "elsewhere", "", false},
	} {
		if role, known := a.RoleNow(c.name, c.via); role != c.role || known != c.known {
			t.Errorf("%s by %s: %q, %v; want %q, %v", c.name, c.via, role, known, c.role, c.known)
		}
	}
	a.OIDC, a.Proxy = &OIDC{}, &Proxy{}
	for _, via := range []string{"session", "proxy"} {
		if role, known := a.RoleNow("somebody", via); known {
			t.Errorf("by %s: %q, though somebody else vouches", via, role)
		}
	}
}

// TestNamesOfOthers: the proxy and the provider name nobody whom people take for another.
func TestNamesOfOthers(t *testing.T) {
	p := Proxy{UserHeader: "X-Remote-User", GroupsHeader: "X-Groups",
		Roles: map[string]remap.Role{"ops": remap.Operator}}
	o := OIDC{NameClaim: "name", Roles: map[string]remap.Role{"*": remap.Viewer}}
	for name, good := range map[string]bool{"olga": true, "Ольга": true, "olga p": true, "": false,
		"olga\u202e": false,
		"olga\u200b": false, "olga\xff": false, "\u00a0olga": false, "o\x1blga": false, " olga": false,
		strings.Repeat("o", maxName+1): false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Remote-User"] = []string{name}
		if c, err := p.identify(Caller{}, r); (err == nil) != good || good != (c.Name == name && name != "") {
			t.Errorf("by the proxy %q: %+v, %v", name, c.Person, err)
		}
		if c, err := o.person(map[string]any{"name": name}); (err == nil) != good {
			t.Errorf("by the provider %q: %+v, %v", name, c, err)
		}
	}
	// What the client wrote itself comes first, where the proxy adds instead of setting.
	for _, twice := range []string{"X-Remote-User", "X-Groups"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Remote-User", "olga")
		r.Header.Set("X-Groups", "ops")
		r.Header.Add(twice, "x")
		if c, err := p.identify(Caller{}, r); err == nil {
			t.Errorf("%s came twice: %+v", twice, c.Person)
		}
	}
}
