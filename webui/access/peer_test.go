package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http/httptest"
	"strings"
	"testing"

	"fairway/remap"
)

// TestADaemonSaysWhoAsks: what a daemon of the cluster says of a caller counts as far as the settings here give that
// person the role too, and from nobody else does it count at all.
func TestADaemonSaysWhoAsks(t *testing.T) {
	conf := Config{Accounts: []Account{{Name: "olga", Role: remap.Operator, Hash: HashPassword("x")}},
		Tokens: []Token{{Name: "hooks", Role: RoleScheduler, SHA256: HashToken("a")},
			{Name: "board", Role: remap.Viewer, SHA256: HashToken("b")}}}
	withOIDC, withProxy, open := conf, conf, conf
	withOIDC.OIDC = &OIDC{Roles: map[string]remap.Role{"ops": remap.Operator}}
	withProxy.Proxy = &Proxy{Roles: map[string]remap.Role{"staff": remap.Viewer}}
	open.Anonymous = remap.Viewer
	peer := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "b"}}}}}
	for _, c := range []struct {
		conf Config
		by   remap.Person
		from *tls.ConnectionState
		ok   bool
	}{
		{conf, remap.Person{Name: "olga", Role: remap.Operator, Via: "session"}, peer, true},
		{conf, remap.Person{Name: "olga", Role: remap.Viewer, Via: "session"}, peer, true},
		{conf, remap.Person{Name: "olga", Role: remap.Operator, Via: "session"}, nil, false},
		{conf, remap.Person{Name: "olga", Role: remap.Admin, Via: "session"}, peer, false},
		{conf, remap.Person{Name: "board", Role: remap.Operator, Via: "token"}, peer, false},
		{conf, remap.Person{Name: "board", Role: RoleScheduler, Via: "token"}, peer, false},
		{conf, remap.Person{Name: "board", Role: RoleAgent, Via: "token"}, peer, false},
		{conf, remap.Person{Name: "hooks", Role: RoleScheduler, Via: "token"}, peer, true},
		{conf, remap.Person{Name: "nobody-of-that-name", Role: remap.Operator, Via: "unix"}, peer, false},
		{conf, remap.Person{Name: "root", Role: remap.Admin, Via: "unix"}, peer, true},
		{conf, remap.Person{Name: "eve", Role: remap.Operator, Via: "elsewhere"}, peer, false},
		{conf, remap.Person{Name: "eve", Role: remap.Operator, Via: "proxy"}, peer, false},
		{withOIDC, remap.Person{Name: "pat", Role: remap.Operator, Via: "session"}, peer, true},
		{withOIDC, remap.Person{Name: "pat", Role: remap.Admin, Via: "session"}, peer, false},
		{withProxy, remap.Person{Name: "pat", Role: remap.Viewer, Via: "proxy"}, peer, true},
		{withProxy, remap.Person{Name: "pat", Role: remap.Operator, Via: "proxy"}, peer, false},
		{conf, remap.Person{Role: remap.Viewer, Via: "anonymous"}, peer, false},
		{open, remap.Person{Role: remap.Viewer, Via: "anonymous"}, peer, true},
		{open, remap.Person{Name: "nobody-of-that-name", Role: remap.Viewer, Via: "unix"}, peer, true},
	} {
		g, err := NewGate(c.conf, nil)
		if c.conf.OIDC != nil || c.conf.Proxy != nil { // what a provider needs besides is not asked here
			g, err = NewGate(conf, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		g.conf = c.conf
		r := httptest.NewRequest("POST", "/api/v1/standing", nil)
		PassOn(r, Caller{Person: c.by})
		r.TLS = c.from
		by, err := g.identify(r, Peer)
		if (err == nil) != c.ok || err == nil && by.Person != c.by {
			t.Errorf("%+v from %v: %+v, %v", c.by, c.from != nil, by.Person, err)
		}
		if err != nil && c.from != nil && !strings.Contains(err.Error(), "daemon b") {
			t.Errorf("%+v: the error %q does not name the daemon", c.by, err)
		}
	}
}
