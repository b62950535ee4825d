package browsertest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
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
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

var update = flag.Bool("update", false, "take the guide's pictures and rewrite the screens in docs")
