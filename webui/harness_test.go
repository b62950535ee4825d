package webui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// get reads a JSON answer that must be 200.
func get[T any](s *simsite.Site, path string) (v T) {
	s.T.Helper()
	res, b := s.Ask("GET", path, simsite.ViewerSecret, nil)
	if res.StatusCode != 200 {
		s.T.Fatalf("GET %s: %d %s", path, res.StatusCode, b)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		s.T.Fatalf("GET %s: %v in %s", path, err, b)
	}
	return v
}

var keys int

// post sends a write with an idempotency key of its own.
func post(s *simsite.Site, path, secret string, body any) (*http.Response, []byte) {
	s.T.Helper()
	keys++
	return s.Ask("POST", path, secret, body, "Idempotency-Key", fmt.Sprint("k", keys))
}

// eventually waits until ok says yes.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// signed is a session: the value of its cookie, and its secret.
type signed struct{ cookie, secret string }

// headers are what a page of this server sends: the cookie, the secret and its origin.
func (v signed) headers(s *simsite.Site) []string {
	return []string{"Cookie", access.CookieName + "=" + v.cookie, access.SecretHeader, v.secret,
		"Origin", "http://" + s.TCP}
}

// signIn signs a person in by a one-time code.
func signIn(s *simsite.Site, name string, role remap.Role) signed {
	s.T.Helper()
	_, code, _ := strings.Cut(s.SignInPath(name, role), "=")
	res, b := s.Ask("POST", "/api/v1/session", "", api.SignIn{Code: code}, "Origin", "http://"+s.TCP)
	for _, c := range res.Cookies() {
		if c.Name == access.CookieName {
			return signed{c.Value, decode[api.Session](s.T, b).Secret}
		}
	}
	s.T.Fatalf("%s is not signed in: %d %s", name, res.StatusCode, b)
	return signed{}
}

func decode[T any](t testing.TB, b []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %.500q", err, b)
	}
	return v
}
