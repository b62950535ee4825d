package access

import (
	"crypto/x509"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/access/budget"
)

func enrolment(secrets ...string) (*Enrolment, map[topology.NodeID]time.Time) {
	revoked := map[topology.NodeID]time.Time{}
	return &Enrolment{Secrets: func() ([]string, error) { return secrets, nil },
		Revoked: func(n topology.NodeID) time.Time { return revoked[n] }}, revoked
}

// speaks says as whom a token speaks; "" when it is refused.
func speaks(t *testing.T, e *Enrolment, token string) string {
	t.Helper()
	id, err := newIdentities(Config{Enrolment: e}, budget.New(budget.Defaults(), 2))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/v1/ingest", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	c, err := id.identify(r, TCP)
	switch {
	case err != nil:
		return ""
	case c.Role == RoleJoin:
		return "join " + c.Join
	case c.Role != RoleAgent || len(c.Speaker.Nodes) != 1:
		t.Fatalf("a node's token gives %+v", c)
	}
	if !c.Speaker.Valid() {
		return ""
	}
	return c.Speaker.Nodes[0]
}

func TestNodeTokenIsItsNodesAlone(t *testing.T) {
	e, revoked := enrolment("a secret of the daemon's, long enough")
	now := time.Now()
	token, err := e.NodeToken("cn5", now)
	if err != nil {
		t.Fatal(err)
	}
	if got := speaks(t, e, token); got != "cn5" {
		t.Errorf("the token speaks for %q", got)
	}
	if odd, _ := e.NodeToken("cn*", now); speaks(t, e, odd) != `cn\*` {
		t.Errorf("a node called cn* speaks for %q", speaks(t, e, odd))
	}
	six, _ := e.NodeToken("cn6", now)
	parts, other := strings.Split(token, "."), strings.Split(six, ".")
	for what, forged := range map[string]string{
		"another node's name":  strings.Join([]string{parts[0], other[1], parts[2], parts[3]}, "."),
		"a later time":         strings.Join([]string{parts[0], parts[1], "zzzzzz", parts[3]}, "."),
		"a join token's place": strings.Replace(token, nodePrefix, joinPrefix, 1),
		"cut short":            token[:len(token)-1],
		"without a proof":      strings.Join(parts[:3], ".") + ".",
		"another secret": func() string {
			e, _ := enrolment("a secret of somebody else's, long enough")
			forged, _ := e.NodeToken("cn5", now)
			return forged
		}(),
	} {
		if got := speaks(t, e, forged); got != "" {
			t.Errorf("%s: speaks for %q", what, got)
		}
	}
	for _, bad := range []topology.NodeID{"", "cn\x1b5", topology.NodeID(strings.Repeat("n", maxName+1))} {
		if _, err := e.NodeToken(bad, now); err == nil {
			t.Errorf("a token was made for node %q", bad)
		}
	}
	revoked["cn5"] = now
	if got := speaks(t, e, token); got != "" {
		t.Errorf("a revoked token speaks for %q", got)
	}
	again, _ := e.NodeToken("cn5", now.Add(2*time.Second))
	if got := speaks(t, e, again); got != "cn5" {
		t.Errorf("a token made after the revocation speaks for %q", got)
	}
	early, _ := e.NodeToken("cn7", now.Add(nodeSpread/2))
	if got := speaks(t, e, early); got != "cn7" {
		t.Errorf("a token of a clock that is ahead speaks for %q", got)
	}
	gate, err := NewGate(Config{Enrolment: e}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // each revocation ends what is made after the one before, within a second too
		revoked["cn7"] = gate.RevokeUntil("cn7", now)
		if got := speaks(t, e, early); got != "" {
			t.Errorf("a revoked token of a clock that is ahead, or made after a revocation, speaks for %q", got)
		}
		early, _ = e.NodeToken("cn7", now)
		if got := speaks(t, e, early); got != "cn7" {
			t.Errorf("a token made after a revocation speaks for %q", got)
		}
	}
	turned, _ := enrolment("the new secret of the daemon, long too", "a secret of the daemon's, long enough")
	if got := speaks(t, turned, token); got != "cn5" {
		t.Errorf("after a rotation the token speaks for %q", got)
	}
	gone, _ := enrolment("the new secret of the daemon, long too")
	if got := speaks(t, gone, token); got != "" {
		t.Errorf("after its secret was taken out the token speaks for %q", got)
	}
	if got := speaks(t, nil, token); got != "" {
		t.Errorf("without enrolment the token speaks for %q", got)
	}
}

func TestJoinToken(t *testing.T) {
	e, _ := enrolment("a secret of the daemon's, long enough")
	token, err := e.JoinToken("cn*", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got := speaks(t, e, token); got != "join cn*" {
		t.Errorf("it gives %q", got)
	}
	ended, _ := e.JoinToken("cn*", time.Now().Add(-time.Second))
	if got := speaks(t, e, ended); got != "" {
		t.Errorf("one that has ended gives %q", got)
	}
	g, err := NewGate(Config{Enrolment: e}, nil)
	if err != nil {
		t.Fatal(err)
	}
	by := Caller{Person: remap.Person{Role: RoleJoin}, Join: "cn*"}
	if own, err := g.Enrol(by, "cn7"); err != nil || speaks(t, e, own) != "cn7" {
		t.Errorf("cn7 got %q, %v", own, err)
	}
	if _, err := g.Enrol(by, "fwd1"); err == nil {
		t.Error("a join token for compute nodes enrolled a forwarder")
	}
	if _, err := e.JoinToken("cn[", time.Now()); err == nil {
		t.Error("a pattern that is not one was taken")
	}
}

// TestTokenNamesAreOnes: two tokens of one name would share limits and revocation.
func TestTokenNamesAreOnes(t *testing.T) {
	two := []Token{{Name: "a", Role: RoleAgent, SHA256: HashToken("1")},
		{Name: "a", Role: RoleAgent, SHA256: HashToken("2")}}
	if _, err := newIdentities(Config{Tokens: two}, budget.New(budget.Defaults(), 2)); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("two tokens of one name: %v", err)
	}
}

func FuzzNodeToken(f *testing.F) {
	e, _ := enrolment("a secret of the daemon's, long enough")
	good, _ := e.NodeToken("cn5", time.Unix(1_700_000_000, 0))
	join, _ := e.JoinToken("cn*", time.Unix(1_700_000_000, 0))
	f.Add(good)
	f.Add(join)
	f.Add("fwn1...")
	f.Fuzz(func(t *testing.T, token string) {
		now := time.Unix(1_700_000_100, 0)
		if n, err := e.node(token, now); err == nil && token != good {
			t.Errorf("%q speaks for %q", token, n)
		}
		if p, err := e.join(token, time.Unix(1_700_000_000, 0)); err == nil && token != join {
			t.Errorf("%q joins %q", token, p)
		}
	})
}

// TestCertificatesAreRevoked: a certificate that began before its node was revoked is refused, a later one is not.
func TestCertificatesAreRevoked(t *testing.T) {
	e, revoked := enrolment("a secret of the daemon's, long enough")
	id, err := newIdentities(Config{Enrolment: e}, budget.New(budget.Defaults(), 2))
	if err != nil {
		t.Fatal(err)
	}
	gate, err := NewGate(Config{Enrolment: e}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	revoked["cn5"] = gate.RevokeUntil("cn5", now)
	for after, ok := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Second: true} {
		c, err := id.byCertificate(Caller{}, &x509.Certificate{DNSNames: []string{"cn5"}, NotBefore: now.Add(after),
			NotAfter: now.Add(time.Hour)})
		if (err == nil) != ok || ok && !c.Speaker.Valid() {
			t.Errorf("one that begins %s after the revocation: %v", after, err)
		}
	}
}
