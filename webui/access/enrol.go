package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// A node's credential is a token that names the node and when it was issued, and proves both by an HMAC under a secret
// that only the daemon has: no tokens are listed, and one of cn5 is worth nothing for cn6.

// Enrolment is what nodes' tokens are made and checked with.
type Enrolment struct {
	// Secrets returns the secrets; the first one signs, all of them verify. nil: nodes have certificates alone.
	Secrets func() ([]string, error)
	// Revoked returns up to when a node's tokens are refused; the zero time for none. nil: none are.
	Revoked func(node topology.NodeID) time.Time
}

const (
	nodePrefix = "fwn1" // a node's token: fwn1.NODE.ISSUED.MAC
	joinPrefix = "fwj1" // a join token: fwj1.PATTERN.UNTIL.MAC
	// maxToken bounds what is looked at, bytes.
	maxToken = 1024
	// nodeSpread is how far apart the clocks may be by which a token is issued and checked.
	nodeSpread = time.Hour
)

// RoleJoin is the role of a join token: it gets a node its own token, and may nothing else.
const RoleJoin remap.Role = "join"

var errNoEnrolment = errors.New("[access.enrolment] has no secret_file: nodes have no tokens of their own here")

// sign makes a token of a kind for a name and a time.
func sign(secret, prefix, name string, at time.Time) string {
	head := prefix + "." + base64.RawURLEncoding.EncodeToString([]byte(name)) + "." + strconv.FormatInt(at.Unix(), 36)
	return head + "." + mac(secret, head)
}

func mac(secret, head string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("fairway " + head))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// open checks a token of a kind and returns what it says.
func (e *Enrolment) open(token, prefix string) (name string, at time.Time, err error) {
	bad := fmt.Errorf("%w: the token is not one of this daemon's", api.ErrSignIn)
	if e == nil || e.Secrets == nil {
		return "", at, errNoEnrolment
	}
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 4 || parts[0] != prefix {
		return "", at, bad
	}
	secrets, err := e.Secrets()
	if err != nil {
		return "", at, err
	}
	head, known := token[:strings.LastIndexByte(token, '.')], false
	for _, s := range secrets {
		if hmac.Equal([]byte(mac(s, head)), []byte(parts[3])) {
			known = true
		}
	}
	if !known {
		return "", at, bad
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	unix, err2 := strconv.ParseInt(parts[2], 36, 64)
	if err != nil || err2 != nil {
		return "", at, bad
	}
	return string(text), time.Unix(unix, 0), nil
}

// signer is the secret that new tokens are made with.
func (e *Enrolment) signer() (string, error) {
	if e == nil || e.Secrets == nil {
		return "", errNoEnrolment
	}
	s, err := e.Secrets()
	if err == nil && len(s) == 0 {
		err = errNoEnrolment
	}
	if err != nil {
		return "", err
	}
	return s[0], nil
}

// until is up to when a node's tokens are refused, and next when the first is issued after that.
func (e *Enrolment) until(n topology.NodeID) (until, next time.Time) {
	if e == nil || e.Revoked == nil {
		return until, next
	}
	until = e.Revoked(n)
	return until, until.Add(time.Second)
}

// RevokeUntil is up to when a node's tokens must be refused so that none is left that was accepted until now: by the
// clock of another daemon, or by this one's before it was set back, it may have been issued later.
func (g *Gate) RevokeUntil(n topology.NodeID, now time.Time) time.Time {
	until := now.UTC().Truncate(time.Second).Add(nodeSpread) // tokens have whole seconds
	if _, next := g.conf.Enrolment.until(n); next.After(until) {
		return next
	}
	return until
}

// RevokedAt is when that was decided which refuses a node's tokens up to a time.
func RevokedAt(until time.Time) time.Time { return until.Add(-nodeSpread) }

// NodeToken makes a node's token, which is later than those that are revoked.
func (e *Enrolment) NodeToken(n topology.NodeID, now time.Time) (string, error) {
	if n == "" || len(n) > maxName || !topology.CleanName(string(n)) {
		return "", fmt.Errorf("%w: node %q: want a name of 1 to %d letters without control characters", api.ErrInvalid,
			n,
			maxName)
	}
	s, err := e.signer()
	if err != nil {
		return "", err
	}
	if until, next := e.until(n); !now.After(until) {
		now = next
	}
	return sign(s, nodePrefix, string(n), now), nil
}

// JoinToken makes a token with which nodes whose names fit a pattern get their own until it ends.
func (e *Enrolment) JoinToken(pattern string, until time.Time) (string, error) {
	if _, err := path.Match(pattern, "x"); err != nil || pattern == "" || len(pattern) > maxName {
		return "", fmt.Errorf("%w: pattern %q: want one such as cn*", api.ErrInvalid, pattern)
	}
	s, err := e.signer()
	if err != nil {
		return "", err
	}
	return sign(s, joinPrefix, pattern, until), nil
}

// node returns whose a token is; an error says why it is refused.
func (e *Enrolment) node(token string, now time.Time) (topology.NodeID, error) {
	name, issued, err := e.open(token, nodePrefix)
	if err != nil {
		return "", err
	}
	n := topology.NodeID(name)
	switch until, next := e.until(n); {
	case !until.IsZero() && !issued.After(until):
		return n, fmt.Errorf("%w: the token of node %s is revoked; fairwayd enroll makes another", api.ErrSignIn, n)
	case issued.After(now.Add(nodeSpread)) && !issued.Equal(next):
		return "", fmt.Errorf("%w: the token of node %s was issued in the future", api.ErrSignIn, n)
	}
	return n, nil
}

// join returns the pattern of nodes that a join token is for.
func (e *Enrolment) join(token string, now time.Time) (pattern string, err error) {
	pattern, until, err := e.open(token, joinPrefix)
	if err == nil && now.After(until) {
		err = fmt.Errorf("%w: the join token has ended %s", api.ErrSignIn, until.UTC().Format(time.RFC3339))
	}
	return pattern, err
}

// exactly is the pattern that only a name fits.
func exactly(n topology.NodeID) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(string(n))
}

// ofNode makes a caller the agent of one node; valid says whether it still is.
func ofNode(w Caller, n topology.NodeID, via string, valid func() bool) Caller {
	w.Person = remap.Person{Name: "node " + string(n), Role: RoleAgent, Via: via}
	limits := ingest.DefaultLimits()
	limits.FramesPerSec, limits.MessageBytes = nodeFrames, nodeMessage
	w.Speaker = &ingest.Speaker{Name: w.Name, Nodes: []string{exactly(n)}, Limits: limits, Valid: valid}
	return w
}

// nodeFrames is how many frames a second one node may bring: its spool is replayed as fast as that.
const nodeFrames = 1024

// nodeMessage is how many bytes a message of one node may have: a forwarder's list of all clients of the largest
// machine has less.
const nodeMessage = 1 << 20

// byNodeToken is the agent of a node with a token of its own, or whoever has a join token.
func (id *identities) byNodeToken(w Caller, token string) (Caller, error) {
	e, now := id.conf.Enrolment, time.Now()
	if strings.HasPrefix(token, joinPrefix+".") {
		pattern, err := e.join(token, now)
		if err != nil {
			return w, err
		}
		w.Person, w.Join = remap.Person{Name: "join " + pattern, Role: RoleJoin, Via: "token"}, pattern
		return w, nil
	}
	n, err := e.node(token, now)
	if err != nil {
		return w, err
	}
	return ofNode(w, n, "node token", func() bool {
		_, err := e.node(token, time.Now())
		return err == nil
	}), nil
}

// Enrol gives a node its own token, to whoever has a join token for it.
func (g *Gate) Enrol(by Caller, n topology.NodeID) (token string, err error) {
	if ok, err := path.Match(by.Join, string(n)); !ok || err != nil {
		return "", fmt.Errorf("%w: the join token is for %s, not for %q", api.ErrNotAllowed, by.Join, n)
	}
	return g.conf.Enrolment.NodeToken(n, time.Now())
}

// byCertificate is the agent of the node that a client certificate names.
func (id *identities) byCertificate(w Caller, leaf *x509.Certificate) (Caller, error) {
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] == "" {
		return w, fmt.Errorf("%w: the client certificate has %d names, want the node's alone", api.ErrSignIn,
			len(leaf.DNSNames))
	}
	n := topology.NodeID(leaf.DNSNames[0])
	revoked := func() (at time.Time, is bool) {
		until, _ := id.conf.Enrolment.until(n)
		at = RevokedAt(until)
		return at, !until.IsZero() && !leaf.NotBefore.After(at)
	}
	if at, is := revoked(); is {
		return w, fmt.Errorf("%w: the certificate of node %s is revoked; it needs one that begins after %s",
			api.ErrSignIn, n, at.UTC().Format(time.RFC3339))
	}
	return ofNode(w, n, "certificate", func() bool {
		_, is := revoked()
		return time.Now().Before(leaf.NotAfter) && !is
	}), nil
}
