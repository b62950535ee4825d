package access

import (
	"os/user"
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
